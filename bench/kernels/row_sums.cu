// The sum of each row of a matrix: a block for each, whose threads take every 256th element, and a tree in shared memory.
constexpr unsigned kThreads = 256;

extern "C" __global__ void row_sums(int columns, const float* matrix, float* sums) {
  __shared__ float partial[kThreads];
  const unsigned thread = threadIdx.x;
  float own = 0;
  for (int i = thread; i < columns; i += kThreads) own += matrix[(size_t)blockIdx.x * columns + i];
  partial[thread] = own;
  __syncthreads();
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    if (thread < half) partial[thread] += partial[thread + half];
    __syncthreads();
  }
  if (thread == 0) sums[blockIdx.x] = partial[0];
}
