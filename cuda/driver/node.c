/* node.c: nodes of graphs, and their parameters where the driver API has its own structures. */
#include "driver.h"
#include "px_graph.h"
#include "px_launch.h"
#include "px_runtime.h"

#define NEW_NODE CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t count

/* ---- kernels ---- */

static CUresult write_kernel(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *out) {
  px_work *work;
  CUresult error = cu_result(px_node_work(node, cudaGraphNodeTypeKernel, &work));
  CU_REQUIRE(!error, error);
  const pe_start *start = &work->start;
  out->func = (CUfunction)(uintptr_t)work->handle;
  out->gridDimX = start->grid[0];
  out->gridDimY = start->grid[1];
  out->gridDimZ = start->grid[2];
  out->blockDimX = start->block[0];
  out->blockDimY = start->block[1];
  out->blockDimZ = start->block[2];
  out->sharedMemBytes = (unsigned)start->dynamic_shared;
  out->extra = NULL;
  px_work_release(work);
  return cu_result(px_node_places(node, &out->kernelParams));
}

/* In the first version of the structure there is no `kern`. */
static CUresult kernel_content(const CUDA_KERNEL_NODE_PARAMS *what, bool first, px_content *out) {
  CU_REQUIRE(what, CUDA_ERROR_INVALID_VALUE);
  px_kernel *kernel = what->func || first ? what->func : what->kern;
  CU_REQUIRE(px_is_kernel(kernel), CUDA_ERROR_INVALID_VALUE);
  px_geometry g = {.grid = {what->gridDimX, what->gridDimY, what->gridDimZ},
                   .block = {what->blockDimX, what->blockDimY, what->blockDimZ},
                   .shared = what->sharedMemBytes,
                   .handle = kernel};
  return cu_result(px_kernel_content(kernel, &g, what->kernelParams, what->extra, out));
}

/* ---- copies and sets ---- */

static CUresult copy_content(const CUDA_MEMCPY3D_PEER *what, px_content *out) {
  *out = (px_content){.type = cudaGraphNodeTypeMemcpy};
  return cu_copy_work(what, &out->work);
}

static CUresult write_copy(CUgraphNode node, CUDA_MEMCPY3D_PEER *out) {
  px_work *work;
  CUresult error = cu_result(px_node_work(node, cudaGraphNodeTypeMemcpy, &work));
  if (!error) cu_copy_params(work, out);
  if (!error) px_work_release(work);
  return error;
}

/* The structures of the two APIs are one, but for the context at the end of a newer version. */
static CUresult set_content(const CUDA_MEMSET_NODE_PARAMS_v2 *what, px_content *out) {
  return cu_result(px_set_content((const cudaMemsetParams *)what, out));
}

/* ---- what a node is made of goes to a new one, to one that is there, or to what was instantiated of it ---- */

#define ADD(CONTENT)                                                                          \
  do {                                                                                        \
    px_content content;                                                                       \
    CU_ENTER();                                                                               \
    CUresult cu_wrong = (CONTENT);                                                            \
    return cu_wrong ? cu_wrong : cu_result(px_graph_add(out, graph, before, count, content)); \
  } while (0)
#define SET(CONTENT)                                                    \
  do {                                                                  \
    px_content content;                                                 \
    CU_ENTER();                                                         \
    CUresult cu_wrong = (CONTENT);                                      \
    return cu_wrong ? cu_wrong : cu_result(px_node_set(node, content)); \
  } while (0)
#define EXEC_SET(CONTENT)                                                     \
  do {                                                                        \
    px_content content;                                                       \
    CU_ENTER();                                                               \
    CUresult cu_wrong = (CONTENT);                                            \
    return cu_wrong ? cu_wrong : cu_result(px_exec_set(exec, node, content)); \
  } while (0)
#define GET(WRITTEN)                            \
  do {                                          \
    CU_ENTER();                                 \
    CU_REQUIRE(what, CUDA_ERROR_INVALID_VALUE); \
    return WRITTEN;                             \
  } while (0)

PX_API CUresult cuGraphAddKernelNode_v2(NEW_NODE, const CUDA_KERNEL_NODE_PARAMS *what) {
  ADD(kernel_content(what, false, &content));
}
PX_API CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *what) {
  SET(kernel_content(what, false, &content));
}
PX_API CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *what) {
  EXEC_SET(kernel_content(what, false, &content));
}
PX_API CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *what) {
  GET((what->kern = NULL, what->ctx = NULL, write_kernel(node, what)));
}

PX_API CUresult cuGraphAddKernelNode(NEW_NODE, const CUDA_KERNEL_NODE_PARAMS *what) {
  ADD(kernel_content(what, true, &content));
}
PX_API CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *what) {
  SET(kernel_content(what, true, &content));
}
PX_API CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *what) {
  EXEC_SET(kernel_content(what, true, &content));
}
PX_API CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *what) {
  GET(write_kernel(node, what));
}

PX_API CUresult cuGraphAddMemcpyNode(NEW_NODE, const CUDA_MEMCPY3D_PEER *what, CUcontext context) {
  ADD(((void)context, copy_content(what, &content)));
}
PX_API CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D_PEER *what) {
  SET((copy_content(what, &content)));
}
PX_API CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D_PEER *what,
                                               CUcontext context) {
  EXEC_SET(((void)context, copy_content(what, &content)));
}
PX_API CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D_PEER *what) { GET(write_copy(node, what)); }

PX_API CUresult cuGraphAddMemsetNode(NEW_NODE, const CUDA_MEMSET_NODE_PARAMS_v2 *what, CUcontext context) {
  ADD(((void)context, set_content(what, &content)));
}
PX_API CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS_v2 *what) {
  SET((set_content(what, &content)));
}
PX_API CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS_v2 *what,
                                               CUcontext context) {
  EXEC_SET(((void)context, set_content(what, &content)));
}
PX_API CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, cudaMemsetParams *what) {
  GET(cu_result(cudaGraphMemsetNodeGetParams(node, what)));
}

PX_API CUresult cuGraphAddHostNode(NEW_NODE, const cudaHostNodeParams *what) {
  ADD(cu_result(px_host_content(what, &content)));
}
PX_API CUresult cuGraphHostNodeSetParams(CUgraphNode node, const cudaHostNodeParams *what) {
  SET(cu_result(px_host_content(what, &content)));
}
PX_API CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node, const cudaHostNodeParams *what) {
  EXEC_SET(cu_result(px_host_content(what, &content)));
}
PX_API CUresult cuGraphHostNodeGetParams(CUgraphNode node, cudaHostNodeParams *what) {
  GET(cu_result(cudaGraphHostNodeGetParams(node, what)));
}

PX_API CUresult cuGraphAddMemAllocNode(NEW_NODE, cudaMemAllocNodeParams *what) {
  CU_ENTER();
  return cu_result(cudaGraphAddMemAllocNode(out, graph, before, count, what));
}
PX_API CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, cudaMemAllocNodeParams *what) {
  GET(cu_result(cudaGraphMemAllocNodeGetParams(node, what)));
}

PX_API CUresult cuGraphAddMemFreeNode(NEW_NODE, CUdeviceptr address) {
  CU_ENTER();
  return cu_result(cudaGraphAddMemFreeNode(out, graph, before, count, (void *)(uintptr_t)address));
}
PX_API CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr *what) {
  GET(cu_result(cudaGraphMemFreeNodeGetParams(node, what)));
}

/* ---- attributes of kernel nodes ---- */

PX_API CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, int id, const cudaLaunchAttributeValue *value) {
  CU_ENTER();
  return cu_result(cudaGraphKernelNodeSetAttribute(node, id, value));
}

PX_API CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, int id, cudaLaunchAttributeValue *value) {
  CU_ENTER();
  return cu_result(cudaGraphKernelNodeGetAttribute(node, id, value));
}

PX_API CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from) {
  CU_ENTER();
  return cu_result(cudaGraphKernelNodeCopyAttributes(to, from));
}

/* ---- nodes of any type ---- */

static CUresult any_content(CUgraphNodeParams *what, px_content *out) {
  CU_REQUIRE(what, CUDA_ERROR_INVALID_VALUE);
  switch (what->type) {
    case cudaGraphNodeTypeKernel: return kernel_content(&what->kernel, false, out);
    case cudaGraphNodeTypeMemcpy: return copy_content(&what->memcpy.copyParams, out);
    case cudaGraphNodeTypeMemset: return set_content(&what->memset, out);
    case cudaGraphNodeTypeHost: return cu_result(px_host_content(&what->host, out));
    case cudaGraphNodeTypeWaitEvent:
    case cudaGraphNodeTypeEventRecord: return cu_result(px_event_content(what->event, what->type, out));
    case cudaGraphNodeTypeGraph:
      *out = (px_content){.type = what->type, .child = what->graph};
      return what->graph ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case cudaGraphNodeTypeEmpty: *out = (px_content){.type = what->type}; return CUDA_SUCCESS;
    case cudaGraphNodeTypeMemAlloc: return cu_result(px_alloc_content(&what->alloc, out));
    case cudaGraphNodeTypeMemFree: return cu_result(px_free_content(what->free.dptr, out));
    default: return CUDA_ERROR_NOT_SUPPORTED;
  }
}

PX_API CUresult cuGraphAddNode_v2(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, const CUgraphEdgeData *data,
                                  size_t count, CUgraphNodeParams *what) {
  CU_REQUIRE(px_plain_edges(data, count), CUDA_ERROR_NOT_SUPPORTED);
  if (what && what->type == cudaGraphNodeTypeConditional) {
    CU_ENTER();
    return cu_result(px_add_conditional(out, graph, before, count, &what->conditional));
  }
  ADD(any_content(what, &content));
}

PX_API CUresult cuGraphAddNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t count,
                               CUgraphNodeParams *what) {
  return cuGraphAddNode_v2(out, graph, before, NULL, count, what);
}

PX_API CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams *what) { SET(any_content(what, &content)); }

PX_API CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *what) {
  CU_ENTER();
  if (what && what->type == cudaGraphNodeTypeGraph)
    return cu_result(cudaGraphExecChildGraphNodeSetParams(exec, node, what->graph));
  EXEC_SET(any_content(what, &content));
}
