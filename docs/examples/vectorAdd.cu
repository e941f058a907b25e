/* vectorAdd.cu: a program of CUDA's runtime API, for nvcc -cudart shared. Nothing in it knows of ptxemu. */
#include <stdio.h>

__global__ void add(const float *x, const float *y, float *sum, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) sum[i] = x[i] + y[i];
}

int main() {
  const int n = 1000;
  float *x, *y, *sum;
  if (cudaMallocManaged(&x, n * sizeof *x) || cudaMallocManaged(&y, n * sizeof *y) || cudaMallocManaged(&sum, n * sizeof *sum)) return 1;
  for (int i = 0; i < n; i++) x[i] = i, y[i] = 1;
  add<<<(n + 127) / 128, 128>>>(x, y, sum, n);
  cudaError_t error = cudaDeviceSynchronize();
  if (error) return fprintf(stderr, "%s\n", cudaGetErrorString(error)), 1;
  for (int i = 0; i < n; i++) {
    if (sum[i] == i + 1) continue;
    return printf("wrong at %d: %g\n", i, sum[i]), 1;
  }
  return puts("right"), 0;
}
