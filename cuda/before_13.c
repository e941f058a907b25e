/* before_13.c: what CUDA 11 and 12 have otherwise than CUDA 13. */
#include "core.h"
#include "px_place.h"
#include "px_runtime.h"

PX_API cudaError_t cudaMemAdvise(const void *pointer, size_t size, int advice, int number) {
  return cudaMemAdvise_v2(pointer, size, advice, px_place(number));
}

PX_API cudaError_t cudaMemPrefetchAsync(const void *pointer, size_t size, int number, cudaStream_t stream) {
  return cudaMemPrefetchAsync_v2(pointer, size, px_place(number), 0, stream);
}

/* ---- graphs: edges without data ---- */

PX_API cudaError_t cudaGraphAddNode(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,
                                    cudaGraphNodeParams *what) {
  return cudaGraphAddNode_v2(out, graph, before, NULL, count, what);
}

#define NAME(function) cuda##function
#define RESULT cudaError_t
#include "without_data.h"
