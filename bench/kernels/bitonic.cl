#define KEYS 512

kernel void bitonic(int runs, global const uint *in, global uint *out, local uint *keys) {
  const uint thread = get_local_id(0), first = get_group_id(0) * KEYS;
  keys[thread] = in[first + thread];
  keys[thread + KEYS / 2] = in[first + thread + KEYS / 2];
  for (uint size = 2; size <= KEYS; size *= 2)
    for (uint distance = size / 2; distance > 0; distance /= 2) {
      barrier(CLK_LOCAL_MEM_FENCE);
      const uint low = 2 * thread - (thread & (distance - 1)), high = low + distance;
      const uint a = keys[low], b = keys[high];
      if ((a > b) == ((low & size) == 0)) {
        keys[low] = b;
        keys[high] = a;
      }
    }
  barrier(CLK_LOCAL_MEM_FENCE);
  out[first + thread] = keys[thread];
  out[first + thread + KEYS / 2] = keys[thread + KEYS / 2];
}
