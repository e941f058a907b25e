kernel void global_histogram(int n, uint mask, global const uint *restrict in, global uint *bins) {
  for (int i = get_global_id(0); i < n; i += get_global_size(0)) atomic_inc(&bins[in[i] & mask]);
}
