// A picture turned around its middle, sampled bilinearly by a texture.
#include <cuda_runtime.h>

extern "C" __global__ void bilinear(cudaTextureObject_t picture, int width, int height, float cosine, float sine, float* out) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  const float u = x - 0.5f * width, v = y - 0.5f * height;
  const float across = cosine * u - sine * v + 0.5f * width, down = sine * u + cosine * v + 0.5f * height;
  out[y * width + x] = tex2D<float>(picture, across + 0.5f, down + 0.5f);
}
