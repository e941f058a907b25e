kernel void convolution(int width, int height, global const float *taps, global const float *in, global float *out) {
  local float tile[20][36];
  const int left = get_group_id(0) * 32, top = get_group_id(1) * 16, column = get_local_id(0), row = get_local_id(1);
  for (int i = row * 32 + column; i < 20 * 36; i += 32 * 16) {
    const int x = clamp(left + i % 36 - 2, 0, width - 1), y = clamp(top + i / 36 - 2, 0, height - 1);
    tile[i / 36][i % 36] = in[y * width + x];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  float sum = 0;
  for (int v = 0; v < 5; ++v)
    for (int u = 0; u < 5; ++u) sum += taps[v * 5 + u] * tile[row + v][column + u];
  const int x = left + column, y = top + row;
  if (x < width && y < height) out[y * width + x] = sum;
}
