kernel void bytes(int depth, global const char *a, global const char *b, global int *out) {
  const int width = get_global_size(0), x = get_global_id(0), y = get_global_id(1);
  int sum = 0;
  for (int k = 0; k < depth; ++k) sum += a[y * depth + k] * b[k * width + x];
  out[y * width + x] = sum;
}
