// recursion
__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__device__ __noinline__ unsigned ack(unsigned m, unsigned n) { return m == 0 ? n + 1 : (n == 0 ? ack(m - 1, 1) : ack(m - 1, ack(m, n - 1))); }
extern "C" __global__ void rec(int* o, int n) { int i = threadIdx.x; if (i < n) { o[i] = fib(i % 12); o[n + i] = ack(2, i % 5); } }
