// Bulk copies of sm_90: cuda::device::memcpy_async_tx and the PTX wrappers, a cluster of one.
#include <cuda/barrier>
#include <cuda/ptx>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;

// Each block loads a tile in bulk, doubles it and stores it in bulk.
extern "C" __global__ void doubled(const int* in, int* out) {
  __shared__ alignas(128) int tile[256];
  __shared__ cuda::barrier<cuda::thread_scope_block> ready;
  if (threadIdx.x == 0) { init(&ready, blockDim.x); cuda::device::experimental::fence_proxy_async_shared_cta(); }
  __syncthreads();
  cuda::barrier<cuda::thread_scope_block>::arrival_token token;
  if (threadIdx.x == 0) {
    cuda::device::memcpy_async_tx(tile, in + blockIdx.x * 256, cuda::aligned_size_t<16>(sizeof tile), ready);
    token = cuda::device::barrier_arrive_tx(ready, 1, sizeof tile);
  } else {
    token = ready.arrive();
  }
  ready.wait(std::move(token));
  for (int i = threadIdx.x; i < 256; i += blockDim.x) tile[i] *= 2;
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + blockIdx.x * 256, tile, (uint32_t)sizeof tile);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
  }
}

// All blocks add their tiles into one place in bulk.
extern "C" __global__ void reduced(const int* in, int* out) {
  __shared__ alignas(128) int tile[64];
  tile[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_add, out, tile, (uint32_t)sizeof tile);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
  }
}

// A cluster of one: its rank, its barrier, its own shared memory by rank.
extern "C" __global__ void __cluster_dims__(1, 1, 1) clustered(int* out) {
  __shared__ int slots[64];
  cg::cluster_group cluster = cg::this_cluster();
  slots[threadIdx.x] = threadIdx.x * 5;
  cluster.sync();
  int* other = cluster.map_shared_rank(slots, cluster.block_rank());
  atomicAdd(&other[63 - threadIdx.x], 1);
  cluster.barrier_wait(cluster.barrier_arrive());
  out[blockIdx.x * 64 + threadIdx.x] = slots[threadIdx.x] + 1000 * cluster.num_blocks() + 100 * cluster.block_rank() +
                                      10000 * (cluster.query_shared_rank(slots) + 1);
}
