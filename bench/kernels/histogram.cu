// How often each byte occurs in n words: a table of each block in shared memory, added to the result at its end.
extern "C" __global__ void histogram(int n, const unsigned* in, unsigned* bins) {
  __shared__ unsigned table[256];
  table[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    for (int shift = 0; shift < 32; shift += 8) atomicAdd(&table[in[i] >> shift & 255], 1u);
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], table[threadIdx.x]);
}
