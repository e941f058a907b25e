// The discrete cosine transform of tiles of 8 x 8 pixels, by two products with a matrix of cosines.
constexpr int kSide = 8;

extern "C" __global__ void cosines(int width, const float *in, const float *cosine, float *out) {
  __shared__ float tile[kSide][kSide + 1], rows[kSide][kSide + 1];
  const int x = threadIdx.x, y = threadIdx.y;
  const int place = (blockIdx.y * kSide + y) * width + blockIdx.x * kSide + x;
  tile[y][x] = in[place];
  __syncthreads();
  float sum = 0;
  for (int k = 0; k < kSide; ++k) sum += cosine[y * kSide + k] * tile[k][x];
  rows[y][x] = sum;
  __syncthreads();
  sum = 0;
  for (int k = 0; k < kSide; ++k) sum += rows[y][k] * cosine[x * kSide + k];
  out[place] = sum;
}
