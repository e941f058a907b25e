// mbarrier_cuda_atomic
#include <cuda/atomic>
#include <cuda/barrier>
extern "C" __global__ void mb(int* o, int* flag) {
  __shared__ cuda::barrier<cuda::thread_scope_block> b; if (threadIdx.x == 0) init(&b, blockDim.x); __syncthreads();
  o[threadIdx.x] = threadIdx.x; b.arrive_and_wait(); o[blockDim.x + threadIdx.x] = o[threadIdx.x ^ 1];
  cuda::atomic_ref<int, cuda::thread_scope_device> f(*flag); f.fetch_add(1, cuda::memory_order_release); while (threadIdx.x == 0 && f.load(cuda::memory_order_acquire) < (int)blockDim.x) {} f.exchange(3, cuda::memory_order_acq_rel); int e = 3; f.compare_exchange_strong(e, 4, cuda::memory_order_seq_cst); f.store(5, cuda::memory_order_relaxed);
}
