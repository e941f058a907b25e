// Atomic additions at scattered texels of a surface; those that lie outside are dropped.
#include <cuda_runtime.h>

__device__ unsigned mixed(unsigned value) {
  value = (value ^ value >> 16) * 0x7feb352du;
  value = (value ^ value >> 15) * 0x846ca68bu;
  return value ^ value >> 16;
}

extern "C" __global__ void surface_add(int n, int width, int height, cudaSurfaceObject_t sums) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned first = mixed(i), second = mixed(first);
  const int x = (int)(first % (width + width / 8)) - width / 16;
  const int y = (int)(second % (height + height / 8)) - height / 16;
  asm volatile("sured.b.add.2d.u32.zero [%0, {%1, %2}], %3;" ::"l"(sums), "r"(x * 4), "r"(y), "r"(i & 7) : "memory");
}
