// Paints a chequered picture into a surface, then draws it rotated: the same memory is read as a texture, with linear
// filtering, normalized coordinates, and the picture repeated beyond its edges.
// kernel.ptx: nvcc -ptx -arch=compute_80 -std=c++17 --fmad=false kernel.cu
#include <cuda_runtime.h>

extern "C" __global__ void paint(int width, int height, cudaSurfaceObject_t picture) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  const bool dark = (x / 16 + y / 16) % 2;
  const uchar4 colour = make_uchar4(x * 255 / (width - 1), y * 255 / (height - 1), dark ? 32 : 224, 255);
  surf2Dwrite(colour, picture, x * int(sizeof(uchar4)), y);
}

__device__ unsigned char byte_of(float value) { return (unsigned char)(value * 255.0f + 0.5f); }

extern "C" __global__ void rotate(int width, int height, float cosine, float sine, cudaTextureObject_t source,
                                  cudaSurfaceObject_t rotated) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  const float u = (x + 0.5f) / width - 0.5f;
  const float v = (y + 0.5f) / height - 0.5f;
  const float4 texel = tex2D<float4>(source, u * cosine - v * sine + 0.5f, v * cosine + u * sine + 0.5f);
  const uchar4 colour = make_uchar4(byte_of(texel.x), byte_of(texel.y), byte_of(texel.z), byte_of(texel.w));
  surf2Dwrite(colour, rotated, x * int(sizeof(uchar4)), y);
}
