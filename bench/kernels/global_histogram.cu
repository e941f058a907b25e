// How often the low bits of n words have each value: one addition to device memory for each word.
extern "C" __global__ void global_histogram(int n, unsigned mask, const unsigned* __restrict__ in, unsigned* bins) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&bins[in[i] & mask], 1u);
}
