kernel void warp_rows(int rows, int columns, global const float *matrix, global const float *vector, global float *product) {
  local float partial[128];
  const int row = get_global_id(0) / 32, lane = get_local_id(0) % 32, thread = get_local_id(0);
  float sum = 0;
  for (int i = lane; row < rows && i < columns; i += 32) sum += matrix[(size_t)row * columns + i] * vector[i];
  partial[thread] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int distance = 16; distance > 0; distance /= 2) {
    if (lane < distance) partial[thread] += partial[thread + distance];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (lane == 0 && row < rows) product[row] = partial[thread];
}
