#include <string.h>

void bytes(int width, int height, int depth, const signed char *a, const signed char *b, int *out) {
#pragma omp parallel for
  for (int y = 0; y < height; ++y) {
    int *row = out + (long)y * width;
    memset(row, 0, width * sizeof *row);
    for (int k = 0; k < depth; ++k)
      for (int x = 0; x < width; ++x) row[x] += a[y * depth + k] * b[(long)k * width + x];
  }
}
