kernel void gray(int n, global const uchar *rgb, global uchar *out) {
  const int i = get_global_id(0);
  if (i < n) out[i] = (77 * rgb[3 * i] + 150 * rgb[3 * i + 1] + 29 * rgb[3 * i + 2]) >> 8;
}
