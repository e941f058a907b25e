// A picture under a filter of 5 x 5: tiles with their border in shared memory, where edges repeat.
constexpr int kWidth = 32, kHeight = 16, kReach = 2, kTaps = 2 * kReach + 1;

extern "C" __global__ void convolution(int width, int height, const float* taps, const float* in, float* out) {
  constexpr int kColumns = kWidth + 2 * kReach, kRows = kHeight + 2 * kReach;
  __shared__ float tile[kRows][kColumns];
  const int left = blockIdx.x * kWidth, top = blockIdx.y * kHeight;
  for (int i = threadIdx.y * kWidth + threadIdx.x; i < kRows * kColumns; i += kWidth * kHeight) {
    const int x = min(max(left + i % kColumns - kReach, 0), width - 1), y = min(max(top + i / kColumns - kReach, 0), height - 1);
    tile[i / kColumns][i % kColumns] = in[y * width + x];
  }
  __syncthreads();
  float sum = 0;
  for (int v = 0; v < kTaps; ++v)
    for (int u = 0; u < kTaps; ++u) sum += taps[v * kTaps + u] * tile[threadIdx.y + v][threadIdx.x + u];
  const int x = left + threadIdx.x, y = top + threadIdx.y;
  if (x < width && y < height) out[y * width + x] = sum;
}
