/* The four texels around each place, without a texture. */
static int within(int at, int extent) { return at < 0 ? 0 : at < extent ? at : extent - 1; }

static float mixed(float first, float second, float part) { return first + part * (second - first); }

void bilinear(const float *restrict picture, int width, int height, float cosine, float sine, float *restrict out) {
#pragma omp parallel for
  for (int y = 0; y < height; ++y) {
    const float v = y - 0.5f * height;
#pragma omp simd
    for (int x = 0; x < width; ++x) {
      const float u = x - 0.5f * width;
      const float across = cosine * u - sine * v + 0.5f * width, down = sine * u + cosine * v + 0.5f * height;
      const float left = __builtin_floorf(across), top = __builtin_floorf(down);
      const int x0 = within((int)left, width), x1 = within((int)left + 1, width);
      const int y0 = within((int)top, height), y1 = within((int)top + 1, height);
      const float upper = mixed(picture[y0 * width + x0], picture[y0 * width + x1], across - left);
      const float lower = mixed(picture[y1 * width + x0], picture[y1 * width + x1], across - left);
      out[y * width + x] = mixed(upper, lower, down - top);
    }
  }
}
