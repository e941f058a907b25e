// Rounds until a point leaves the circle of radius 2. Nothing is contracted, so that every machine counts the same.
extern "C" __global__ void mandelbrot(int width, int height, float left, float top, float step, int rounds, int* counts) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (column >= width || row >= height) return;
  const float cx = __fadd_rn(left, __fmul_rn(step, column));
  const float cy = __fadd_rn(top, __fmul_rn(step, row));
  float x = 0.0f, y = 0.0f;
  int count = 0;
  for (; count < rounds; ++count) {
    const float xx = __fmul_rn(x, x), yy = __fmul_rn(y, y);
    if (__fadd_rn(xx, yy) > 4.0f) break;
    const float xy = __fmul_rn(x, y);
    x = __fadd_rn(__fsub_rn(xx, yy), cx);
    y = __fadd_rn(__fadd_rn(xy, xy), cy);
  }
  counts[row * width + column] = count;
}
