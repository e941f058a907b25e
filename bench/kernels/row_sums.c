void row_sums(int rows, int columns, const float *matrix, float *sums) {
#pragma omp parallel for
  for (int row = 0; row < rows; ++row) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < columns; ++i) sum += matrix[(long)row * columns + i];
    sums[row] = sum;
  }
}
