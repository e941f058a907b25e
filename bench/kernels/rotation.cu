// A picture, turned about its centre: each point reads the texel of a surface that it comes from, or nothing outside.
#include <cuda_runtime.h>

extern "C" __global__ void rotation(int width, int height, float cosine, float sine, cudaSurfaceObject_t in, float *out) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  const float u = x - width / 2, v = y - height / 2;
  const int from_x = (int)floorf(cosine * u - sine * v) + width / 2,
            from_y = (int)floorf(sine * u + cosine * v) + height / 2;
  out[y * width + x] = surf2Dread<float>(in, from_x * 4, from_y, cudaBoundaryModeZero);
}
