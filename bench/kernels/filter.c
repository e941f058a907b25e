/* All taps of the elements that have them, then the last ones. */
enum { TAPS = 17 };

void filter(int n, const float *in, const float *taps, float *out) {
  const int whole = n < TAPS ? 0 : n - TAPS + 1;
#pragma omp parallel for simd
  for (int i = 0; i < whole; ++i) {
    float sum = 0;
    for (int k = 0; k < TAPS; ++k) sum += taps[k] * in[i + k];
    out[i] = sum;
  }
  for (int i = whole; i < n; ++i) {
    float sum = 0;
    for (int k = 0; i + k < n; ++k) sum += taps[k] * in[i + k];
    out[i] = sum;
  }
}
