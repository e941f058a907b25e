/* cub_and_groups.cu: kernels of CUB, cooperative groups and libcu++ that are right, for checkers that must find nothing. */
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>
#include <cub/cub.cuh>
#include <cuda/barrier>
#include <cuda/pipeline>

namespace cg = cooperative_groups;

static void must(cudaError_t error) {
  if (!error) return;
  printf("%s\n", cudaGetErrorString(error));
  exit(1);
}

const int N = 20000;

template <cub::BlockReduceAlgorithm A>
__global__ void block_reduce(const int *in, int *out) {
  using R = cub::BlockReduce<int, 128, A>;
  __shared__ typename R::TempStorage t;
  int s = R(t).Sum(in[blockIdx.x * 128 + threadIdx.x]);
  if (threadIdx.x == 0) out[blockIdx.x] = s;
}
template <cub::BlockScanAlgorithm A>
__global__ void block_scan(const int *in, int *out) {
  using S = cub::BlockScan<int, 128, A>;
  __shared__ typename S::TempStorage t;
  int v = in[blockIdx.x * 128 + threadIdx.x];
  S(t).InclusiveSum(v, v);
  out[blockIdx.x * 128 + threadIdx.x] = v;
}
__global__ void block_sort(const int *in, int *out) {
  using L = cub::BlockLoad<int, 128, 4, cub::BLOCK_LOAD_TRANSPOSE>;
  using W = cub::BlockStore<int, 128, 4, cub::BLOCK_STORE_WARP_TRANSPOSE>;
  using S = cub::BlockRadixSort<int, 128, 4>;
  __shared__ union {
    typename L::TempStorage l;
    typename W::TempStorage w;
    typename S::TempStorage s;
  } t;
  int v[4];
  L(t.l).Load(in + blockIdx.x * 512, v);
  __syncthreads();
  S(t.s).Sort(v);
  __syncthreads();
  W(t.w).Store(out + blockIdx.x * 512, v);
}
__global__ void block_merge(const int *in, int *out) {
  using S = cub::BlockMergeSort<int, 128, 4>;
  __shared__ typename S::TempStorage t;
  int v[4];
  for (int i = 0; i < 4; i++) v[i] = in[blockIdx.x * 512 + threadIdx.x * 4 + i];
  S(t).Sort(v, [](int a, int b) { return a < b; });
  for (int i = 0; i < 4; i++) out[blockIdx.x * 512 + threadIdx.x * 4 + i] = v[i];
}
__global__ void warp_things(const int *in, int *out) {
  using R = cub::WarpReduce<int, 16>;
  using S = cub::WarpScan<int, 8>;
  __shared__ typename R::TempStorage r[8];
  __shared__ typename S::TempStorage s[16];
  int i = threadIdx.x, v = in[blockIdx.x * 128 + i], p;
  int sum = R(r[i / 16]).Sum(v);
  S(s[i / 8]).ExclusiveSum(v, p);
  if (i % 3) sum += cg::coalesced_threads().size();
  out[blockIdx.x * 128 + i] = (i % 16 ? 0 : sum) + p;
}
__global__ void groups(const int *in, int *out) {
  auto block = cg::this_thread_block();
  auto tile = cg::tiled_partition<8>(block);
  auto warp = cg::tiled_partition<32>(block);
  int i = block.thread_rank(), v = in[block.group_index().x * block.size() + i];
  int a = cg::reduce(tile, v, cg::plus<int>());
  int b = cg::inclusive_scan(warp, v);
  auto half = cg::labeled_partition(warp, v & 1);
  int c = cg::reduce(half, v, cg::greater<int>());
  auto two = cg::binary_partition(warp, v & 2);
  c += two.shfl(v, 0) + tile.any(v > 3) + warp.ballot(v > 1);
  if (v & 4) {
    auto g = cg::coalesced_threads();
    c += g.shfl(v, 0) + g.size();
    g.sync();
  }
  __shared__ int s[256];
  s[i] = a;
  tile.sync();
  a += s[i ^ 1];
  block.sync();
  cg::memcpy_async(block, s, in + block.group_index().x * block.size(), sizeof(int) * block.size());
  cg::wait(block);
  out[block.group_index().x * block.size() + i] = a + b + c + s[block.size() - 1 - i];
}
__global__ void grid_sum(int *x, int n) {
  auto grid = cg::this_grid();
  for (int step = n / 2; step; step /= 2) {
    for (int i = grid.thread_rank(); i < step; i += grid.size()) x[i] += x[i + step];
    grid.sync();
  }
}
__global__ void pipelined(const int *in, int *out, int n) {
  constexpr int STAGES = 3;
  __shared__ int s[STAGES][128];
  auto block = cg::this_thread_block();
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, STAGES> state;
  auto pipe = cuda::make_pipeline(block, &state);
  int sum = 0, batches = n / 128;
  for (int b = 0, f = 0; b < batches; b++) {
    for (; f < batches && f < b + STAGES; f++) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, s[f % STAGES], in + f * 128, sizeof(int) * 128, pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    sum += s[b % STAGES][127 - threadIdx.x];
    pipe.consumer_release();
  }
  out[threadIdx.x] = sum;
}
__global__ void barriers(const int *in, int *out) {
  using B = cuda::barrier<cuda::thread_scope_block>;
  __shared__ B bar;
  __shared__ alignas(16) int s[128];
  if (threadIdx.x == 0) init(&bar, blockDim.x);
  __syncthreads();
  auto block = cg::this_thread_block();
  cuda::memcpy_async(block, s, in + blockIdx.x * 128, cuda::aligned_size_t<16>(sizeof s), bar);
  bar.arrive_and_wait();
  int v = s[127 - threadIdx.x];
  auto token = bar.arrive();
  bar.wait(std::move(token));
  s[threadIdx.x] = v;
  bar.arrive_and_wait();
  out[blockIdx.x * 128 + threadIdx.x] = s[threadIdx.x ^ 5];
}
template <class F>
void twice(F f) {
  size_t size = 0;
  void *t = nullptr;
  must(f(t, size));
  must(cudaMalloc(&t, size));
  must(f(t, size));
  must(cudaFree(t));
}
static int wrong;

static void check(const char *what, bool good) {
  if (!good) printf("%s is wrong\n", what);
  wrong += !good;
}
int main() {
  std::vector<int> h(N), r(N);
  for (int i = 0; i < N; i++) h[i] = (i * 7919) % 1009;
  int *x, *y, *z;
  must(cudaMalloc(&x, N * 4));
  must(cudaMalloc(&y, N * 4));
  must(cudaMalloc(&z, N * 4));
  must(cudaMemcpy(x, h.data(), N * 4, cudaMemcpyHostToDevice));
  auto get = [&](int *p, int n) {
    must(cudaDeviceSynchronize());
    must(cudaMemcpy(r.data(), p, n * 4, cudaMemcpyDeviceToHost));
  };
  block_reduce<cub::BLOCK_REDUCE_RAKING><<<8, 128>>>(x, y);
  block_reduce<cub::BLOCK_REDUCE_WARP_REDUCTIONS><<<8, 128>>>(x, y);
  block_reduce<cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY><<<8, 128>>>(x, y);
  get(y, 8);
  check("BlockReduce", r[3] == std::accumulate(&h[384], &h[512], 0));
  block_scan<cub::BLOCK_SCAN_RAKING><<<8, 128>>>(x, y);
  block_scan<cub::BLOCK_SCAN_RAKING_MEMOIZE><<<8, 128>>>(x, y);
  block_scan<cub::BLOCK_SCAN_WARP_SCANS><<<8, 128>>>(x, y);
  get(y, 1024);
  check("BlockScan", r[255] == std::accumulate(&h[128], &h[256], 0));
  block_sort<<<4, 128>>>(x, y);
  get(y, 2048);
  check("BlockRadixSort", std::is_sorted(&r[512], &r[1024]));
  block_merge<<<4, 128>>>(x, y);
  get(y, 2048);
  check("BlockMergeSort", std::is_sorted(&r[512], &r[1024]));
  warp_things<<<8, 128>>>(x, y);
  must(cudaDeviceSynchronize());
  groups<<<8, 256>>>(x, y);
  must(cudaDeviceSynchronize());
  barriers<<<8, 128>>>(x, y);
  get(y, 128);
  check("barrier", r[0] == h[127 - 5]);
  pipelined<<<1, 128>>>(x, y, 128 * 20);
  must(cudaDeviceSynchronize());
  twice([&](void *t, size_t &s) { return cub::DeviceReduce::Sum(t, s, x, y, N); });
  get(y, 1);
  check("DeviceReduce", r[0] == std::accumulate(h.begin(), h.end(), 0));
  twice([&](void *t, size_t &s) { return cub::DeviceScan::InclusiveSum(t, s, x, y, N); });
  get(y, N);
  check("DeviceScan", r[N - 1] == std::accumulate(h.begin(), h.end(), 0));
  twice([&](void *t, size_t &s) { return cub::DeviceRadixSort::SortKeys(t, s, x, y, N); });
  get(y, N);
  check("DeviceRadixSort", std::is_sorted(r.begin(), r.end()));
  twice([&](void *t, size_t &s) { return cub::DeviceRadixSort::SortPairs(t, s, x, y, x, z, N); });
  twice([&](void *t, size_t &s) { return cub::DeviceSelect::Unique(t, s, y, z, z + N - 1, N - 1); });
  twice([&](void *t, size_t &s) { return cub::DeviceHistogram::HistogramEven(t, s, x, y, 17, 0, 1009, N); });
  twice([&](void *t, size_t &s) { return cub::DeviceReduce::ArgMax(t, s, x, (cub::KeyValuePair<int, int> *)y, N); });
  twice([&](void *t, size_t &s) {
    return cub::DeviceMergeSort::SortKeysCopy(t, s, x, y, N, [] __device__(int a, int b) { return a < b; });
  });
  get(y, N);
  check("DeviceMergeSort", std::is_sorted(r.begin(), r.end()));
  twice([&](void *t, size_t &s) { return cub::DeviceRunLengthEncode::Encode(t, s, y, z, x, z + N - 1, N / 4); });
  must(cudaMemcpy(x, h.data(), N * 4, cudaMemcpyHostToDevice));
  int n = 4096;
  void *args[] = {&x, &n};
  must(cudaLaunchCooperativeKernel((void *)grid_sum, 4, 128, args, 0, 0));
  get(x, 1);
  check("grid.sync", r[0] == std::accumulate(&h[0], &h[4096], 0));
  cudaFree(x);
  cudaFree(y);
  cudaFree(z);
  return wrong != 0;
}
