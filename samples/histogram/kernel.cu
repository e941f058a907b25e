// A histogram of bytes: each block counts in shared memory, then adds its bins to the global ones by atomics.
// kernel.ptx: nvcc -ptx -arch=compute_80 -std=c++17 kernel.cu
constexpr unsigned kBins = 256;

extern "C" __global__ void histogram(unsigned n, const unsigned char* values, unsigned* bins) {
  __shared__ unsigned local[kBins];
  for (unsigned bin = threadIdx.x; bin < kBins; bin += blockDim.x) local[bin] = 0;
  __syncthreads();
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    atomicAdd(&local[values[i]], 1u);
  }
  __syncthreads();
  for (unsigned bin = threadIdx.x; bin < kBins; bin += blockDim.x) {
    if (local[bin] != 0) atomicAdd(&bins[bin], local[bin]);
  }
}
