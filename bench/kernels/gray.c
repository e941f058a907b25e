void gray(int n, const unsigned char *rgb, unsigned char *out) {
#pragma omp parallel for simd
  for (int i = 0; i < n; ++i) out[i] = (77 * rgb[3 * i] + 150 * rgb[3 * i + 1] + 29 * rgb[3 * i + 2]) >> 8;
}
