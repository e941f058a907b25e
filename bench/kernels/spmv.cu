// A sparse matrix (compressed rows) times a vector, a row of each thread.
extern "C" __global__ void spmv(int rows, const int* starts, const int* columns, const float* values, const float* x, float* y) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int k = starts[row]; k < starts[row + 1]; ++k) sum += values[k] * x[columns[k]];
  y[row] = sum;
}
