#include <stdlib.h>

void sobel(int width, int height, const unsigned char *in, unsigned char *out) {
#pragma omp parallel for
  for (int y = 1; y < height - 1; ++y)
#pragma omp simd
    for (int x = 1; x < width - 1; ++x) {
      const unsigned char *at = in + y * width + x;
      const int across = at[-width + 1] + 2 * at[1] + at[width + 1] - at[-width - 1] - 2 * at[-1] - at[width - 1];
      const int down = at[width - 1] + 2 * at[width] + at[width + 1] - at[-width - 1] - 2 * at[-width] - at[-width + 1];
      const int edge = abs(across) + abs(down);
      out[y * width + x] = edge < 255 ? edge : 255;
    }
}
