// surf_types
#include <cuda_runtime.h>
extern "C" __global__ void copy2d_char(cudaSurfaceObject_t a, cudaSurfaceObject_t b, int w, int h) {
  int x = blockIdx.x*blockDim.x+threadIdx.x, y = blockIdx.y*blockDim.y+threadIdx.y;
  if (x < w && y < h) { char v = surf2Dread<char>(a, x*(int)sizeof(char), y); surf2Dwrite(v, b, x*(int)sizeof(char), y); }
}
extern "C" __global__ void copy2d_unsigned_char(cudaSurfaceObject_t a, cudaSurfaceObject_t b, int w, int h) {
  int x = blockIdx.x*blockDim.x+threadIdx.x, y = blockIdx.y*blockDim.y+threadIdx.y;
  if (x < w && y < h) { unsigned char v = surf2Dread<unsigned char>(a, x*(int)sizeof(unsigned char), y); surf2Dwrite(v, b, x*(int)sizeof(unsigned char), y); }
}
extern "C" __global__ void copy2d_char2(cudaSurfaceObject_t a, cudaSurfaceObject_t b, int w, int h) {
  int x = blockIdx.x*blockDim.x+threadIdx.x, y = blockIdx.y*blockDim.y+threadIdx.y;
  if (x < w && y < h) { char2 v = surf2Dread<char2>(a, x*(int)sizeof(char2), y); surf2Dwrite(v, b, x*(int)sizeof(char2), y); }
}
extern "C" __global__ void copy2d_uchar4(cudaSurfaceObject_t a, cudaSurfaceObject_t b, int w, int h) {
  int x = blockIdx.x*blockDim.x+threadIdx.x, y = blockIdx.y*blockDim.y+threadIdx.y;
  if (x < w && y < h) { uchar4 v = surf2Dread<uchar4>(a, x*(int)sizeof(uchar4), y); surf2Dwrite(v, b, x*(int)sizeof(uchar4), y); }
}
extern "C" __global__ void copy2d_short(cudaSurfaceObject_t a, cudaSurfaceObject_t b, int w, int h) {
  int x = blockIdx.x*blockDim.x+threadIdx.x, y = blockIdx.y*blockDim.y+threadIdx.y;
  if (x < w && y < h) { short v = surf2Dread<short>(a, x*(int)sizeof(short), y); surf2Dwrite(v, b, x*(int)sizeof(short), y); }
}
extern "C" __global__ void copy2d_unsigned_short(cudaSurfaceObject_t a, cudaSurfaceObject_t b, int w, int h) {
  int x = blockIdx.x*blockDim.x+threadIdx.x, y = blockIdx.y*blockDim.y+threadIdx.y;
  if (x < w && y < h) { unsigned short v = surf2Dread<unsigned short>(a, x*(int)sizeof(unsigned short), y); surf2Dwrite(v, b, x*(int)sizeof(unsigned short), y); }
}
extern "C" __global__ void copy2d_ushort2(cudaSurfaceObject_t a, cudaSurfaceObject_t b, int w, int h) {
  int x = blockIdx.x*blockDim.x+threadIdx.x, y = blockIdx.y*blockDim.y+threadIdx.y;
  if (x < w && y < h) { ushort2 v = surf2Dread<ushort2>(a, x*(int)sizeof(ushort2), y); surf2Dwrite(v, b, x*(int)sizeof(ushort2), y); }
}
extern "C" __global__ void copy2d_short4(cudaSurfaceObject_t a, cudaSurfaceObject_t b, int w, int h) {
  int x = blockIdx.x*blockDim.x+threadIdx.x, y = blockIdx.y*blockDim.y+threadIdx.y;
  if (x < w && y < h) { short4 v = surf2Dread<short4>(a, x*(int)sizeof(short4), y); surf2Dwrite(v, b, x*(int)sizeof(short4), y); }
}
extern "C" __global__ void copy2d_int(cudaSurfaceObject_t a, cudaSurfaceObject_t b, int w, int h) {
  int x = blockIdx.x*blockDim.x+threadIdx.x, y = blockIdx.y*blockDim.y+threadIdx.y;
  if (x < w && y < h) { int v = surf2Dread<int>(a, x*(int)sizeof(int), y); surf2Dwrite(v, b, x*(int)sizeof(int), y); }
}
extern "C" __global__ void copy2d_unsigned_int(cudaSurfaceObject_t a, cudaSurfaceObject_t b, int w, int h) {
  int x = blockIdx.x*blockDim.x+threadIdx.x, y = blockIdx.y*blockDim.y+threadIdx.y;
  if (x < w && y < h) { unsigned int v = surf2Dread<unsigned int>(a, x*(int)sizeof(unsigned int), y); surf2Dwrite(v, b, x*(int)sizeof(unsigned int), y); }
}
extern "C" __global__ void copy2d_int2(cudaSurfaceObject_t a, cudaSurfaceObject_t b, int w, int h) {
  int x = blockIdx.x*blockDim.x+threadIdx.x, y = blockIdx.y*blockDim.y+threadIdx.y;
  if (x < w && y < h) { int2 v = surf2Dread<int2>(a, x*(int)sizeof(int2), y); surf2Dwrite(v, b, x*(int)sizeof(int2), y); }
}
extern "C" __global__ void copy2d_uint4(cudaSurfaceObject_t a, cudaSurfaceObject_t b, int w, int h) {
  int x = blockIdx.x*blockDim.x+threadIdx.x, y = blockIdx.y*blockDim.y+threadIdx.y;
  if (x < w && y < h) { uint4 v = surf2Dread<uint4>(a, x*(int)sizeof(uint4), y); surf2Dwrite(v, b, x*(int)sizeof(uint4), y); }
}
extern "C" __global__ void copy2d_long_long(cudaSurfaceObject_t a, cudaSurfaceObject_t b, int w, int h) {
  int x = blockIdx.x*blockDim.x+threadIdx.x, y = blockIdx.y*blockDim.y+threadIdx.y;
  if (x < w && y < h) { long long v = surf2Dread<long long>(a, x*(int)sizeof(long long), y); surf2Dwrite(v, b, x*(int)sizeof(long long), y); }
}
extern "C" __global__ void copy2d_unsigned_long_long(cudaSurfaceObject_t a, cudaSurfaceObject_t b, int w, int h) {
  int x = blockIdx.x*blockDim.x+threadIdx.x, y = blockIdx.y*blockDim.y+threadIdx.y;
  if (x < w && y < h) { unsigned long long v = surf2Dread<unsigned long long>(a, x*(int)sizeof(unsigned long long), y); surf2Dwrite(v, b, x*(int)sizeof(unsigned long long), y); }
}
extern "C" __global__ void copy2d_longlong2(cudaSurfaceObject_t a, cudaSurfaceObject_t b, int w, int h) {
  int x = blockIdx.x*blockDim.x+threadIdx.x, y = blockIdx.y*blockDim.y+threadIdx.y;
  if (x < w && y < h) { longlong2 v = surf2Dread<longlong2>(a, x*(int)sizeof(longlong2), y); surf2Dwrite(v, b, x*(int)sizeof(longlong2), y); }
}
extern "C" __global__ void copy2d_float(cudaSurfaceObject_t a, cudaSurfaceObject_t b, int w, int h) {
  int x = blockIdx.x*blockDim.x+threadIdx.x, y = blockIdx.y*blockDim.y+threadIdx.y;
  if (x < w && y < h) { float v = surf2Dread<float>(a, x*(int)sizeof(float), y); surf2Dwrite(v, b, x*(int)sizeof(float), y); }
}
extern "C" __global__ void copy2d_float2(cudaSurfaceObject_t a, cudaSurfaceObject_t b, int w, int h) {
  int x = blockIdx.x*blockDim.x+threadIdx.x, y = blockIdx.y*blockDim.y+threadIdx.y;
  if (x < w && y < h) { float2 v = surf2Dread<float2>(a, x*(int)sizeof(float2), y); surf2Dwrite(v, b, x*(int)sizeof(float2), y); }
}
extern "C" __global__ void copy2d_float4(cudaSurfaceObject_t a, cudaSurfaceObject_t b, int w, int h) {
  int x = blockIdx.x*blockDim.x+threadIdx.x, y = blockIdx.y*blockDim.y+threadIdx.y;
  if (x < w && y < h) { float4 v = surf2Dread<float4>(a, x*(int)sizeof(float4), y); surf2Dwrite(v, b, x*(int)sizeof(float4), y); }
}

