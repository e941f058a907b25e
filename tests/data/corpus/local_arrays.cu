// local_arrays
extern "C" __global__ void loc(const int* x, int* o, int n) {
  int a[64]; int i = threadIdx.x; for (int k = 0; k < 64; k++) a[k] = x[(i * 64 + k) % n];
  for (int p = 0; p < 63; p++) for (int q = 0; q < 63 - p; q++) if (a[q] > a[q + 1]) { int t = a[q]; a[q] = a[q + 1]; a[q + 1] = t; }
  char b[16]; for (int k = 0; k < 16; k++) b[k] = (char)(a[k * 4] + k); int s = 0; for (int k = 0; k < n % 16; k++) s += b[(k * 7) & 15];
  o[i] = a[x[0] & 63] + s; int* p = &a[i & 63]; *p = 5; o[n + i] = a[(i + x[1]) & 63];
}
