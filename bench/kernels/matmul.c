/* 4 rows by 32 columns of the result stay in vectors while k runs; n is a multiple of 32. */
enum { ROWS = 4, COLUMNS = 32 };

static void block(int n, const float *a, const float *b, float *c) {
  float sum[ROWS][COLUMNS] = {{0}};
  for (int k = 0; k < n; ++k)
    for (int row = 0; row < ROWS; ++row) {
      const float left = a[(long)row * n + k];
#pragma omp simd
      for (int column = 0; column < COLUMNS; ++column) sum[row][column] += left * b[(long)k * n + column];
    }
  for (int row = 0; row < ROWS; ++row)
    for (int column = 0; column < COLUMNS; ++column) c[(long)row * n + column] = sum[row][column];
}

void matmul(int n, const float *a, const float *b, float *c) {
#pragma omp parallel for
  for (int row = 0; row < n; row += ROWS)
    for (int column = 0; column < n; column += COLUMNS) block(n, a + (long)row * n, b + column, c + (long)row * n + column);
}
