/* Blocks of one cache line by one cache line. */
enum { SIDE = 16 };

static inline int least(int a, int b) { return a < b ? a : b; }

void transpose(int width, int height, const float *in, float *out) {
#pragma omp parallel for collapse(2)
  for (int y = 0; y < height; y += SIDE)
    for (int x = 0; x < width; x += SIDE)
      for (int column = x; column < least(x + SIDE, width); ++column)
        for (int row = y; row < least(y + SIDE, height); ++row)
          out[(long)column * height + row] = in[(long)row * width + column];
}
