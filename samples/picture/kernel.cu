// Paints colour discs into an RGBA8 surface by formatted stores: sust.p converts each value to the surface's format.
// CUDA C++ has no formatted surface stores, hence the inline assembly.
// kernel.ptx: nvcc -ptx -arch=compute_80 -std=c++17 -fmad=false kernel.cu
#include <cuda_runtime.h>

__device__ float disc(float x, float y, float cx, float cy, float radius) {
  const float dx = x - cx, dy = y - cy;
  const float level = 1.0f - (dx * dx + dy * dy) / (radius * radius);
  return level > 0.0f ? level * 1.25f : 0.0f;  // above 1 saturates in the store
}

extern "C" __global__ void paint(int width, int height, cudaSurfaceObject_t picture) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  const float u = (float(x) + 0.5f) / float(width), v = (float(y) + 0.5f) / float(height);
  const unsigned red = __float_as_uint(disc(u, v, 0.5f, 0.375f, 0.34375f));
  const unsigned green = __float_as_uint(disc(u, v, 0.375f, 0.625f, 0.34375f));
  const unsigned blue = __float_as_uint(disc(u, v, 0.625f, 0.625f, 0.34375f));
  const unsigned alpha = __float_as_uint(1.0f);
  asm volatile("sust.p.2d.v4.b32.zero [%0, {%1, %2}], {%3, %4, %5, %6};" ::"l"(picture), "r"(x), "r"(y), "r"(red),
               "r"(green), "r"(blue), "r"(alpha)
               : "memory");
}
