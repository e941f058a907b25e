// Asynchronous copies and barriers as CUDA C++ offers them.
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;

// out[i] = in[n - 1 - i] for a block, through shared memory that cuda::memcpy_async fills and a cuda::barrier guards.
extern "C" __global__ void reverse(const int* in, int* out) {
  __shared__ alignas(16) int tile[256];
  __shared__ cuda::barrier<cuda::thread_scope_block> ready;
  if (threadIdx.x == 0) init(&ready, blockDim.x);
  __syncthreads();
  cg::thread_block block = cg::this_thread_block();
  cuda::memcpy_async(block, tile, in + blockIdx.x * blockDim.x, sizeof(int) * blockDim.x, ready);
  ready.arrive_and_wait();
  out[blockIdx.x * blockDim.x + threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}

// out[block] = sum of its rows, in four stages of a cuda::pipeline, each thread copying its own 16 bytes.
extern "C" __global__ void staged(const int4* in, int* out, int rows) {
  __shared__ int4 stage[4][64];
  __shared__ int total;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  cuda::pipeline<cuda::thread_scope_thread> pipe = cuda::make_pipeline();
  const int4* mine = in + (size_t)blockIdx.x * rows * blockDim.x + threadIdx.x;
  int sum = 0;
  for (int next = 0, row = 0; row < rows; row++) {
    for (; next < rows && next < row + 4; next++) {
      pipe.producer_acquire();
      cuda::memcpy_async(&stage[next % 4][threadIdx.x], mine + next * blockDim.x, cuda::aligned_size_t<16>(16), pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    int4 v = stage[row % 4][threadIdx.x];
    sum += v.x + 2 * v.y + 3 * v.z + 4 * v.w;
    pipe.consumer_release();
  }
  atomicAdd(&total, sum);
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = total;
}

// Producer and consumer threads of a block share a pipeline: even warps copy, odd warps add.
extern "C" __global__ void shared_pipeline(const int* in, int* out, int batches) {
  constexpr int stages = 2, width = 64;
  __shared__ int buffer[stages][width];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
  cg::thread_block block = cg::this_thread_block();
  bool producer = (threadIdx.x / 32) % 2 == 0;
  auto role = producer ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
  cuda::pipeline<cuda::thread_scope_block> pipe = cuda::make_pipeline(block, &state, role);
  int lane = threadIdx.x / 64 * 32 + threadIdx.x % 32, sum = 0;
  if (producer) {
    for (int b = 0; b < batches; b++) {
      pipe.producer_acquire();
      cuda::memcpy_async(&buffer[b % stages][lane], in + b * width + lane, sizeof(int), pipe);
      pipe.producer_commit();
    }
  } else {
    for (int b = 0; b < batches; b++) {
      pipe.consumer_wait();
      sum = sum * 3 + buffer[b % stages][width - 1 - lane];
      pipe.consumer_release();
    }
    out[lane] = sum;
  }
}

// Phases of a barrier with a completion function; the threads of warp w drop out after w turns, so the last warp turns alone.
struct Count { int* calls; __device__ void operator()() noexcept { ++*calls; } };
extern "C" __global__ void phases(int* out, int* calls) {
  using Barrier = cuda::barrier<cuda::thread_scope_block, Count>;
  __shared__ alignas(Barrier) char raw[sizeof(Barrier)];
  __shared__ int sum[8];
  Barrier& barrier = *reinterpret_cast<Barrier*>(raw);
  if (threadIdx.x == 0) new (&barrier) Barrier(blockDim.x, Count{calls});
  if (threadIdx.x < 8) sum[threadIdx.x] = 0;
  __syncthreads();
  int seen = 0;
  for (int turn = 0; turn < threadIdx.x / 32; turn++) {
    atomicAdd(&sum[turn], 1);
    barrier.arrive_and_wait();
    seen = seen * 1000 + sum[turn];
  }
  barrier.arrive_and_drop();
  out[threadIdx.x] = seen;
}
