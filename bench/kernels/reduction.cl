kernel void reduction(int n, global const uint *in, global uint *sum, local uint *partial) {
  const uint thread = get_local_id(0);
  uint own = 0;
  for (int i = get_global_id(0); i < n; i += get_global_size(0)) own += in[i];
  partial[thread] = own;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint span = get_local_size(0) / 2; span > 0; span /= 2) {
    if (thread < span) partial[thread] += partial[thread + span];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (thread == 0) atomic_add(sum, partial[0]);
}
