// Threads that hand data on by fences, flags and locks: nvcc -std=c++17 -arch=sm_90 -ptx fences.cu
// Who comes late finds what others have left, so that each fence, and its scope, matters. Errors are planted there (seeded.py).
#include <cooperative_groups.h>
#include <cuda/atomic>

// The last block to come adds up what all have left.
extern "C" __global__ void last_block(const unsigned* x, unsigned* sums, unsigned* count, unsigned* out) {
  __shared__ unsigned sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, x[blockIdx.x * blockDim.x + threadIdx.x]);
  __syncthreads();
  if (threadIdx.x) return;
  sums[blockIdx.x] = sum;
  __threadfence();
  if (atomicAdd(count, 1) != gridDim.x - 1) return;
  unsigned all = 0;
  for (unsigned i = 0; i < gridDim.x; i++) all += sums[i];
  *out = all;
}

// Each block waits for the one before it, and takes its sum.
extern "C" __global__ void look_back(const unsigned* x, unsigned* sums, volatile unsigned* flags) {
  if (threadIdx.x) return;
  unsigned before = 0;
  if (blockIdx.x) {
    while (!flags[blockIdx.x - 1]) {}
    __threadfence();
    before = sums[blockIdx.x - 1];
  }
  sums[blockIdx.x] = before + x[blockIdx.x];
  __threadfence();
  flags[blockIdx.x] = 1;
}

// A counter that only who has the lock may touch.
extern "C" __global__ void lock(unsigned* taken, unsigned* counter) {
  if (threadIdx.x) return;
  while (atomicCAS(taken, 0, 1)) {}
  __threadfence();
  *counter += blockIdx.x;
  __threadfence();
  atomicExch(taken, 0);
}

// Warp 0 of each block gives what the others take, without a barrier.
extern "C" __global__ void warps(const unsigned* x, unsigned* y) {
  __shared__ unsigned data[32];
  __shared__ volatile unsigned ready;
  unsigned lane = threadIdx.x % 32;
  if (threadIdx.x == 0) ready = 0;
  __syncthreads();
  if (threadIdx.x < 32) {
    data[lane] = x[blockIdx.x * 32 + lane];
    __threadfence_block();
    __syncwarp();
    if (lane == 0) ready = 1;
  } else {
    while (!ready) {}
    __threadfence_block();
    y[blockIdx.x * blockDim.x + threadIdx.x] = data[lane];
  }
}

// The first block of each cluster hands a word on to the others.
extern "C" __global__ void cluster(const unsigned* x, unsigned* words, unsigned* flags, unsigned* y) {
  auto all = cooperative_groups::this_cluster();
  unsigned number = blockIdx.x / all.num_blocks(), rank = all.block_rank(), seen = 0;
  unsigned *word = words + number, *flag = flags + number;
  if (threadIdx.x) return;
  if (rank == 0) {
    *word = x[number];
    asm volatile("fence.acq_rel.cluster;" ::: "memory");
    asm volatile("st.relaxed.cluster.global.u32 [%0], 1;" ::"l"(flag) : "memory");
  } else {
    do asm volatile("ld.relaxed.cluster.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    while (!seen);
    asm volatile("fence.acq_rel.cluster;" ::: "memory");
  }
  y[blockIdx.x] = *word;
}

// The same by atomics of the standard library, from block 0 to all others.
extern "C" __global__ void publish(const unsigned* x, unsigned* word, unsigned* flag, unsigned* y) {
  cuda::atomic_ref<unsigned, cuda::thread_scope_device> ready(*flag);
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    *word = x[0];
    ready.store(1, cuda::memory_order_release);
  } else {
    while (!ready.load(cuda::memory_order_acquire)) {}
  }
  y[blockIdx.x] = *word;
}
