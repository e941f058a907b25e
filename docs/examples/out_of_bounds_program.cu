#include <cstdio>
#include <vector>

__global__ void add(int n, const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + x[i + 1];
}

int main() {
  const int n = 1000;
  std::vector<float> host(n);
  float *x, *y, sum = 0;
  cudaMalloc(&x, n * sizeof *x);
  cudaMalloc(&y, n * sizeof *y);
  cudaMemcpy(x, host.data(), n * sizeof *x, cudaMemcpyHostToDevice);
  add<<<(n + 255) / 256, 256>>>(n, x, y);
  cudaMemcpy(host.data(), y, n * sizeof *y, cudaMemcpyDeviceToHost);
  for (float value : host) sum += value;
  printf("the sum is %g\n", sum);
  cudaFree(x);
  cudaFree(y);
}
