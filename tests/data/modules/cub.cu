// Block and warp primitives of CUB and bf16 arithmetic: nvcc -std=c++17 --extended-lambda -arch=sm_80 (cub_80.ptx), sm_90 (cub_90.ptx) -ptx cub.cu
#include <cub/block/block_scan.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_histogram.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>
#include <cuda_bf16.h>
extern "C" __global__ void scan(const int* in, int* out, int* total) {
  using Scan = cub::BlockScan<int, 128>;
  __shared__ typename Scan::TempStorage t;
  int v[4], sum; for (int k = 0; k < 4; k++) v[k] = in[blockIdx.x * 512 + threadIdx.x * 4 + k];
  Scan(t).ExclusiveSum(v, v, sum);
  for (int k = 0; k < 4; k++) out[blockIdx.x * 512 + threadIdx.x * 4 + k] = v[k];
  if (threadIdx.x == 0) total[blockIdx.x] = sum;
}
extern "C" __global__ void raking_max(const int* in, int* out) {
  using Scan = cub::BlockScan<int, 96, cub::BLOCK_SCAN_RAKING>;
  __shared__ typename Scan::TempStorage t;
  int v = in[threadIdx.x], r;
  Scan(t).InclusiveScan(v, r, [] __device__ (int a, int b) { return a > b ? a : b; });
  out[threadIdx.x] = r;
}
extern "C" __global__ void sort(unsigned* keys, int* values) {
  using Sort = cub::BlockRadixSort<unsigned, 128, 4, int>;
  __shared__ typename Sort::TempStorage t;
  unsigned k[4]; int v[4];
  for (int i = 0; i < 4; i++) { k[i] = keys[threadIdx.x * 4 + i]; v[i] = threadIdx.x * 4 + i; }
  Sort(t).Sort(k, v);
  for (int i = 0; i < 4; i++) { keys[threadIdx.x * 4 + i] = k[i]; values[threadIdx.x * 4 + i] = v[i]; }
}
extern "C" __global__ void sort_floats(float* keys) {
  using Sort = cub::BlockRadixSort<float, 64, 3>;
  __shared__ typename Sort::TempStorage t;
  float k[3]; for (int i = 0; i < 3; i++) k[i] = keys[threadIdx.x * 3 + i];
  Sort(t).SortDescending(k);
  for (int i = 0; i < 3; i++) keys[threadIdx.x * 3 + i] = k[i];
}
extern "C" __global__ void reduce(const double* in, double* out, int n) {
  using Reduce = cub::BlockReduce<double, 256>;
  __shared__ typename Reduce::TempStorage t;
  double s = 0; for (int i = threadIdx.x; i < n; i += 256) s += in[i];
  s = Reduce(t).Sum(s);
  if (threadIdx.x == 0) *out = s;
}
extern "C" __global__ void warps(const int* in, int* sums, int* scans, int valid) {
  using R = cub::WarpReduce<int>; using S = cub::WarpScan<int, 16>;
  __shared__ typename R::TempStorage r[4]; __shared__ typename S::TempStorage s[8];
  int v = in[threadIdx.x], w = threadIdx.x / 32, x;
  int sum = R(r[w]).Sum(v, valid);
  if (threadIdx.x % 32 == 0) sums[w] = sum;
  S(s[threadIdx.x / 16]).InclusiveSum(v, x); scans[threadIdx.x] = x;
}
extern "C" __global__ void histogram(const unsigned char* in, unsigned* out) {
  using H = cub::BlockHistogram<unsigned char, 128, 4, 64, cub::BLOCK_HISTO_SORT>;
  __shared__ typename H::TempStorage t; __shared__ unsigned h[64];
  unsigned char v[4]; for (int i = 0; i < 4; i++) v[i] = in[threadIdx.x * 4 + i] & 63;
  H(t).Histogram(v, h); __syncthreads();
  if (threadIdx.x < 64) out[threadIdx.x] = h[threadIdx.x];
}
extern "C" __global__ void bf16(const __nv_bfloat162* a, const __nv_bfloat162* b, __nv_bfloat162* o, float* f, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return;
  __nv_bfloat162 x = a[i], y = b[i]; int k = 0;
  o[n*k++ + i] = __hadd2(x, y); o[n*k++ + i] = __hsub2(x, y); o[n*k++ + i] = __hmul2(x, y); o[n*k++ + i] = __hfma2(x, y, x);
  o[n*k++ + i] = __hmin2(x, y); o[n*k++ + i] = __hmax2(x, y); o[n*k++ + i] = __habs2(__hneg2(x)); o[n*k++ + i] = __h2div(x, y);
  o[n*k++ + i] = __hfma2_relu(x, y, x); o[n*k++ + i] = __floats2bfloat162_rn(__low2float(x) * 3.f, __high2float(y));
  f[i] = __bfloat162float(__low2bfloat16(x)) + __high2float(y); f[n + i] = __hlt(__low2bfloat16(x), __low2bfloat16(y)) ? 1.f : 0.f;
}
