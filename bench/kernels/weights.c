enum { BINS = 256 };

void weights(int n, const unsigned *keys, const float *values, float *bins) {
#pragma omp parallel
  {
    float own[BINS] = {0};
#pragma omp for
    for (int i = 0; i < n; ++i) own[keys[i] % BINS] += values[i];
#pragma omp critical
    for (int i = 0; i < BINS; ++i) bins[i] += own[i];
  }
}
