#pragma OPENCL FP_CONTRACT OFF

kernel void mandelbrot(int width, int height, float left, float top, float step, int rounds, global int *counts) {
  const int column = get_global_id(0), row = get_global_id(1);
  if (column >= width || row >= height) return;
  const float cx = left + step * column, cy = top + step * row;
  float x = 0, y = 0;
  int count = 0;
  for (; count < rounds; ++count) {
    const float xx = x * x, yy = y * y, xy = x * y;
    if (xx + yy > 4) break;
    x = (xx - yy) + cx;
    y = (xy + xy) + cy;
  }
  counts[row * width + column] = count;
}
