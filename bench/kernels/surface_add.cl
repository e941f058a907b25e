/* OpenCL has no atomics on images: a buffer stands for the surface. */
uint mixed(uint value) {
  value = (value ^ value >> 16) * 0x7feb352du;
  value = (value ^ value >> 15) * 0x846ca68bu;
  return value ^ value >> 16;
}

kernel void surface_add(int n, int width, int height, global uint *sums) {
  const int i = get_global_id(0);
  if (i >= n) return;
  const uint first = mixed(i), second = mixed(first);
  const int x = (int)(first % (width + width / 8)) - width / 16;
  const int y = (int)(second % (height + height / 8)) - height / 16;
  if (x >= 0 && x < width && y >= 0 && y < height) atomic_add(&sums[y * width + x], (uint)(i & 7));
}
