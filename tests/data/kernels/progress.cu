// Kernels whose threads wait for each other through memory; compiled by nvcc -arch=sm_80 -ptx.
#include <cooperative_groups.h>
#define KERNEL extern "C" __global__ void

// Inclusive prefix sums in one pass: decoupled look-back. state[0] gives out block numbers; state[1 + i] is block i's
// (flag << 32 | sum): flag 1 is its own sum, flag 2 the sum of all blocks up to it.
KERNEL look_back(const unsigned *in, unsigned *out, unsigned long long *state) {
  __shared__ unsigned values[128], block, before;
  if (threadIdx.x == 0) block = atomicAdd((unsigned *)state, 1u);
  __syncthreads();
  unsigned i = block * 128 + threadIdx.x;
  values[threadIdx.x] = in[i];
  __syncthreads();
  for (unsigned step = 1; step < 128; step *= 2) {
    unsigned left = threadIdx.x >= step ? values[threadIdx.x - step] : 0;
    __syncthreads();
    values[threadIdx.x] += left;
    __syncthreads();
  }
  volatile unsigned long long *flags = state + 1;
  if (threadIdx.x == 127) {
    unsigned own = values[127], sum = 0;
    if (block) flags[block] = 1ull << 32 | own;
    for (int other = (int)block - 1; other >= 0;) {
      unsigned long long seen = flags[other];
      if (!(seen >> 32)) continue;
      sum += (unsigned)seen;
      if (seen >> 32 == 2) break;
      other--;
    }
    flags[block] = 2ull << 32 | (sum + own);
    before = sum;
  }
  __syncthreads();
  out[i] = values[threadIdx.x] + before;
}

// Block b may only go on after block b + 1: the opposite of the order in which blocks start.
KERNEL backwards(volatile unsigned *done, unsigned *order) {
  if (threadIdx.x == 0) {
    if (blockIdx.x + 1 < gridDim.x) while (!done[blockIdx.x + 1]) {}
    order[blockIdx.x] = atomicAdd(&order[gridDim.x], 1u);
    __threadfence();
    done[blockIdx.x] = 1;
  }
}

// One thread of every block takes a ticket, waits for its turn and updates a counter that nothing else protects.
KERNEL ticket_lock(unsigned *next, volatile unsigned *serving, volatile unsigned *counter) {
  if (threadIdx.x) return;
  unsigned ticket = atomicAdd(next, 1u);
  while (*serving != ticket) {}
  __threadfence();
  *counter = *counter + 1;
  __threadfence();
  *serving = ticket + 1;
}

// Warp 0 makes values, warp 1 takes them, one at a time, through a slot in shared memory.
KERNEL producer_consumer(unsigned *out, unsigned n) {
  __shared__ volatile unsigned slot[32], full;
  unsigned lane = threadIdx.x % 32, sum = 0;
  if (threadIdx.x == 0) full = 0;
  __syncthreads();
  for (unsigned k = 1; k <= n; k++) {
    if (threadIdx.x < 32) {
      while (full) {}
      slot[lane] = k * lane;
      __threadfence_block();
      __syncwarp();
      if (lane == 0) full = 1;
    } else {
      while (!full) {}
      sum += slot[lane];
      __threadfence_block();
      __syncwarp();
      if (lane == 0) full = 0;
      __syncwarp();
    }
    __syncwarp();
  }
  if (threadIdx.x >= 32) out[lane] = sum;
}

// Every lane takes the same lock.
KERNEL spin_lock(unsigned *lock, volatile unsigned *counter, unsigned rounds) {
  for (unsigned k = 0; k < rounds; k++) {
    while (atomicCAS(lock, 0u, 1u) != 0) {}
    __threadfence();
    *counter = *counter + 1;
    __threadfence();
    atomicExch(lock, 0u);
  }
}

// Each lane waits for the lane before it; the last one starts.
KERNEL lane_ring(volatile unsigned *token, unsigned *order, unsigned laps) {
  unsigned lane = threadIdx.x % 32;
  for (unsigned lap = 0; lap < laps; lap++) {
    while (*token != lap * 32 + 31 - lane) {}
    order[lap * 32 + 31 - lane] = lane;
    __threadfence();
    *token = lap * 32 + 32 - lane;
  }
}

// Lane 0 waits for what the lanes of the other branch do; all meet afterwards and exchange what they have.
KERNEL branches(volatile unsigned *flag, unsigned *out) {
  unsigned value;
  if (threadIdx.x % 32 == 0) {
    while (*flag != 31) {}
    value = 1000;
  } else {
    value = atomicAdd((unsigned *)flag, 1u);
  }
  __syncwarp();
  out[threadIdx.x] = __shfl_xor_sync(0xffffffffu, value, 1) + __reduce_add_sync(0xffffffffu, value == 1000);
}

// Half a warp waits, inside a function with a barrier of its own half, for the other half.
KERNEL half_warps(volatile unsigned *flag, unsigned *out) {
  unsigned lane = threadIdx.x % 32, half = lane < 16 ? 0xffffu : 0xffff0000u, value = lane;
  if (lane < 16) {
    while (*flag == 0) {}
    value = __shfl_sync(half, lane, 15 - lane);
    __syncwarp(half);
  } else {
    value = __ballot_sync(half, lane & 1);
    __threadfence();
    if (lane == 16) *flag = 1;
    __syncwarp(half);
  }
  __syncthreads();
  out[threadIdx.x] = value + *flag;
}

// A lock for each bucket, taken by whichever lanes hit it; the update is not atomic.
KERNEL buckets(const unsigned *keys, unsigned *locks, volatile unsigned *sums, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned key = keys[i];
  unsigned pause = 8;
  while (atomicCAS(&locks[key], 0u, 1u) != 0) {
    __nanosleep(pause);
    if (pause < 256) pause *= 2;
  }
  __threadfence();
  sums[key] = sums[key] + i;
  __threadfence();
  atomicExch(&locks[key], 0u);
}

// The sum of all, then every element minus the mean of its block sums, twice.
KERNEL grid_sync(const int *in, int *partial, int *out, int n, int rounds) {
  auto grid = cooperative_groups::this_grid();
  for (int round = 0; round < rounds; round++) {
    int sum = 0;
    for (int i = grid.thread_rank(); i < n; i += grid.size()) sum += in[i];
    atomicAdd(&partial[round * gridDim.x + blockIdx.x], sum);
    grid.sync();
    if (grid.thread_rank() == 0) {
      int total = 0;
      for (unsigned b = 0; b < gridDim.x; b++) total += partial[round * gridDim.x + b];
      out[round] = total;
    }
    grid.sync();
    if (threadIdx.x == 0 && out[round] != out[0]) out[rounds] = 1;
  }
}
