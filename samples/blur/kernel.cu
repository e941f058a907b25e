// A 3 x 3 box blur of a 2D surface, twice: texels beyond the edge repeat the edge (.clamp), or count as zero (.zero).
// kernel.ptx: nvcc -ptx -arch=compute_80 -std=c++17 kernel.cu
#include <cuda_runtime.h>

template <cudaSurfaceBoundaryMode mode>
__device__ float box(cudaSurfaceObject_t source, int x, int y) {
  float sum = 0.0f;
  for (int dy = -1; dy <= 1; ++dy)
    for (int dx = -1; dx <= 1; ++dx) sum += surf2Dread<float>(source, (x + dx) * int(sizeof(float)), y + dy, mode);
  return sum / 9.0f;
}

// Threads outside the picture store too: their texels are out of bounds, and .zero drops them.
extern "C" __global__ void blur(cudaSurfaceObject_t source, cudaSurfaceObject_t clamped, cudaSurfaceObject_t zeroed) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  const int column = x * int(sizeof(float));
  surf2Dwrite(box<cudaBoundaryModeClamp>(source, x, y), clamped, column, y, cudaBoundaryModeZero);
  surf2Dwrite(box<cudaBoundaryModeZero>(source, x, y), zeroed, column, y, cudaBoundaryModeZero);
}
