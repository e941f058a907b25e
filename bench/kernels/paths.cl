kernel void paths(int steps, global const float *moves, global const float *worth, global float *best) {
  local float value[2][64], move[64][64];
  const int state = get_local_id(0), sequence = get_group_id(0);
  global const float *own = worth + (size_t)sequence * steps * 64;
  for (int from = 0; from < 64; ++from) move[from][state] = moves[from * 64 + state];
  value[0][state] = own[state];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int step = 1; step < steps; ++step) {
    float most = -INFINITY;
    for (int from = 0; from < 64; ++from) most = fmax(most, value[(step - 1) % 2][from] + move[from][state]);
    value[step % 2][state] = most + own[step * 64 + state];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  best[sequence * 64 + state] = value[(steps - 1) % 2][state];
}
