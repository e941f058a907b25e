// Sums a 3D surface along z, and writes the running sums to the layers of a layered 2D surface.
// kernel.ptx: nvcc -ptx -arch=compute_80 -std=c++17 kernel.cu
#include <cuda_runtime.h>

extern "C" __global__ void running_sums(int width, int height, int depth, cudaSurfaceObject_t volume,
                                        cudaSurfaceObject_t layers) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  int2 sum = make_int2(0, 0);
  for (int z = 0; z < depth; ++z) {
    const short2 texel = surf3Dread<short2>(volume, x * int(sizeof(short2)), y, z, cudaBoundaryModeTrap);
    sum.x += texel.x;
    sum.y += texel.y;
    surf2DLayeredwrite(sum, layers, x * int(sizeof(int2)), y, z, cudaBoundaryModeTrap);
  }
}

// Mirrors every texel of a 3D surface in place: two threads exchange (x, y, z) and (width - 1 - x, y, z).
extern "C" __global__ void mirror(int width, int height, cudaSurfaceObject_t volume) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  const int z = blockIdx.z;
  if (x >= width / 2 || y >= height) return;
  const int left = x * int(sizeof(short2)), right = (width - 1 - x) * int(sizeof(short2));
  const short2 a = surf3Dread<short2>(volume, left, y, z);
  const short2 b = surf3Dread<short2>(volume, right, y, z);
  surf3Dwrite(b, volume, left, y, z);
  surf3Dwrite(a, volume, right, y, z);
}
