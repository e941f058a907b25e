// A 5 x 5 box blur of a surface; what lies outside counts as zero.
#include <cuda_runtime.h>

extern "C" __global__ void blur(cudaSurfaceObject_t in, cudaSurfaceObject_t out) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  float sum = 0.0f;
#pragma unroll
  for (int dy = -2; dy <= 2; ++dy)
#pragma unroll
    for (int dx = -2; dx <= 2; ++dx) sum += surf2Dread<float>(in, (x + dx) * 4, y + dy, cudaBoundaryModeZero);
  surf2Dwrite(sum * 0.04f, out, x * 4, y, cudaBoundaryModeZero);
}
