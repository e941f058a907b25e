// The product of two matrices of bytes.
extern "C" __global__ void bytes(int depth, const signed char *a, const signed char *b, int *out) {
  const int width = gridDim.x * blockDim.x;
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  int sum = 0;
  for (int k = 0; k < depth; ++k) sum += a[y * depth + k] * b[k * width + x];
  out[y * width + x] = sum;
}
