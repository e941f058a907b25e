// switch_brx
__device__ __noinline__ int opq(int a) { return a * 17 ^ 5; }
extern "C" __global__ void sw(const int* c, int* o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return; int v = c[i], r = 0;
  switch (v) { case 0: r = opq(i); break; case 1: r = i - 3; o[n] = r; break; case 2: r = opq(i * i); case 3: r += 7; break; case 4: r = i / 3; atomicAdd(&o[n + 1], 1); break; case 5: for (int k = 0; k < i; k++) r += opq(k); break; case 6: r = ~i; break; case 7: r = o[i] + 1; break; case 8: r = __popc(i); break; case 100: r = -1; break; default: r = -2; }
  o[i] = r;
}
