// Counts pairs of values in a 2D surface by sured, and keeps each row's greatest value in a 1D surface.
// CUDA C++ has no surface reductions, hence the inline assembly.
// kernel.ptx: nvcc -ptx -arch=compute_80 -std=c++17 kernel.cu
#include <cuda_runtime.h>

extern "C" __global__ void joint_histogram(unsigned n, const unsigned* first, const unsigned* second,
                                           cudaSurfaceObject_t counts, cudaSurfaceObject_t greatest) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int x = int(first[i]), y = int(second[i]);
  // .b takes x in bytes; bins outside the surface are dropped.
  asm volatile("sured.b.add.2d.u32.zero [%0, {%1, %2}], %3;" ::"l"(counts), "r"(x * 4), "r"(y), "r"(1) : "memory");
  // .p takes x in elements; rows outside land on the nearest one.
  asm volatile("sured.p.max.1d.b32.clamp [%0, {%1}], %2;" ::"l"(greatest), "r"(y), "r"(x) : "memory");
}
