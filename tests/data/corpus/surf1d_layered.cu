// surf1d_layered
#include <cuda_runtime.h>
extern "C" __global__ void surf1dl_trap(cudaSurfaceObject_t s, unsigned* out, int x, int y, int z) {
  int i = threadIdx.x; unsigned v = surf1DLayeredread<unsigned>(s,(x+i)*4,z,cudaBoundaryModeTrap);
  out[i] = v; v = v * 2654435761u + i; surf1DLayeredwrite<unsigned>(v,s,(x+i)*4,z,cudaBoundaryModeTrap);
}
extern "C" __global__ void surf1dl_clamp(cudaSurfaceObject_t s, unsigned* out, int x, int y, int z) {
  int i = threadIdx.x; unsigned v = surf1DLayeredread<unsigned>(s,(x+i)*4,z,cudaBoundaryModeClamp);
  out[i] = v; v = v * 2654435761u + i; surf1DLayeredwrite<unsigned>(v,s,(x+i)*4,z,cudaBoundaryModeClamp);
}
extern "C" __global__ void surf1dl_zero(cudaSurfaceObject_t s, unsigned* out, int x, int y, int z) {
  int i = threadIdx.x; unsigned v = surf1DLayeredread<unsigned>(s,(x+i)*4,z,cudaBoundaryModeZero);
  out[i] = v; v = v * 2654435761u + i; surf1DLayeredwrite<unsigned>(v,s,(x+i)*4,z,cudaBoundaryModeZero);
}

