// atomics_shared
extern "C" __global__ void hist(const unsigned char* d, int n, unsigned* h, float* fs, double* ds, unsigned long long* us, int* mm) {
  __shared__ unsigned b[256]; __shared__ float f; __shared__ double g; __shared__ unsigned long long u; __shared__ int mn, mx;
  int t = threadIdx.x; for (int i = t; i < 256; i += blockDim.x) b[i] = 0; if (!t) { f = 0; g = 0; u = 0; mn = 0x7fffffff; mx = -0x7fffffff; }
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) { unsigned char v = d[i]; atomicAdd(&b[v], 1u); atomicAdd(&f, (float)v); atomicAdd(&g, (double)v); atomicAdd(&u, (unsigned long long)v); atomicMin(&mn, (int)v); atomicMax(&mx, (int)v); atomicCAS(&b[0], 0xffffffffu, 0u); atomicExch(&b[255], b[255]); }
  __syncthreads();
  for (int i = t; i < 256; i += blockDim.x) atomicAdd(&h[i], b[i]);
  if (!t) { atomicAdd(fs, f); atomicAdd(ds, g); atomicAdd(us, u); atomicMin(&mm[0], mn); atomicMax(&mm[1], mx); }
}
