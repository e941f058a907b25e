#define THREADS 256

kernel void nbody(int n, float softening, global const float4 *bodies, global float4 *accelerations) {
  local float4 tile[THREADS];
  const int i = get_global_id(0), thread = get_local_id(0);
  const float4 body = bodies[i];
  float4 sum = 0;
  for (int start = 0; start < n; start += THREADS) {
    tile[thread] = bodies[start + thread];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int j = 0; j < THREADS; ++j) {
      const float3 d = tile[j].xyz - body.xyz;
      const float inverse = rsqrt(d.x * d.x + d.y * d.y + d.z * d.z + softening);
      sum.xyz += tile[j].w * inverse * inverse * inverse * d;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  accelerations[i] = sum;
}
