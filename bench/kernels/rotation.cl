constant sampler_t nearest = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;

kernel void rotation(int width, int height, float cosine, float sine, read_only image2d_t in, global float *out) {
  const int x = get_global_id(0), y = get_global_id(1);
  if (x >= width || y >= height) return;
  const float u = x - width / 2, v = y - height / 2;
  const int2 from = {(int)floor(cosine * u - sine * v) + width / 2, (int)floor(sine * u + cosine * v) + height / 2};
  out[y * width + x] = read_imagef(in, nearest, from).x;
}
