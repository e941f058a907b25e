// Accelerations of n bodies, n a multiple of the block.
constexpr int kThreads = 256;

extern "C" __global__ void nbody(int n, float softening, const float4* bodies, float4* accelerations) {
  __shared__ float4 tile[kThreads];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float4 body = bodies[i];
  float ax = 0.0f, ay = 0.0f, az = 0.0f;
  for (int start = 0; start < n; start += kThreads) {
    tile[threadIdx.x] = bodies[start + threadIdx.x];
    __syncthreads();
    for (int j = 0; j < kThreads; ++j) {
      const float4 other = tile[j];
      const float dx = other.x - body.x, dy = other.y - body.y, dz = other.z - body.z;
      const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + softening);
      const float pull = other.w * inverse * inverse * inverse;
      ax += pull * dx;
      ay += pull * dy;
      az += pull * dz;
    }
    __syncthreads();
  }
  accelerations[i] = make_float4(ax, ay, az, 0.0f);
}
