// A cluster's histogram and ring, by cooperative groups.
#include <cooperative_groups.h>
#include <cstdio>
#include <cstdlib>
#include <vector>
namespace cg = cooperative_groups;

constexpr int BINS = 1024, THREADS = 128;

__global__ void histogram(const unsigned *data, int n, unsigned *bins) {
  extern __shared__ unsigned part[];
  cg::cluster_group cluster = cg::this_cluster();
  int mine = BINS / cluster.num_blocks();
  for (int i = threadIdx.x; i < mine; i += blockDim.x) part[i] = 0;
  cluster.sync();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    unsigned bin = data[i] % BINS;
    atomicAdd(cluster.map_shared_rank(part, bin / mine) + bin % mine, 1u);
  }
  cluster.sync();
  for (int i = threadIdx.x; i < mine; i += blockDim.x) atomicAdd(&bins[cluster.block_rank() * mine + i], part[i]);
}

__global__ void __cluster_dims__(2, 2, 1) ring(int *out) {
  __shared__ int box;
  cg::cluster_group cluster = cg::this_cluster();
  unsigned rank = cluster.block_rank(), next = (rank + 1) % cluster.num_blocks();
  int block = blockIdx.y * gridDim.x + blockIdx.x, value = block;
  for (int turn = 0; turn < 3; turn++) {
    cluster.sync();
    if (threadIdx.x == 0) *cluster.map_shared_rank(&box, next) = value;
    cluster.sync();
    value = box;
  }
  if (cluster.query_shared_rank(&box) != rank) value = -1;
  if (threadIdx.x == 0) out[block] = value;
}

#define MUST(call)                                                              \
  do {                                                                          \
    cudaError_t error = call;                                                   \
    if (error) std::printf("%s: %s\n", #call, cudaGetErrorName(error)), exit(1); \
  } while (0)

int main() {
  const int n = 100000;
  std::vector<unsigned> data(n), wanted(BINS);
  for (int i = 0; i < n; i++) data[i] = (i * 2654435761u) >> 7, wanted[data[i] % BINS]++;
  unsigned *in, *bins;
  MUST(cudaMalloc(&in, n * 4));
  MUST(cudaMalloc(&bins, BINS * 4));
  MUST(cudaMemcpy(in, data.data(), n * 4, cudaMemcpyHostToDevice));
  MUST(cudaFuncSetAttribute(histogram, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  for (unsigned size = 1; size <= 16; size *= 2) {
    MUST(cudaMemset(bins, 0, BINS * 4));
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {size, 1, 1};
    cudaLaunchConfig_t config{};
    config.gridDim = 16, config.blockDim = THREADS, config.dynamicSmemBytes = BINS / size * 4;
    config.attrs = &attribute, config.numAttrs = 1;
    int clusters = 0;
    MUST(cudaOccupancyMaxActiveClusters(&clusters, histogram, &config));
    MUST(cudaLaunchKernelEx(&config, histogram, (const unsigned *)in, n, bins));
    std::vector<unsigned> found(BINS);
    MUST(cudaMemcpy(found.data(), bins, BINS * 4, cudaMemcpyDeviceToHost));
    if (found != wanted || clusters < 1) return std::printf("FAILED: clusters of %u\n", size), 1;
  }
  int *out, values[16];
  MUST(cudaMalloc(&out, sizeof values));
  ring<<<dim3(4, 4), 64>>>(out);
  MUST(cudaMemcpy(values, out, sizeof values, cudaMemcpyDeviceToHost));
  for (int y = 0; y < 4; y++)
    for (int x = 0; x < 4; x++) {
      int rank = (y % 2 * 2 + x % 2 + 1) % 4, from = (y / 2 * 2 + rank / 2) * 4 + x / 2 * 2 + rank % 2;
      if (values[y * 4 + x] != from) return std::printf("FAILED: ring at %d, %d: %d\n", x, y, values[y * 4 + x]), 1;
    }
  ring<<<dim3(3, 4), 64>>>(out);
  if (cudaGetLastError() != cudaErrorInvalidClusterSize) return std::printf("FAILED: a grid that is no multiple\n"), 1;
  std::printf("PASSED\n");
}
