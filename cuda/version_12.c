/* version_12.c: what CUDA 12 has otherwise than CUDA 13. */
#include "core.h"

extern const int px_runtime_version;
const int px_runtime_version = 12090;

cudaError_t cudaMemAdvise_v2(const void *pointer, size_t size, int advice, cudaMemLocation location);
PX_API cudaError_t cudaMemAdvise(const void *pointer, size_t size, int advice, int number) {
  return cudaMemAdvise_v2(pointer, size, advice, (cudaMemLocation){1, number});
}

cudaError_t cudaMemPrefetchAsync_v2(const void *pointer, size_t size, cudaMemLocation location, unsigned flags,
                                    cudaStream_t stream);
PX_API cudaError_t cudaMemPrefetchAsync(const void *pointer, size_t size, int number, cudaStream_t stream) {
  return cudaMemPrefetchAsync_v2(pointer, size, (cudaMemLocation){1, number}, 0, stream);
}
