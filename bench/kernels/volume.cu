// A volume moved by one texel in each direction; beyond the edge the edge repeats.
#include <cuda_runtime.h>

extern "C" __global__ void volume(cudaSurfaceObject_t in, cudaSurfaceObject_t out) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  const int z = blockIdx.z;
  surf3Dwrite(surf3Dread<unsigned>(in, (x + 1) * 4, y - 1, z + 1, cudaBoundaryModeClamp), out, x * 4, y, z, cudaBoundaryModeZero);
}
