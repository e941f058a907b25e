kernel void row_sums(int columns, global const float *matrix, global float *sums) {
  local float partial[256];
  const size_t thread = get_local_id(0), row = get_group_id(0);
  float own = 0;
  for (int i = thread; i < columns; i += 256) own += matrix[row * columns + i];
  partial[thread] = own;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (size_t half_of = 128; half_of > 0; half_of /= 2) {
    if (thread < half_of) partial[thread] += partial[thread + half_of];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (thread == 0) sums[row] = partial[0];
}
