// surf2d_layered
#include <cuda_runtime.h>
extern "C" __global__ void surf2dl_trap(cudaSurfaceObject_t s, unsigned* out, int x, int y, int z) {
  int i = threadIdx.x; unsigned v = surf2DLayeredread<unsigned>(s,(x+i)*4,y,z,cudaBoundaryModeTrap);
  out[i] = v; v = v * 2654435761u + i; surf2DLayeredwrite<unsigned>(v,s,(x+i)*4,y,z,cudaBoundaryModeTrap);
}
extern "C" __global__ void surf2dl_clamp(cudaSurfaceObject_t s, unsigned* out, int x, int y, int z) {
  int i = threadIdx.x; unsigned v = surf2DLayeredread<unsigned>(s,(x+i)*4,y,z,cudaBoundaryModeClamp);
  out[i] = v; v = v * 2654435761u + i; surf2DLayeredwrite<unsigned>(v,s,(x+i)*4,y,z,cudaBoundaryModeClamp);
}
extern "C" __global__ void surf2dl_zero(cudaSurfaceObject_t s, unsigned* out, int x, int y, int z) {
  int i = threadIdx.x; unsigned v = surf2DLayeredread<unsigned>(s,(x+i)*4,y,z,cudaBoundaryModeZero);
  out[i] = v; v = v * 2654435761u + i; surf2DLayeredwrite<unsigned>(v,s,(x+i)*4,y,z,cudaBoundaryModeZero);
}

