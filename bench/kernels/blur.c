/* All 25 texels of each sum: the middle of a row in vectors, its ends and the outer rows with tests. */
enum { REACH = 2 };

static float tested(const float *in, int width, int height, int x, int y) {
  float sum = 0;
  for (int v = y - REACH; v <= y + REACH; ++v)
    for (int u = x - REACH; u <= x + REACH; ++u)
      if (u >= 0 && u < width && v >= 0 && v < height) sum += in[(long)v * width + u];
  return sum * 0.04f;
}

static void middle(const float *restrict in, int width, int y, float *restrict out) {
#pragma omp simd
  for (int x = REACH; x < width - REACH; ++x) {
    float sum = 0;
    for (int v = -REACH; v <= REACH; ++v)
      for (int u = -REACH; u <= REACH; ++u) sum += in[(long)(y + v) * width + x + u];
    out[(long)y * width + x] = sum * 0.04f;
  }
}

void blur(int width, int height, const float *in, float *out) {
#pragma omp parallel for
  for (int y = 0; y < height; ++y) {
    const int inner = y >= REACH && y < height - REACH && width > 2 * REACH;
    if (inner) middle(in, width, y, out);
    for (int x = 0; x < width; ++x)
      if (!inner || x < REACH || x >= width - REACH) out[(long)y * width + x] = tested(in, width, height, x, y);
  }
}
