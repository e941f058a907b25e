// A matrix by a vector: each thread goes along a row of its own.
extern "C" __global__ void matvec(int columns, const float* matrix, const float* vector, float* out) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int i = 0; i < columns; ++i) sum += matrix[(size_t)row * columns + i] * vector[i];
  out[row] = sum;
}
