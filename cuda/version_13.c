/* version_13.c: what CUDA 13 has otherwise than CUDA 12. */
#include "core.h"

extern const int px_runtime_version;
const int px_runtime_version = 13000;

cudaError_t px_properties_of_13(void *out, int number);
PX_API cudaError_t cudaGetDeviceProperties(void *out, int number) { return px_properties_of_13(out, number); }

cudaError_t cudaMemAdvise_v2(const void *pointer, size_t size, int advice, cudaMemLocation location);
PX_API cudaError_t cudaMemAdvise(const void *pointer, size_t size, int advice, cudaMemLocation location) {
  return cudaMemAdvise_v2(pointer, size, advice, location);
}

cudaError_t cudaMemPrefetchAsync_v2(const void *pointer, size_t size, cudaMemLocation location, unsigned flags,
                                    cudaStream_t stream);
PX_API cudaError_t cudaMemPrefetchAsync(const void *pointer, size_t size, cudaMemLocation location, unsigned flags,
                                        cudaStream_t stream) {
  return cudaMemPrefetchAsync_v2(pointer, size, location, flags, stream);
}
