// Sorts each run of 512 keys: 45 steps of a network in dynamic shared memory, a barrier before each.
constexpr unsigned kKeys = 512;

extern "C" __global__ void bitonic(int runs, const unsigned* in, unsigned* out) {
  extern __shared__ unsigned keys[];
  const unsigned thread = threadIdx.x, first = blockIdx.x * kKeys;
  keys[thread] = in[first + thread];
  keys[thread + kKeys / 2] = in[first + thread + kKeys / 2];
  for (unsigned size = 2; size <= kKeys; size *= 2)
    for (unsigned distance = size / 2; distance > 0; distance /= 2) {
      __syncthreads();
      const unsigned low = 2 * thread - (thread & (distance - 1)), high = low + distance;
      const unsigned a = keys[low], b = keys[high];
      if ((a > b) == ((low & size) == 0)) {
        keys[low] = b;
        keys[high] = a;
      }
    }
  __syncthreads();
  out[first + thread] = keys[thread];
  out[first + thread + kKeys / 2] = keys[thread + kKeys / 2];
}
