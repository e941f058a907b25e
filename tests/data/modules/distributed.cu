// Distributed shared memory: a histogram and sums of clusters, with and without the barriers that they need.
// nvcc -arch=sm_90 -ptx distributed.cu -o distributed_90.ptx
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

enum { NONE, FIRST, LAST };  // the barrier that is left out

template <int LEFT_OUT> __device__ void histogram(const unsigned *data, int n, unsigned *bins, int count) {
  extern __shared__ unsigned part[];
  cg::cluster_group cluster = cg::this_cluster();
  int mine = count / cluster.num_blocks();
  for (int i = threadIdx.x; i < mine; i += blockDim.x) part[i] = 0;
  if (LEFT_OUT != FIRST) cluster.sync();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    unsigned bin = data[i] % count;
    atomicAdd(cluster.map_shared_rank(part, bin / mine) + bin % mine, 1u);
  }
  if (LEFT_OUT != LAST) cluster.sync();
  for (int i = threadIdx.x; i < mine; i += blockDim.x) atomicAdd(&bins[cluster.block_rank() * mine + i], part[i]);
}

template <int LEFT_OUT> __device__ void sums(const unsigned *data, unsigned *out) {
  __shared__ unsigned sum;
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, data[blockIdx.x * blockDim.x + threadIdx.x]);
  if (LEFT_OUT != FIRST) cluster.sync();
  if (cluster.block_rank() == 0 && threadIdx.x == 0) {
    unsigned all = 0;
    for (unsigned rank = 0; rank < cluster.num_blocks(); rank++) all += *cluster.map_shared_rank(&sum, rank);
    out[blockIdx.x / cluster.num_blocks()] = all;
  }
  if (LEFT_OUT != LAST) cluster.sync();
  if (threadIdx.x == 0) sum = 1;  // the memory is used for something else
}

#define KERNELS(name, left_out)                                                                              \
  extern "C" __global__ void histogram_##name(const unsigned *data, int n, unsigned *bins, int count) {      \
    histogram<left_out>(data, n, bins, count);                                                               \
  }                                                                                                          \
  extern "C" __global__ void sums_##name(const unsigned *data, unsigned *out) { sums<left_out>(data, out); }

KERNELS(right, NONE)
KERNELS(without_first, FIRST)
KERNELS(without_last, LAST)
