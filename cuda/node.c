/* node.c: the parameters of nodes, and nodes that are made of them, as the runtime API has it. */
#include <stdlib.h>
#include "checked.h"
#include "px_graph.h"
#include "px_launch.h"
#include "px_runtime.h"
#include "registry.h"

/* ---- kernels ---- */

cudaError_t px_kernel_content(px_kernel *kernel, const px_geometry *g, void **arguments, void **extra, px_content *out) {
  void **places = arguments;
  if (arguments && extra) return cudaErrorInvalidValue;
  if (!arguments && !extra && kernel->facts->parameters) return cudaErrorInvalidValue;
  cudaError_t error = extra ? px_places(kernel, extra, &places) : cudaSuccess;
  if (error) return error;
  *out = (px_content){.type = cudaGraphNodeTypeKernel};
  error = px_launch_work(kernel, g, places, &out->work);
  if (extra) free(places);
  return error;
}

static cudaError_t kernel_content(const cudaKernelNodeParams *what, px_content *out) {
  px_kernel *kernel;
  if (!what) return cudaErrorInvalidValue;
  cudaError_t error = px_kernel_of(what->func, &kernel);
  if (error) return error;
  px_geometry g = {.grid = what->gridDim, .block = what->blockDim, .shared = what->sharedMemBytes, .handle = what->func};
  return px_kernel_content(kernel, &g, what->kernelParams, what->extra, out);
}

cudaError_t px_node_places(cudaGraphNode_t node, void ***out) {
  ENTER_GRAPH(px_is_node(node) && node->type == cudaGraphNodeTypeKernel);
  const pe_start *start = &node->work->start;
  const pe_parameter_facts *parameters =
      pe_entry_section(pe_module_entry(start->module), PE_SECTION_PARAMETERS, &(uint64_t){0});
  parameters += start->kernel->parameter;
  if (!node->places) node->places = calloc(start->kernel->parameters + 1u, sizeof *node->places);
  if (!node->places) LEAVE(cudaErrorMemoryAllocation);
  for (uint32_t i = 0; i < start->kernel->parameters; i++) node->places[i] = node->work->params + parameters[i].offset;
  *out = node->places;
  LEAVE(cudaSuccess);
}

static cudaError_t write_kernel(cudaGraphNode_t node, cudaKernelNodeParams *out) {
  px_work *work;
  cudaError_t error = px_node_work(node, cudaGraphNodeTypeKernel, &work);
  if (error) return error;
  const pe_start *start = &work->start;
  *out = (cudaKernelNodeParams){.func = (void *)(uintptr_t)work->handle,
                                .gridDim = {start->grid[0], start->grid[1], start->grid[2]},
                                .blockDim = {start->block[0], start->block[1], start->block[2]},
                                .sharedMemBytes = (unsigned)start->dynamic_shared};
  px_work_release(work);
  return px_node_places(node, &out->kernelParams);
}

/* ---- copies ---- */

cudaError_t px_copy_content(const cudaMemcpy3DParms *what, px_content *out) {
  px_box box;
  cudaError_t error = px_copy_parse(what, &box);
  *out = (px_content){.type = cudaGraphNodeTypeMemcpy};
  return error ? error : px_copy_work(&box, what->kind, &out->work);
}

static void write_side(const px_side *side, const px_box *box, cudaArray_t *array, cudaPos *at, cudaPitchedPtr *memory) {
  *array = side->array;
  if (side->array)
    *at = (cudaPos){side->x / box->texel, side->y, side->z};
  else
    *memory = (cudaPitchedPtr){side->memory, side->pitch, box->width, side->pitch ? side->slice / side->pitch : 0};
}

static cudaError_t write_copy(cudaGraphNode_t node, cudaMemcpy3DParms *out) {
  px_work *work;
  cudaError_t error = px_node_work(node, cudaGraphNodeTypeMemcpy, &work);
  if (error) return error;
  const px_box *box = &work->box;
  *out = (cudaMemcpy3DParms){.extent = {box->width, box->height, box->depth}, .kind = work->direction};
  write_side(&box->from, box, &out->srcArray, &out->srcPos, &out->srcPtr);
  write_side(&box->to, box, &out->dstArray, &out->dstPos, &out->dstPtr);
  out->extent.width /= box->texel;
  px_work_release(work);
  return cudaSuccess;
}

static cudaMemcpy3DParms bytes(void *to, const void *from, size_t size, int kind) {
  return (cudaMemcpy3DParms){
    .srcPtr = {(void *)(uintptr_t)from, size, size, 1}, .dstPtr = {to, size, size, 1}, .extent = {size, 1, 1}, .kind = kind};
}

static cudaError_t bytes_content(void *to, const void *from, size_t size, int kind, px_content *out) {
  cudaMemcpy3DParms what = bytes(to, from, size, kind);
  return px_copy_content(&what, out);
}

/* Where some bytes of a variable lie. */
static cudaError_t find_symbol(const void *symbol, size_t size, size_t offset, void **out) {
  uint64_t address, whole;
  cudaError_t error = px_variable_of(symbol, &address, &whole);
  if (error) return error;
  if (!pe_within(offset, size, whole)) return cudaErrorInvalidValue;
  *out = (void *)(uintptr_t)(address + offset);
  return cudaSuccess;
}

static cudaError_t to_symbol_content(const void *symbol, const void *from, size_t size, size_t offset, int kind,
                                     px_content *out) {
  void *at;
  cudaError_t error = find_symbol(symbol, size, offset, &at);
  return error ? error : bytes_content(at, from, size, kind, out);
}

static cudaError_t from_symbol_content(void *to, const void *symbol, size_t size, size_t offset, int kind, px_content *out) {
  void *at;
  cudaError_t error = find_symbol(symbol, size, offset, &at);
  return error ? error : bytes_content(to, at, size, kind, out);
}

/* ---- sets ---- */

cudaError_t px_set_content(const cudaMemsetParams *what, px_content *out) {
  *out = (px_content){.type = cudaGraphNodeTypeMemset};
  if (!what || (what->elementSize != 1 && what->elementSize != 2 && what->elementSize != 4)) return cudaErrorInvalidValue;
  px_box box = {.to = {.memory = what->dst, .pitch = what->pitch},
                .height = what->height,
                .depth = 1,
                .value = what->value,
                .repeats = what->elementSize};
  bool fits = !__builtin_mul_overflow(what->width, what->elementSize, &box.width) &&
              (uintptr_t)what->dst % what->elementSize == 0 && (what->height <= 1 || what->pitch % what->elementSize == 0);
  return fits ? px_set_work(&box, &out->work) : cudaErrorInvalidValue;
}

static cudaError_t write_set(cudaGraphNode_t node, cudaMemsetParams *out) {
  px_work *work;
  cudaError_t error = px_node_work(node, cudaGraphNodeTypeMemset, &work);
  if (error) return error;
  const px_box *box = &work->box;
  *out = (cudaMemsetParams){.dst = box->to.memory,
                            .pitch = box->to.pitch,
                            .value = box->value,
                            .elementSize = (unsigned)box->repeats,
                            .width = box->width / box->repeats,
                            .height = box->height};
  px_work_release(work);
  return cudaSuccess;
}

/* ---- functions of the program, events ---- */

cudaError_t px_host_content(const cudaHostNodeParams *what, px_content *out) {
  if (!what || !what->fn) return cudaErrorInvalidValue;
  *out = (px_content){.type = cudaGraphNodeTypeHost, .work = px_host_work(what->fn, what->userData)};
  return out->work ? cudaSuccess : cudaErrorMemoryAllocation;
}

static cudaError_t write_host(cudaGraphNode_t node, cudaHostNodeParams *out) {
  px_work *work;
  cudaError_t error = px_node_work(node, cudaGraphNodeTypeHost, &work);
  if (error) return error;
  *out = (cudaHostNodeParams){work->function, work->data};
  px_work_release(work);
  return cudaSuccess;
}

cudaError_t px_event_content(cudaEvent_t event, int type, px_content *out) {
  if (!px_is_event(event)) return cudaErrorInvalidValue;
  px_kind kind = type == cudaGraphNodeTypeEventRecord ? PX_RECORD : PX_WAIT;
  *out = (px_content){.type = type, .work = px_work_event(kind, event)};
  return out->work ? cudaSuccess : cudaErrorMemoryAllocation;
}

static cudaError_t write_event(cudaGraphNode_t node, int type, cudaEvent_t *out) {
  px_work *work;
  cudaError_t error = px_node_work(node, type, &work);
  if (error) return error;
  *out = work->event;
  px_work_release(work);
  return cudaSuccess;
}

/* ---- the API ----
 *
 * What a node is made of goes into a new one, into one that is there, or into what was instantiated of it. CONTENT is the call that
 * finds it.
 */
#define ADD(CONTENT)                                                                          \
  do {                                                                                        \
    px_content content;                                                                       \
    PX_ENTER();                                                                               \
    cudaError_t px_wrong = (CONTENT);                                                         \
    return px_report(px_wrong ? px_wrong : px_graph_add(out, graph, before, count, content)); \
  } while (0)
#define SET(CONTENT)                                                    \
  do {                                                                  \
    px_content content;                                                 \
    PX_ENTER();                                                         \
    cudaError_t px_wrong = (CONTENT);                                   \
    return px_report(px_wrong ? px_wrong : px_node_set(node, content)); \
  } while (0)
#define EXEC_SET(CONTENT)                                                     \
  do {                                                                        \
    px_content content;                                                       \
    PX_ENTER();                                                               \
    cudaError_t px_wrong = (CONTENT);                                         \
    return px_report(px_wrong ? px_wrong : px_exec_set(exec, node, content)); \
  } while (0)
#define GET(condition, WRITTEN)                   \
  do {                                            \
    PX_ENTER();                                   \
    PX_REQUIRE(condition, cudaErrorInvalidValue); \
    return px_report(WRITTEN);                    \
  } while (0)

#define NEW_NODE cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count

PX_API cudaError_t cudaGraphAddKernelNode(NEW_NODE, const cudaKernelNodeParams *what) {
  ADD(kernel_content(what, &content));
}
PX_API cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams *what) {
  SET(kernel_content(what, &content));
}
PX_API cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                    const cudaKernelNodeParams *what) {
  EXEC_SET(kernel_content(what, &content));
}

PX_API cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams *what) {
  GET(what, write_kernel(node, what));
}

PX_API cudaError_t cudaGraphAddMemcpyNode(NEW_NODE, const cudaMemcpy3DParms *what) { ADD(px_copy_content(what, &content)); }
PX_API cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms *what) {
  SET(px_copy_content(what, &content));
}
PX_API cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                    const cudaMemcpy3DParms *what) {
  EXEC_SET(px_copy_content(what, &content));
}

PX_API cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms *what) {
  GET(what, write_copy(node, what));
}

PX_API cudaError_t cudaGraphAddMemcpyNode1D(NEW_NODE, void *to, const void *from, size_t size, int kind) {
  ADD(bytes_content(to, from, size, kind, &content));
}
PX_API cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *to, const void *from, size_t size, int kind) {
  SET(bytes_content(to, from, size, kind, &content));
}
PX_API cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void *to, const void *from,
                                                      size_t size, int kind) {
  EXEC_SET(bytes_content(to, from, size, kind, &content));
}

PX_API cudaError_t cudaGraphAddMemcpyNodeToSymbol(NEW_NODE, const void *symbol, const void *from, size_t size, size_t offset,
                                                  int kind) {
  ADD(to_symbol_content(symbol, from, size, offset, kind, &content));
}
PX_API cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void *symbol, const void *from,
                                                        size_t size, size_t offset, int kind) {
  SET(to_symbol_content(symbol, from, size, offset, kind, &content));
}
PX_API cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t exec, cudaGraphNode_t node, const void *symbol,
                                                            const void *from, size_t size, size_t offset, int kind) {
  EXEC_SET(to_symbol_content(symbol, from, size, offset, kind, &content));
}

PX_API cudaError_t cudaGraphAddMemcpyNodeFromSymbol(NEW_NODE, void *to, const void *symbol, size_t size, size_t offset,
                                                    int kind) {
  ADD(from_symbol_content(to, symbol, size, offset, kind, &content));
}
PX_API cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void *to, const void *symbol, size_t size,
                                                          size_t offset, int kind) {
  SET(from_symbol_content(to, symbol, size, offset, kind, &content));
}
PX_API cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t exec, cudaGraphNode_t node, void *to,
                                                              const void *symbol, size_t size, size_t offset, int kind) {
  EXEC_SET(from_symbol_content(to, symbol, size, offset, kind, &content));
}

PX_API cudaError_t cudaGraphAddMemsetNode(NEW_NODE, const cudaMemsetParams *what) { ADD(px_set_content(what, &content)); }
PX_API cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams *what) {
  SET(px_set_content(what, &content));
}
PX_API cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                    const cudaMemsetParams *what) {
  EXEC_SET(px_set_content(what, &content));
}

PX_API cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, cudaMemsetParams *what) {
  GET(what, write_set(node, what));
}

PX_API cudaError_t cudaGraphAddHostNode(NEW_NODE, const cudaHostNodeParams *what) { ADD(px_host_content(what, &content)); }
PX_API cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const cudaHostNodeParams *what) {
  SET(px_host_content(what, &content));
}
PX_API cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                  const cudaHostNodeParams *what) {
  EXEC_SET(px_host_content(what, &content));
}

PX_API cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, cudaHostNodeParams *what) {
  GET(what, write_host(node, what));
}

PX_API cudaError_t cudaGraphAddEventRecordNode(NEW_NODE, cudaEvent_t event) {
  ADD(px_event_content(event, cudaGraphNodeTypeEventRecord, &content));
}
PX_API cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  SET(px_event_content(event, cudaGraphNodeTypeEventRecord, &content));
}
PX_API cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event) {
  EXEC_SET(px_event_content(event, cudaGraphNodeTypeEventRecord, &content));
}

PX_API cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event) {
  GET(event, write_event(node, cudaGraphNodeTypeEventRecord, event));
}

PX_API cudaError_t cudaGraphAddEventWaitNode(NEW_NODE, cudaEvent_t event) {
  ADD(px_event_content(event, cudaGraphNodeTypeWaitEvent, &content));
}
PX_API cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  SET(px_event_content(event, cudaGraphNodeTypeWaitEvent, &content));
}
PX_API cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event) {
  EXEC_SET(px_event_content(event, cudaGraphNodeTypeWaitEvent, &content));
}

PX_API cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event) {
  GET(event, write_event(node, cudaGraphNodeTypeWaitEvent, event));
}

PX_API cudaError_t cudaGraphAddEmptyNode(NEW_NODE) {
  PX_ENTER();
  return px_report(px_graph_add(out, graph, before, count, (px_content){.type = cudaGraphNodeTypeEmpty}));
}

PX_API cudaError_t cudaGraphAddChildGraphNode(NEW_NODE, cudaGraph_t child) {
  PX_ENTER();
  PX_REQUIRE(child, cudaErrorInvalidValue);
  return px_report(px_graph_add(out, graph, before, count, (px_content){.type = cudaGraphNodeTypeGraph, .child = child}));
}

/* ---- nodes of any type ---- */

static cudaError_t any_content(cudaGraphNodeParams *what, px_content *out) {
  if (!what) return cudaErrorInvalidValue;
  switch (what->type) {
    case cudaGraphNodeTypeKernel: return kernel_content(&what->kernel, out);
    case cudaGraphNodeTypeMemcpy: return px_copy_content(&what->memcpy.copyParams, out);
    case cudaGraphNodeTypeMemset: return px_set_content(&what->memset, out);
    case cudaGraphNodeTypeHost: return px_host_content(&what->host, out);
    case cudaGraphNodeTypeWaitEvent:
    case cudaGraphNodeTypeEventRecord: return px_event_content(what->event, what->type, out);
    case cudaGraphNodeTypeGraph:
      *out = (px_content){.type = what->type, .child = what->graph};
      return what->graph ? cudaSuccess : cudaErrorInvalidValue;
    case cudaGraphNodeTypeEmpty: *out = (px_content){.type = what->type}; return cudaSuccess;
    case cudaGraphNodeTypeMemAlloc: return px_alloc_content(&what->alloc, out);
    case cudaGraphNodeTypeMemFree: return px_free_content(what->free.dptr, out);
    default: return cudaErrorNotSupported;
  }
}

PX_API cudaError_t cudaGraphAddNode_v2(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *before,
                                       const cudaGraphEdgeData *data, size_t count, cudaGraphNodeParams *what) {
  PX_REQUIRE(px_plain_edges(data, count), cudaErrorNotSupported);
  if (what && what->type == cudaGraphNodeTypeConditional) {
    PX_ENTER();
    return px_report(px_add_conditional(out, graph, before, count, &what->conditional));
  }
  ADD(any_content(what, &content));
}

PX_API cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, cudaGraphNodeParams *what) {
  SET(any_content(what, &content));
}

PX_API cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraphNodeParams *what) {
  if (what && what->type == cudaGraphNodeTypeGraph) return cudaGraphExecChildGraphNodeSetParams(exec, node, what->graph);
  EXEC_SET(any_content(what, &content));
}
