// One partial sum a block by a tree reduction in shared memory; a counter tells how many blocks have finished.
// kernel.ptx: nvcc -ptx -arch=compute_80 -std=c++17 kernel.cu
constexpr unsigned kThreads = 256;

extern "C" __global__ void block_sums(unsigned n, const float* values, float* sums, unsigned* finished) {
  __shared__ float partial[kThreads];
  const unsigned lane = threadIdx.x;
  float sum = 0.0f;
  for (unsigned i = blockIdx.x * blockDim.x + lane; i < n; i += gridDim.x * blockDim.x) sum += values[i];
  partial[lane] = sum;
  __syncthreads();
  for (unsigned stride = kThreads / 2; stride > 0; stride /= 2) {
    if (lane < stride) partial[lane] += partial[lane + stride];
    __syncthreads();
  }
  if (lane == 0) {
    sums[blockIdx.x] = partial[0];
    atomicAdd(finished, 1u);
  }
}

// A second launch adds the partial sums up, with dynamic shared memory.
extern "C" __global__ void total(unsigned count, const float* sums, float* result) {
  extern __shared__ float window[];
  const unsigned lane = threadIdx.x;
  window[lane] = lane < count ? sums[lane] : 0.0f;
  __syncthreads();
  for (unsigned stride = blockDim.x / 2; stride > 0; stride /= 2) {
    if (lane < stride) window[lane] += window[lane + stride];
    __syncthreads();
  }
  if (lane == 0) *result = window[0];
}
