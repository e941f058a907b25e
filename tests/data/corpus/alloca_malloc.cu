// alloca_malloc
extern "C" __global__ void am(int** o, int n) { int* p = (int*)malloc(4 * n); if (p) { p[0] = threadIdx.x; memset(p + 1, 7, 4 * (n - 1)); memcpy(p + n / 2, p, 4); } o[threadIdx.x] = p; if (threadIdx.x & 1) free(p); int* a = (int*)__builtin_alloca(n * 4); for (int i = 0; i < n; i++) a[i] = i; o[threadIdx.x][0] = a[n - 1]; }
