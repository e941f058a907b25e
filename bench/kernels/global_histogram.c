#include <stdlib.h>

/* Each thread has a table. */
void global_histogram(int n, unsigned mask, const unsigned *in, unsigned *bins) {
#pragma omp parallel
  {
    unsigned *table = calloc((size_t)mask + 1, sizeof *table);
#pragma omp for nowait
    for (int i = 0; i < n; ++i) ++table[in[i] & mask];
#pragma omp critical
    for (size_t bin = 0; bin <= mask; ++bin) bins[bin] += table[bin];
    free(table);
  }
}
