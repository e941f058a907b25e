/* Rows in vectors, their ends with bounds. */
enum { REACH = 2, TAPS = 2 * REACH + 1 };

static int bounded(int i, int count) { return i < 0 ? 0 : i < count ? i : count - 1; }

static float at_end(int width, const float *taps, const float *const *rows, int x) {
  float sum = 0;
  for (int v = 0; v < TAPS; ++v)
    for (int u = 0; u < TAPS; ++u) sum += taps[v * TAPS + u] * rows[v][bounded(x + u - REACH, width)];
  return sum;
}

static void middle(int width, const float *restrict taps, const float *const *rows, float *restrict out) {
#pragma omp simd
  for (int x = REACH; x < width - REACH; ++x) {
    float sum = 0;
    for (int v = 0; v < TAPS; ++v)
      for (int u = 0; u < TAPS; ++u) sum += taps[v * TAPS + u] * rows[v][x + u - REACH];
    out[x] = sum;
  }
}

void convolution(int width, int height, const float *taps, const float *in, float *out) {
#pragma omp parallel for
  for (int y = 0; y < height; ++y) {
    const float *rows[TAPS];
    for (int v = 0; v < TAPS; ++v) rows[v] = in + (long)bounded(y + v - REACH, height) * width;
    float *row = out + (long)y * width;
    middle(width, taps, rows, row);
    for (int x = 0; x < width; ++x)
      if (x < REACH || x >= width - REACH) row[x] = at_end(width, taps, rows, x);
  }
}
