/* The twin of matmul.cu: blocks in parallel, the threads of a block as loops, tiles in arrays. */
enum { TILE = 16 };

static void block(int n, int block_row, int block_column, const float *a, const float *b, float *c) {
  float left[TILE][TILE], right[TILE][TILE], sum[TILE][TILE] = {{0}};
  for (int start = 0; start < n; start += TILE) {
    for (int y = 0; y < TILE; ++y)
      for (int x = 0; x < TILE; ++x) {
        left[y][x] = a[(block_row + y) * n + start + x];
        right[y][x] = b[(start + y) * n + block_column + x];
      }
    for (int y = 0; y < TILE; ++y)
      for (int i = 0; i < TILE; ++i)
        for (int x = 0; x < TILE; ++x) sum[y][x] += left[y][i] * right[i][x];
  }
  for (int y = 0; y < TILE; ++y)
    for (int x = 0; x < TILE; ++x) c[(block_row + y) * n + block_column + x] = sum[y][x];
}

void matmul(int n, const float *a, const float *b, float *c) {
#pragma omp parallel for collapse(2)
  for (int row = 0; row < n; row += TILE)
    for (int column = 0; column < n; column += TILE) block(n, row, column, a, b, c);
}
