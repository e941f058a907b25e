// Inclusive prefix sums, block by block: a shuffle scan in each warp, then one of the warps' totals.
// kernel.ptx: nvcc -ptx -arch=compute_80 -std=c++17 kernel.cu
__device__ int warp_scan(int value, unsigned lane) {
  for (unsigned distance = 1; distance < 32; distance *= 2) {
    const int below = __shfl_up_sync(0xffffffffu, value, distance);
    if (lane >= distance) value += below;
  }
  return value;
}

extern "C" __global__ void block_scan(unsigned n, const int* values, int* sums) {
  __shared__ int totals[32];
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int sum = warp_scan(i < n ? values[i] : 0, lane);
  if (lane == 31) totals[warp] = sum;
  __syncthreads();
  if (warp == 0) totals[lane] = warp_scan(lane < blockDim.x / 32 ? totals[lane] : 0, lane);
  __syncthreads();
  if (i < n) sums[i] = sum + (warp > 0 ? totals[warp - 1] : 0);
}
