#define TILE 32
#define ROWS 8

kernel void transpose(int width, int height, global const float *in, global float *out) {
  local float tile[TILE][TILE + 1];
  const int column = get_local_id(0), row = get_local_id(1);
  int x = get_group_id(0) * TILE + column, y = get_group_id(1) * TILE + row;
  for (int i = 0; i < TILE; i += ROWS)
    if (x < width && y + i < height) tile[row + i][column] = in[(y + i) * width + x];
  barrier(CLK_LOCAL_MEM_FENCE);
  x = get_group_id(1) * TILE + column;
  y = get_group_id(0) * TILE + row;
  for (int i = 0; i < TILE; i += ROWS)
    if (x < height && y + i < width) out[(y + i) * height + x] = tile[column][row + i];
}
