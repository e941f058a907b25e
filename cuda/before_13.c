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

PX_API cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                            size_t count) {
  return cudaGraphAddDependencies_v2(graph, from, to, NULL, count);
}

PX_API cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                               size_t count) {
  return cudaGraphRemoveDependencies_v2(graph, from, to, NULL, count);
}

PX_API cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to, size_t *count) {
  return cudaGraphGetEdges_v2(graph, from, to, NULL, count);
}

PX_API cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *nodes, size_t *count) {
  return cudaGraphNodeGetDependencies_v2(node, nodes, NULL, count);
}

PX_API cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *nodes, size_t *count) {
  return cudaGraphNodeGetDependentNodes_v2(node, nodes, NULL, count);
}

PX_API cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, int *status, unsigned long long *id) {
  return cudaStreamGetCaptureInfo_v3(stream, status, id, NULL, NULL, NULL, NULL);
}

PX_API cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, int *status, unsigned long long *id, cudaGraph_t *graph,
                                               const cudaGraphNode_t **nodes, size_t *count) {
  return cudaStreamGetCaptureInfo_v3(stream, status, id, graph, nodes, NULL, count);
}

PX_API cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *nodes, size_t count,
                                                       unsigned flags) {
  return cudaStreamUpdateCaptureDependencies_v2(stream, nodes, NULL, count, flags);
}
