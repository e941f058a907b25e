kernel void sobel(int width, int height, global const uchar *in, global uchar *out) {
  const int x = get_global_id(0), y = get_global_id(1);
  if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) return;
  global const uchar *at = in + y * width + x;
  const int across = at[-width + 1] + 2 * at[1] + at[width + 1] - at[-width - 1] - 2 * at[-1] - at[width - 1];
  const int down = at[width - 1] + 2 * at[width] + at[width + 1] - at[-width - 1] - 2 * at[-width] - at[-width + 1];
  out[y * width + x] = min(abs(across) + abs(down), 255u);
}
