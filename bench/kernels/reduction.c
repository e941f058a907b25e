void reduction(int n, const unsigned *in, unsigned *sum) {
  unsigned total = 0;
#pragma omp parallel for simd reduction(+ : total)
  for (int i = 0; i < n; ++i) total += in[i];
  *sum += total;
}
