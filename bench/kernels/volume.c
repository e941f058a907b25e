#include <string.h>

static inline int clamped(int value, int count) { return value < 0 ? 0 : value < count ? value : count - 1; }

void volume(int width, int height, int depth, const unsigned *in, unsigned *out) {
#pragma omp parallel for collapse(2)
  for (int z = 0; z < depth; ++z)
    for (int y = 0; y < height; ++y) {
      const unsigned *from = in + ((long)clamped(z + 1, depth) * height + clamped(y - 1, height)) * width;
      unsigned *to = out + ((long)z * height + y) * width;
      memcpy(to, from + 1, (width - 1) * sizeof *to);
      to[width - 1] = from[width - 1];
    }
}
