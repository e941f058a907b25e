/* OpenCL 1.2 has no atomic sums of floats. */
enum { BINS = 256 };

void add(volatile local float *sum, float value) {
  uint old = as_uint(*sum), seen;
  while ((seen = atomic_cmpxchg((volatile local uint *)sum, old, as_uint(as_float(old) + value))) != old) old = seen;
}

void add_to_all(volatile global float *sum, float value) {
  uint old = as_uint(*sum), seen;
  while ((seen = atomic_cmpxchg((volatile global uint *)sum, old, as_uint(as_float(old) + value))) != old) old = seen;
}

kernel void weights(int n, global const uint *keys, global const float *values, global float *bins) {
  local float own[BINS];
  const int thread = get_local_id(0);
  own[thread] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = get_global_id(0); i < n; i += get_global_size(0)) add(&own[keys[i] % BINS], values[i]);
  barrier(CLK_LOCAL_MEM_FENCE);
  add_to_all(&bins[thread], own[thread]);
}
