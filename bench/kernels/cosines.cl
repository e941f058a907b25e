enum { SIDE = 8 };

kernel void cosines(int width, global const float *in, global const float *cosine, global float *out) {
  local float tile[SIDE][SIDE + 1], rows[SIDE][SIDE + 1];
  const int x = get_local_id(0), y = get_local_id(1);
  const int place = get_global_id(1) * width + get_global_id(0);
  tile[y][x] = in[place];
  barrier(CLK_LOCAL_MEM_FENCE);
  float sum = 0;
  for (int k = 0; k < SIDE; ++k) sum += cosine[y * SIDE + k] * tile[k][x];
  rows[y][x] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  sum = 0;
  for (int k = 0; k < SIDE; ++k) sum += rows[y][k] * cosine[x * SIDE + k];
  out[place] = sum;
}
