/* In local memory: not every platform has shuffles, and where they are they gain nothing. */
#define BLOCK 256

kernel void scan(int blocks, global const uint *in, global uint *out, global uint *largest) {
  local uint sums[2][BLOCK], maxima[BLOCK];
  const uint thread = get_local_id(0), i = get_global_id(0);
  uint now = 0;
  sums[now][thread] = maxima[thread] = in[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint distance = 1; distance < BLOCK; distance *= 2) {
    sums[1 - now][thread] = sums[now][thread] + (thread >= distance ? sums[now][thread - distance] : 0);
    now = 1 - now;
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (uint span = BLOCK / 2; span > 0; span /= 2) {
    if (thread < span) maxima[thread] = max(maxima[thread], maxima[thread + span]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  out[i] = sums[now][thread];
  if (thread == 0) largest[get_group_id(0)] = maxima[0];
}
