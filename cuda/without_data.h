/* without_data.h: functions on graphs from before edges had data, over those that take it. It is a piece of a
 * file of either API, which defines NAME(function), the API's name of a function, and RESULT, what its functions return. */

PX_API RESULT NAME(GraphAddDependencies)(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                         size_t count) {
  return NAME(GraphAddDependencies_v2)(graph, from, to, NULL, count);
}

PX_API RESULT NAME(GraphRemoveDependencies)(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                            size_t count) {
  return NAME(GraphRemoveDependencies_v2)(graph, from, to, NULL, count);
}

PX_API RESULT NAME(GraphGetEdges)(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to, size_t *count) {
  return NAME(GraphGetEdges_v2)(graph, from, to, NULL, count);
}

PX_API RESULT NAME(GraphNodeGetDependencies)(cudaGraphNode_t node, cudaGraphNode_t *nodes, size_t *count) {
  return NAME(GraphNodeGetDependencies_v2)(node, nodes, NULL, count);
}

PX_API RESULT NAME(GraphNodeGetDependentNodes)(cudaGraphNode_t node, cudaGraphNode_t *nodes, size_t *count) {
  return NAME(GraphNodeGetDependentNodes_v2)(node, nodes, NULL, count);
}

PX_API RESULT NAME(StreamGetCaptureInfo)(cudaStream_t stream, int *status, unsigned long long *id) {
  return NAME(StreamGetCaptureInfo_v3)(stream, status, id, NULL, NULL, NULL, NULL);
}

PX_API RESULT NAME(StreamGetCaptureInfo_v2)(cudaStream_t stream, int *status, unsigned long long *id, cudaGraph_t *graph,
                                            const cudaGraphNode_t **nodes, size_t *count) {
  return NAME(StreamGetCaptureInfo_v3)(stream, status, id, graph, nodes, NULL, count);
}

PX_API RESULT NAME(StreamUpdateCaptureDependencies)(cudaStream_t stream, cudaGraphNode_t *nodes, size_t count,
                                                    unsigned flags) {
  return NAME(StreamUpdateCaptureDependencies_v2)(stream, nodes, NULL, count, flags);
}
