// Sums of all words up to each, within blocks of 256, and the largest of each block: by shuffles within a warp.
constexpr unsigned kAll = 0xffffffff, kWarps = 8;

extern "C" __global__ void scan(int blocks, const unsigned* in, unsigned* out, unsigned* largest) {
  __shared__ unsigned sums[kWarps], maxima[kWarps];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, i = blockIdx.x * 256 + threadIdx.x;
  unsigned sum = in[i], maximum = sum;
#pragma unroll
  for (unsigned distance = 1; distance < 32; distance *= 2) {
    const unsigned below = __shfl_up_sync(kAll, sum, distance);
    if (lane >= distance) sum += below;
  }
#pragma unroll
  for (unsigned distance = 16; distance > 0; distance /= 2) maximum = max(maximum, __shfl_xor_sync(kAll, maximum, distance));
  if (lane == 31) sums[warp] = sum;
  if (lane == 0) maxima[warp] = maximum;
  __syncthreads();
#pragma unroll
  for (unsigned other = 0; other < kWarps; ++other) {
    if (other < warp) sum += sums[other];
    maximum = max(maximum, maxima[other]);
  }
  out[i] = sum;
  if (threadIdx.x == 0) largest[blockIdx.x] = maximum;
}
