constant sampler_t edge = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;

#pragma OPENCL EXTENSION cl_khr_3d_image_writes : enable

kernel void volume(read_only image3d_t in, write_only image3d_t out) {
  const int x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
  if (x < get_image_width(out) && y < get_image_height(out))
    write_imageui(out, (int4)(x, y, z, 0), read_imageui(in, edge, (int4)(x + 1, y - 1, z + 1, 0)));
}
