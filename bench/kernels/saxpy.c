/* The twin of saxpy.cu: one loop over all threads of the grid. */
void saxpy(unsigned n, float a, const float *x, float *y) {
#pragma omp parallel for simd
  for (unsigned i = 0; i < n; ++i) y[i] = a * x[i] + y[i];
}
