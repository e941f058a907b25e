// calls
struct P { float a, b, c; int d; };
__device__ __noinline__ float f1(float x, int n) { return x * n + 1; }
__device__ __noinline__ P f2(P p, const float* q) { P r = p; r.a += q[0]; r.d = (int)f1(p.b, p.d); return r; }
__device__ __noinline__ void f3(int* p, long long v, char c) { *p = (int)v + c; }
typedef float (*fp)(float, int); __device__ __noinline__ float g1(float x, int n) { return x - n; }
__device__ fp table[2] = { f1, g1 };
extern "C" __global__ void calls(P in, const float* q, P* o, int* p, int sel) { int i = threadIdx.x; P x = in; x.d += i; o[i] = f2(x, q); f3(&p[i], (long long)i * 3, (char)i); fp h = table[(sel + i) & 1]; o[i].c = h(q[0], i); }
