// surf3d
#include <cuda_runtime.h>
extern "C" __global__ void surf3d_trap(cudaSurfaceObject_t s, unsigned* out, int x, int y, int z) {
  int i = threadIdx.x; unsigned v = surf3Dread<unsigned>(s,(x+i)*4,y,z,cudaBoundaryModeTrap);
  out[i] = v; v = v * 2654435761u + i; surf3Dwrite<unsigned>(v,s,(x+i)*4,y,z,cudaBoundaryModeTrap);
}
extern "C" __global__ void surf3d_clamp(cudaSurfaceObject_t s, unsigned* out, int x, int y, int z) {
  int i = threadIdx.x; unsigned v = surf3Dread<unsigned>(s,(x+i)*4,y,z,cudaBoundaryModeClamp);
  out[i] = v; v = v * 2654435761u + i; surf3Dwrite<unsigned>(v,s,(x+i)*4,y,z,cudaBoundaryModeClamp);
}
extern "C" __global__ void surf3d_zero(cudaSurfaceObject_t s, unsigned* out, int x, int y, int z) {
  int i = threadIdx.x; unsigned v = surf3Dread<unsigned>(s,(x+i)*4,y,z,cudaBoundaryModeZero);
  out[i] = v; v = v * 2654435761u + i; surf3Dwrite<unsigned>(v,s,(x+i)*4,y,z,cudaBoundaryModeZero);
}

