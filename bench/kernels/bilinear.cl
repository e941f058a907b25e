constant sampler_t smooth = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_LINEAR;

kernel void bilinear(read_only image2d_t picture, int width, int height, float cosine, float sine, global float* out) {
  const int x = get_global_id(0), y = get_global_id(1);
  if (x >= width || y >= height) return;
  const float u = x - 0.5f * width, v = y - 0.5f * height;
  const float across = cosine * u - sine * v + 0.5f * width, down = sine * u + cosine * v + 0.5f * height;
  out[y * width + x] = read_imagef(picture, smooth, (float2)(across + 0.5f, down + 0.5f)).x;
}
