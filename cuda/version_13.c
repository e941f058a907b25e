/* version_13.c: what CUDA 13 has otherwise than CUDA 12. */
#include "core.h"
#include "px_runtime.h"

enum { VERSION = 13000 };

PX_API cudaError_t cudaRuntimeGetVersion(int *version) { return px_tell_version(version, VERSION); }

PX_API cudaError_t cudaGetDriverEntryPoint(const char *name, void **out, unsigned long long flags, int *status) {
  return cudaGetDriverEntryPointByVersion(name, out, VERSION, flags, status);
}

cudaError_t px_properties_of_13(void *out, int number);
PX_API cudaError_t cudaGetDeviceProperties(void *out, int number) { return px_properties_of_13(out, number); }

cudaError_t px_texture_object_of_13(cudaTextureObject_t *out, const cudaResourceDesc *resource,
                                    const cudaTextureDesc *wanted, const cudaResourceViewDesc *view);
PX_API cudaError_t cudaCreateTextureObject(cudaTextureObject_t *out, const cudaResourceDesc *resource,
                                           const cudaTextureDesc *wanted, const cudaResourceViewDesc *view) {
  return px_texture_object_of_13(out, resource, wanted, view);
}

PX_API cudaError_t cudaMemAdvise(const void *pointer, size_t size, int advice, cudaMemLocation location) {
  return cudaMemAdvise_v2(pointer, size, advice, location);
}

PX_API cudaError_t cudaMemPrefetchAsync(const void *pointer, size_t size, cudaMemLocation location, unsigned flags,
                                        cudaStream_t stream) {
  return cudaMemPrefetchAsync_v2(pointer, size, location, flags, stream);
}

/* ---- graphs: edges with data ---- */

PX_API cudaError_t cudaGraphAddNode(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *before,
                                    const cudaGraphEdgeData *data, size_t count, cudaGraphNodeParams *what) {
  return cudaGraphAddNode_v2(out, graph, before, data, count, what);
}

PX_API cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                            const cudaGraphEdgeData *data, size_t count) {
  return cudaGraphAddDependencies_v2(graph, from, to, data, count);
}

PX_API cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                               const cudaGraphEdgeData *data, size_t count) {
  return cudaGraphRemoveDependencies_v2(graph, from, to, data, count);
}

PX_API cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to, cudaGraphEdgeData *data,
                                     size_t *count) {
  return cudaGraphGetEdges_v2(graph, from, to, data, count);
}

PX_API cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *nodes, cudaGraphEdgeData *data,
                                                size_t *count) {
  return cudaGraphNodeGetDependencies_v2(node, nodes, data, count);
}

PX_API cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *nodes, cudaGraphEdgeData *data,
                                                  size_t *count) {
  return cudaGraphNodeGetDependentNodes_v2(node, nodes, data, count);
}

PX_API cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, int *status, unsigned long long *id, cudaGraph_t *graph,
                                            const cudaGraphNode_t **nodes, const cudaGraphEdgeData **data, size_t *count) {
  return cudaStreamGetCaptureInfo_v3(stream, status, id, graph, nodes, data, count);
}

PX_API cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *nodes,
                                                       const cudaGraphEdgeData *data, size_t count, unsigned flags) {
  return cudaStreamUpdateCaptureDependencies_v2(stream, nodes, data, count, flags);
}
