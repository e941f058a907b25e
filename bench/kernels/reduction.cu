// The sum of n words: a grid-stride loop, a tree in dynamic shared memory, one atomic of each block.
extern "C" __global__ void reduction(int n, const unsigned* in, unsigned* sum) {
  extern __shared__ unsigned partial[];
  unsigned own = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) own += in[i];
  partial[threadIdx.x] = own;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(sum, partial[0]);
}
