kernel void matvec(int columns, global const float *matrix, global const float *vector, global float *out) {
  const size_t row = get_global_id(0);
  float sum = 0;
  for (int i = 0; i < columns; ++i) sum += matrix[row * columns + i] * vector[i];
  out[row] = sum;
}
