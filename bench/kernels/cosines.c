enum { SIDE = 8 };

static void transform(int width, const float *in, const float *cosine, float *out) {
  float rows[SIDE][SIDE];
  for (int y = 0; y < SIDE; ++y)
    for (int x = 0; x < SIDE; ++x) {
      float sum = 0;
      for (int k = 0; k < SIDE; ++k) sum += cosine[y * SIDE + k] * in[k * width + x];
      rows[y][x] = sum;
    }
  for (int y = 0; y < SIDE; ++y)
    for (int x = 0; x < SIDE; ++x) {
      float sum = 0;
      for (int k = 0; k < SIDE; ++k) sum += rows[y][k] * cosine[x * SIDE + k];
      out[y * width + x] = sum;
    }
}

void cosines(int height, int width, const float *in, const float *cosine, float *out) {
#pragma omp parallel for
  for (int y = 0; y < height; y += SIDE)
    for (int x = 0; x < width; x += SIDE) transform(width, in + (long)y * width + x, cosine, out + (long)y * width + x);
}
