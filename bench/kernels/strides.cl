kernel void strides(int n, float a, global const float *x, global float *y) {
  const int i = get_global_id(0);
  if (i < n) y[i * 3] = a * x[i * 2] + y[i * 3];
}
