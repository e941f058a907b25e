kernel void histogram(int n, global const uint *in, global uint *bins) {
  local uint table[256];
  const uint thread = get_local_id(0);
  table[thread] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = get_global_id(0); i < n; i += get_global_size(0))
    for (int shift = 0; shift < 32; shift += 8) atomic_inc(&table[in[i] >> shift & 255]);
  barrier(CLK_LOCAL_MEM_FENCE);
  atomic_add(&bins[thread], table[thread]);
}
