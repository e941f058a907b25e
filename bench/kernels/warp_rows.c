void warp_rows(int rows, int columns, const float *matrix, const float *vector, float *product) {
#pragma omp parallel for
  for (int row = 0; row < rows; ++row) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < columns; ++i) sum += matrix[(long)row * columns + i] * vector[i];
    product[row] = sum;
  }
}
