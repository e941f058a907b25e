// red_noret
extern "C" __global__ void red_all(int* i, unsigned* u, unsigned long long* ull, float* f, double* d, int v) {
  atomicAdd(i, v); atomicMin(i+1, v); atomicMax(i+2, v); atomicAnd(i+3, v); atomicOr(i+4, v); atomicXor(i+5, v);
  atomicInc(u, 7u); atomicDec(u+1, 7u); atomicAdd(u+2, (unsigned)v); atomicMin(u+3, (unsigned)v); atomicMax(u+4, (unsigned)v);
  atomicAdd(ull, (unsigned long long)v); atomicMax(ull+1, (unsigned long long)v); atomicAdd(f, (float)v); atomicAdd(d, (double)v);
}
