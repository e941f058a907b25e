// The source of kernels.ptx: nvcc -ptx -arch=compute_75 kernels.cu
#include <cstdio>

extern "C" {
__device__ int counter;
__constant__ float factors[4];

__global__ void add(const float *a, const float *b, float *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

__global__ void scale(float *c) { c[threadIdx.x] = threadIdx.x * factors[threadIdx.x & 3]; }

__global__ void count(int *seen) { seen[threadIdx.x] = atomicAdd(&counter, 1); }

__global__ void empty() {}

__global__ void hello(int n) { printf("hello %d of %d\n", threadIdx.x, n); }

__global__ void store(int *where) { *where = 7; }

__global__ void __launch_bounds__(64) limited() {}

/* Until the host says so. */
__global__ void await(const volatile int *flag) {
  while (!*flag) continue;
}

/* digits = 10 * digits + digit: the order of launches. */
__global__ void append(long long *digits, int digit) { *digits = 10 * *digits + digit; }

__global__ void tally(int *sum, int times) {
  for (int i = 0; i < times; i++) atomicAdd(sum, 1);
}

/* For nodes that choose: n, n - 1, and so on; a number. */
__global__ void count_down(int *n, cudaGraphConditionalHandle handle) { cudaGraphSetConditional(handle, --*n); }

__global__ void choose(cudaGraphConditionalHandle handle, int number) { cudaGraphSetConditional(handle, number); }

__global__ void fetch(cudaTextureObject_t texture, float *out) {
  out[threadIdx.y * blockDim.x + threadIdx.x] = tex2D<float>(texture, threadIdx.x + 0.5f, threadIdx.y + 0.5f);
}

__global__ void transpose(cudaSurfaceObject_t from, cudaSurfaceObject_t to) {
  int value;
  surf2Dread(&value, from, threadIdx.x * 4, threadIdx.y);
  surf2Dwrite(value, to, threadIdx.y * 4, threadIdx.x);
}
}
