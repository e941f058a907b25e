#include <math.h>

static int at_least(int value) { return value < 0 ? 0 : value; }
static int at_most(int value, int limit) { return value > limit ? limit : value; }

void resample(int width, int height, int old_width, int old_height, const unsigned char *restrict in,
              unsigned char *restrict out) {
#pragma omp parallel for
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const float u = (x + 0.5f) * old_width / width - 0.5f, v = (y + 0.5f) * old_height / height - 0.5f;
      const int left = at_least((int)u), top = at_least((int)v);
      const int right = at_most(left + 1, old_width - 1), bottom = at_most(top + 1, old_height - 1);
      const float across = fmaxf(u - left, 0.0f), down = fmaxf(v - top, 0.0f);
      for (int c = 0; c < 4; ++c) {
        const float p = in[(top * old_width + left) * 4 + c], q = in[(top * old_width + right) * 4 + c];
        const float r = in[(bottom * old_width + left) * 4 + c], s = in[(bottom * old_width + right) * 4 + c];
        const float upper = p + (q - p) * across, lower = r + (s - r) * across;
        out[(y * width + x) * 4 + c] = (unsigned char)(upper + (lower - upper) * down + 0.5f);
      }
    }
}
