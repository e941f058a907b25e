// surf2d
#include <cuda_runtime.h>
extern "C" __global__ void surf2d_trap(cudaSurfaceObject_t s, unsigned* out, int x, int y, int z) {
  int i = threadIdx.x; unsigned v = surf2Dread<unsigned>(s,(x+i)*4,y,cudaBoundaryModeTrap);
  out[i] = v; v = v * 2654435761u + i; surf2Dwrite<unsigned>(v,s,(x+i)*4,y,cudaBoundaryModeTrap);
}
extern "C" __global__ void surf2d_clamp(cudaSurfaceObject_t s, unsigned* out, int x, int y, int z) {
  int i = threadIdx.x; unsigned v = surf2Dread<unsigned>(s,(x+i)*4,y,cudaBoundaryModeClamp);
  out[i] = v; v = v * 2654435761u + i; surf2Dwrite<unsigned>(v,s,(x+i)*4,y,cudaBoundaryModeClamp);
}
extern "C" __global__ void surf2d_zero(cudaSurfaceObject_t s, unsigned* out, int x, int y, int z) {
  int i = threadIdx.x; unsigned v = surf2Dread<unsigned>(s,(x+i)*4,y,cudaBoundaryModeZero);
  out[i] = v; v = v * 2654435761u + i; surf2Dwrite<unsigned>(v,s,(x+i)*4,y,cudaBoundaryModeZero);
}

