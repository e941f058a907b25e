// shuffles
extern "C" __global__ void shfl(int* o, float* f, double* d, long long* l) {
  int t = threadIdx.x, k = 0, n = blockDim.x;
  o[n*k++ + t] = __shfl_sync(~0u, t * 3, 5); o[n*k++ + t] = __shfl_sync(~0u, t * 3, t + 1, 8);
  o[n*k++ + t] = __shfl_up_sync(~0u, t * 3, 2); o[n*k++ + t] = __shfl_up_sync(~0u, t * 3, 1, 4);
  o[n*k++ + t] = __shfl_down_sync(~0u, t * 3, 2); o[n*k++ + t] = __shfl_down_sync(~0u, t * 3, 3, 16);
  o[n*k++ + t] = __shfl_xor_sync(~0u, t * 3, 1); o[n*k++ + t] = __shfl_xor_sync(~0u, t * 3, 9, 16);
  f[t] = __shfl_xor_sync(~0u, f[t], 16); d[t] = __shfl_down_sync(~0u, d[t], 7); l[t] = __shfl_up_sync(~0u, l[t], 3);
  if (t & 1) o[n*k + t] = __shfl_sync(0xaaaaaaaau, t, 3); else o[n*k + t] = __shfl_sync(0x55555555u, t, 2);
}
