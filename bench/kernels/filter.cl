kernel void filter(int n, global const float *in, global const float *taps, global float *out) {
  const int i = get_global_id(0);
  if (i >= n) return;
  float sum = 0;
  for (int k = 0; k < 17; ++k)
    if (i + k < n) sum += taps[k] * in[i + k];
  out[i] = sum;
}
