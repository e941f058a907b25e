#include <math.h>

void rotation(int width, int height, float cosine, float sine, const float *in, float *out) {
#pragma omp parallel for
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const float u = x - width / 2, v = y - height / 2;
      const int from_x = (int)floorf(cosine * u - sine * v) + width / 2;
      const int from_y = (int)floorf(sine * u + cosine * v) + height / 2;
      const int inside = from_x >= 0 && from_x < width && from_y >= 0 && from_y < height;
      out[(long)y * width + x] = inside ? in[(long)from_y * width + from_x] : 0;
    }
}
