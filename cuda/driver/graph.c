/* graph.c: graphs and capture, which the two APIs have in common. */
#include "driver.h"
#include "px_runtime.h"

/* ---- what older versions of CUDA have otherwise ---- */

/* There is never anything to say of a node, nor a log. */
PX_API CUresult cuGraphInstantiate_v2(CUgraphExec *out, CUgraph graph, CUgraphNode *wrong, char *log, size_t size) {
  CU_ENTER();
  if (wrong) *wrong = NULL;
  if (log && size) *log = 0;
  return cu_result(cudaGraphInstantiate(out, graph, 0));
}
CU_SAME(cuGraphInstantiate, cuGraphInstantiate_v2);

PX_API CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *wrong, int *result) {
  cudaGraphExecUpdateResultInfo info = {0};
  CU_ENTER();
  CU_REQUIRE(wrong && result, CUDA_ERROR_INVALID_VALUE);
  CUresult error = cu_result(cudaGraphExecUpdate(exec, graph, &info));
  *wrong = info.errorNode;
  *result = info.result;
  return error;
}

/* ---- as the runtime API has it ---- */

PX_API CUresult cuGraphAddChildGraphNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t count,
                                         CUgraph child) {
  CU_ENTER();
  return cu_result(cudaGraphAddChildGraphNode(out, graph, before, count, child));
}

PX_API CUresult cuGraphConditionalHandleCreate(cudaGraphConditionalHandle *handle, CUgraph graph, CUcontext context,
                                               unsigned value, unsigned flags) {
  (void)context; /* graphs run in that of their launch */
  CU_ENTER();
  return cu_result(cudaGraphConditionalHandleCreate(handle, graph, value, flags));
}

PX_API CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                          const CUgraphEdgeData *data, size_t count) {
  CU_ENTER();
  return cu_result(cudaGraphAddDependencies_v2(graph, from, to, data, count));
}

PX_API CUresult cuGraphDebugDotPrint(CUgraph graph, const char *path, unsigned flags) {
  CU_ENTER();
  return cu_result(cudaGraphDebugDotPrint(graph, path, flags));
}

PX_API CUresult cuGraphAddEmptyNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t count) {
  CU_ENTER();
  return cu_result(cudaGraphAddEmptyNode(out, graph, before, count));
}

PX_API CUresult cuGraphAddEventRecordNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t count,
                                          CUevent event) {
  CU_ENTER();
  return cu_result(cudaGraphAddEventRecordNode(out, graph, before, count, event));
}

PX_API CUresult cuGraphAddEventWaitNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t count,
                                        CUevent event) {
  CU_ENTER();
  return cu_result(cudaGraphAddEventWaitNode(out, graph, before, count, event));
}

PX_API CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *out) {
  CU_ENTER();
  return cu_result(cudaGraphChildGraphNodeGetGraph(node, out));
}

PX_API CUresult cuGraphClone(CUgraph *out, CUgraph graph) {
  CU_ENTER();
  return cu_result(cudaGraphClone(out, graph));
}

PX_API CUresult cuGraphCreate(CUgraph *out, unsigned flags) {
  CU_ENTER();
  return cu_result(cudaGraphCreate(out, flags));
}

PX_API CUresult cuGraphDestroy(CUgraph graph) {
  CU_ENTER();
  return cu_result(cudaGraphDestroy(graph));
}

PX_API CUresult cuGraphDestroyNode(CUgraphNode node) {
  CU_ENTER();
  return cu_result(cudaGraphDestroyNode(node));
}

PX_API CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent *event) {
  CU_ENTER();
  return cu_result(cudaGraphEventRecordNodeGetEvent(node, event));
}

PX_API CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event) {
  CU_ENTER();
  return cu_result(cudaGraphEventRecordNodeSetEvent(node, event));
}

PX_API CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent *event) {
  CU_ENTER();
  return cu_result(cudaGraphEventWaitNodeGetEvent(node, event));
}

PX_API CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event) {
  CU_ENTER();
  return cu_result(cudaGraphEventWaitNodeSetEvent(node, event));
}

PX_API CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph graph) {
  CU_ENTER();
  return cu_result(cudaGraphExecChildGraphNodeSetParams(exec, node, graph));
}

PX_API CUresult cuGraphExecDestroy(CUgraphExec exec) {
  CU_ENTER();
  return cu_result(cudaGraphExecDestroy(exec));
}

PX_API CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  CU_ENTER();
  return cu_result(cudaGraphExecEventRecordNodeSetEvent(exec, node, event));
}

PX_API CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  CU_ENTER();
  return cu_result(cudaGraphExecEventWaitNodeSetEvent(exec, node, event));
}

PX_API CUresult cuGraphExecGetFlags(CUgraphExec exec, unsigned long long *flags) {
  CU_ENTER();
  return cu_result(cudaGraphExecGetFlags(exec, flags));
}

PX_API CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, cudaGraphExecUpdateResultInfo *info) {
  CU_ENTER();
  return cu_result(cudaGraphExecUpdate(exec, graph, info));
}

PX_API CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data, size_t *count) {
  CU_ENTER();
  return cu_result(cudaGraphGetEdges_v2(graph, from, to, data, count));
}

PX_API CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count) {
  CU_ENTER();
  return cu_result(cudaGraphGetNodes(graph, nodes, count));
}

PX_API CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *count) {
  CU_ENTER();
  return cu_result(cudaGraphGetRootNodes(graph, nodes, count));
}

PX_API CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph, unsigned long long flags) {
  CU_ENTER();
  return cu_result(cudaGraphInstantiateWithFlags(out, graph, flags));
}

PX_API CUresult cuGraphInstantiateWithParams(CUgraphExec *out, CUgraph graph, cudaGraphInstantiateParams *params) {
  CU_ENTER();
  return cu_result(cudaGraphInstantiateWithParams(out, graph, params));
}

PX_API CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  CU_ENTER();
  return cu_result(cudaGraphLaunch(exec, stream));
}

PX_API CUresult cuGraphNodeFindInClone(CUgraphNode *out, CUgraphNode node, CUgraph clone) {
  CU_ENTER();
  return cu_result(cudaGraphNodeFindInClone(out, node, clone));
}

PX_API CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *data, size_t *count) {
  CU_ENTER();
  return cu_result(cudaGraphNodeGetDependencies_v2(node, nodes, data, count));
}

PX_API CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *data, size_t *count) {
  CU_ENTER();
  return cu_result(cudaGraphNodeGetDependentNodes_v2(node, nodes, data, count));
}

PX_API CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned *enabled) {
  CU_ENTER();
  return cu_result(cudaGraphNodeGetEnabled(exec, node, enabled));
}

PX_API CUresult cuGraphNodeGetType(CUgraphNode node, int *type) {
  CU_ENTER();
  return cu_result(cudaGraphNodeGetType(node, type));
}

PX_API CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned enabled) {
  CU_ENTER();
  return cu_result(cudaGraphNodeSetEnabled(exec, node, enabled));
}

PX_API CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                             const CUgraphEdgeData *data, size_t count) {
  CU_ENTER();
  return cu_result(cudaGraphRemoveDependencies_v2(graph, from, to, data, count));
}

PX_API CUresult cuGraphUpload(CUgraphExec exec, CUstream stream) {
  CU_ENTER();
  return cu_result(cudaGraphUpload(exec, stream));
}

PX_API CUresult cuStreamBeginCapture_v2(CUstream stream, int mode) {
  CU_ENTER();
  return cu_result(cudaStreamBeginCapture(stream, mode));
}

PX_API CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode *before,
                                            const CUgraphEdgeData *data, size_t count, int mode) {
  CU_ENTER();
  return cu_result(cudaStreamBeginCaptureToGraph(stream, graph, before, data, count, mode));
}

PX_API CUresult cuStreamEndCapture(CUstream stream, CUgraph *out) {
  CU_ENTER();
  return cu_result(cudaStreamEndCapture(stream, out));
}

PX_API CUresult cuStreamGetCaptureInfo_v3(CUstream stream, int *status, unsigned long long *id, CUgraph *graph,
                                          const CUgraphNode **nodes, const CUgraphEdgeData **data, size_t *count) {
  CU_ENTER();
  return cu_result(cudaStreamGetCaptureInfo_v3(stream, status, id, graph, nodes, data, count));
}

PX_API CUresult cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode *nodes, const CUgraphEdgeData *data,
                                                     size_t count, unsigned flags) {
  CU_ENTER();
  return cu_result(cudaStreamUpdateCaptureDependencies_v2(stream, nodes, data, count, flags));
}

PX_API CUresult cuThreadExchangeStreamCaptureMode(int *mode) {
  CU_ENTER();
  return cu_result(cudaThreadExchangeStreamCaptureMode(mode));
}

/* ---- without data of edges ---- */

PX_API CUresult cuStreamBeginCapture(CUstream stream) {
  enum { GLOBAL };
  return cuStreamBeginCapture_v2(stream, GLOBAL);
}

#define NAME(function) cu##function
#define RESULT CUresult
#include "without_data.h"
