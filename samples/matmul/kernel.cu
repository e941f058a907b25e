// C = A * B in tiles of 16 x 16 held in shared memory; sizes that are no multiple of the tile are padded with zeros.
// kernel.ptx: nvcc -ptx -arch=compute_80 -std=c++17 kernel.cu
constexpr int kTile = 16;

extern "C" __global__ void matmul(int m, int n, int k, const float* a, const float* b, float* c) {
  __shared__ float left[kTile][kTile];
  __shared__ float right[kTile][kTile];
  const int row = blockIdx.y * kTile + threadIdx.y;
  const int column = blockIdx.x * kTile + threadIdx.x;
  float sum = 0.0f;
  for (int start = 0; start < k; start += kTile) {
    const int inner_column = start + threadIdx.x;
    const int inner_row = start + threadIdx.y;
    left[threadIdx.y][threadIdx.x] = row < m && inner_column < k ? a[row * k + inner_column] : 0.0f;
    right[threadIdx.y][threadIdx.x] = inner_row < k && column < n ? b[inner_row * n + column] : 0.0f;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum += left[threadIdx.y][i] * right[i][threadIdx.x];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}
