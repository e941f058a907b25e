constant sampler_t zero = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;

kernel void blur(read_only image2d_t in, write_only image2d_t out) {
  const int x = get_global_id(0), y = get_global_id(1);
  float sum = 0;
  for (int dy = -2; dy <= 2; ++dy)
    for (int dx = -2; dx <= 2; ++dx) sum += read_imagef(in, zero, (int2)(x + dx, y + dy)).x;
  if (x < get_image_width(out) && y < get_image_height(out)) write_imagef(out, (int2)(x, y), (float4)(sum * 0.04f, 0, 0, 1));
}
