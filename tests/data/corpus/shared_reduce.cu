// shared_reduce
extern "C" __global__ void reduce(const float* x, float* o, int n) {
  __shared__ float s[256]; int t = threadIdx.x; float a = 0;
  for (int i = blockIdx.x * 256 + t; i < n; i += gridDim.x * 256) a += x[i];
  s[t] = a; __syncthreads();
  for (int k = 128; k > 0; k >>= 1) { if (t < k) s[t] += s[t + k]; __syncthreads(); }
  if (t == 0) o[blockIdx.x] = s[0];
}
