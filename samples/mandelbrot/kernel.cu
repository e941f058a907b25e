// The Mandelbrot set: lanes of a warp leave the loop at different times. Writes counts and an RGBA8 picture.
// kernel.ptx: nvcc -ptx -arch=compute_80 -std=c++17 -fmad=false kernel.cu   (no fma: NumPy can then agree to the bit)
#include <cuda_runtime.h>

extern "C" __global__ void mandelbrot(int width, int height, float left, float top, float step, int limit, int* counts,
                                      uchar4* picture) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (column >= width || row >= height) return;
  const float cx = left + float(column) * step, cy = top - float(row) * step;
  float x = 0.0f, y = 0.0f;
  int count = 0;
  for (; count < limit; ++count) {
    const float xx = x * x, yy = y * y;
    if (xx + yy > 4.0f) break;
    y = 2.0f * x * y + cy;
    x = xx - yy + cx;
  }
  const int i = row * width + column;
  counts[i] = count;
  const bool inside = count == limit;
  picture[i] = make_uchar4(inside ? 0 : count * 9, inside ? 0 : count * 5, inside ? 0 : 255 - count * 3, 255);
}
