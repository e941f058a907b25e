/* Each thread has four tables, so that equal bytes in a row do not wait for each other. */
enum { TABLES = 4, BINS = 256 };

void histogram(int n, const unsigned *in, unsigned *bins) {
#pragma omp parallel
  {
    unsigned table[TABLES][BINS] = {{0}};
#pragma omp for nowait
    for (int i = 0; i < n; ++i)
      for (int t = 0; t < TABLES; ++t) ++table[t][in[i] >> 8 * t & 255];
#pragma omp critical
    for (int bin = 0; bin < BINS; ++bin)
      for (int t = 0; t < TABLES; ++t) bins[bin] += table[t][bin];
  }
}
