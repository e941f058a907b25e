// A picture of another size, by bilinear interpolation of four bytes each.
extern "C" __global__ void resample(int width, int height, int old_width, int old_height,
                                    const unsigned char *__restrict__ in, unsigned char *__restrict__ out) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  const float u = (x + 0.5f) * old_width / width - 0.5f, v = (y + 0.5f) * old_height / height - 0.5f;
  const int left = max((int)u, 0), top = max((int)v, 0);
  const int right = min(left + 1, old_width - 1), bottom = min(top + 1, old_height - 1);
  const float across = fmaxf(u - left, 0.0f), down = fmaxf(v - top, 0.0f);
  for (int c = 0; c < 4; ++c) {
    const float p = in[(top * old_width + left) * 4 + c], q = in[(top * old_width + right) * 4 + c];
    const float r = in[(bottom * old_width + left) * 4 + c], s = in[(bottom * old_width + right) * 4 + c];
    const float upper = p + (q - p) * across, lower = r + (s - r) * across;
    out[(y * width + x) * 4 + c] = (unsigned char)(upper + (lower - upper) * down + 0.5f);
  }
}
