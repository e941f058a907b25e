// A matrix by a vector: a warp for each row, whose lanes take every 32nd element.
extern "C" __global__ void warp_rows(int rows, int columns, const float* matrix, const float* vector, float* product) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  float sum = 0;
  for (int i = lane; i < columns; i += 32) sum += matrix[(size_t)row * columns + i] * vector[i];
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_down_sync(0xffffffff, sum, distance);
  if (lane == 0) product[row] = sum;
}
