#define TILE 16

kernel void matmul(int n, global const float *a, global const float *b, global float *c) {
  local float left[TILE][TILE], right[TILE][TILE];
  const int x = get_local_id(0), y = get_local_id(1), column = get_global_id(0), row = get_global_id(1);
  float sum = 0;
  for (int start = 0; start < n; start += TILE) {
    left[y][x] = a[row * n + start + x];
    right[y][x] = b[(start + y) * n + column];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < TILE; ++i) sum += left[y][i] * right[i][x];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  c[row * n + column] = sum;
}
