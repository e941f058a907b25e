// surf1d
#include <cuda_runtime.h>
extern "C" __global__ void surf1d_trap(cudaSurfaceObject_t s, unsigned* out, int x, int y, int z) {
  int i = threadIdx.x; unsigned v = surf1Dread<unsigned>(s,(x+i)*4,cudaBoundaryModeTrap);
  out[i] = v; v = v * 2654435761u + i; surf1Dwrite<unsigned>(v,s,(x+i)*4,cudaBoundaryModeTrap);
}
extern "C" __global__ void surf1d_clamp(cudaSurfaceObject_t s, unsigned* out, int x, int y, int z) {
  int i = threadIdx.x; unsigned v = surf1Dread<unsigned>(s,(x+i)*4,cudaBoundaryModeClamp);
  out[i] = v; v = v * 2654435761u + i; surf1Dwrite<unsigned>(v,s,(x+i)*4,cudaBoundaryModeClamp);
}
extern "C" __global__ void surf1d_zero(cudaSurfaceObject_t s, unsigned* out, int x, int y, int z) {
  int i = threadIdx.x; unsigned v = surf1Dread<unsigned>(s,(x+i)*4,cudaBoundaryModeZero);
  out[i] = v; v = v * 2654435761u + i; surf1Dwrite<unsigned>(v,s,(x+i)*4,cudaBoundaryModeZero);
}

