// matmul_tiled
#define T 16
extern "C" __global__ void matmul(const float* A, const float* B, float* C, int n) {
  __shared__ float a[T][T], b[T][T + 1]; int tx = threadIdx.x, ty = threadIdx.y, r = blockIdx.y * T + ty, c = blockIdx.x * T + tx; float s = 0;
  for (int k = 0; k < n; k += T) { a[ty][tx] = A[r * n + k + tx]; b[ty][tx] = B[(k + ty) * n + c]; __syncthreads(); for (int j = 0; j < T; j++) s += a[ty][j] * b[j][tx]; __syncthreads(); }
  C[r * n + c] = s;
}
