/* memory_node.c: nodes of graphs that allocate memory and free it. */
#include "px_graph.h"
#include "px_place.h"
#include "px_runtime.h"

static bool is_on_device(const cudaMemPoolProps *where) {
  bool placed = where->location.type == cudaMemLocationTypeDevice && !px_place_error(&where->location);
  return placed && where->allocType == cudaMemAllocationTypePinned && !where->handleTypes;
}

cudaError_t px_alloc_content(cudaMemAllocNodeParams *what, px_content *out) {
  if (!what || !what->bytesize || !is_on_device(&what->poolProps)) return cudaErrorInvalidValue;
  for (size_t i = 0; i < what->accessDescCount; i++)
    if (!what->accessDescs || px_place_error(&what->accessDescs[i].location)) return cudaErrorInvalidValue;
  px_block *block = px_block_new(what->bytesize);
  if (!block) return cudaErrorMemoryAllocation;
  what->dptr = (void *)(uintptr_t)px_block_address(block);
  *out = (px_content){.type = cudaGraphNodeTypeMemAlloc, .work = px_work_block(PX_TAKE, block)};
  return out->work ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t px_free_content(const void *address, px_content *out) {
  px_block *block = px_block_at(address);
  if (!block) return cudaErrorInvalidValue;
  *out = (px_content){.type = cudaGraphNodeTypeMemFree, .work = px_work_block(PX_GIVE, block)};
  return out->work ? cudaSuccess : cudaErrorMemoryAllocation;
}

static cudaError_t add(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,
                       cudaError_t wrong, px_content content) {
  return px_report(wrong ? wrong : px_graph_add(out, graph, before, count, content));
}

PX_API cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *before,
                                            size_t count, cudaMemAllocNodeParams *what) {
  px_content content = {0};
  PX_ENTER();
  cudaError_t wrong = px_alloc_content(what, &content);
  return add(out, graph, before, count, wrong, content);
}

PX_API cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *before,
                                           size_t count, void *address) {
  px_content content = {0};
  PX_ENTER();
  cudaError_t wrong = px_free_content(address, &content);
  return add(out, graph, before, count, wrong, content);
}

PX_API cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node, cudaMemAllocNodeParams *what) {
  px_work *work;
  PX_ENTER();
  PX_REQUIRE(what, cudaErrorInvalidValue);
  cudaError_t error = px_node_work(node, cudaGraphNodeTypeMemAlloc, &work);
  PX_REQUIRE(!error, error);
  *what = (cudaMemAllocNodeParams){.poolProps = {.allocType = cudaMemAllocationTypePinned, .location = px_place(0)},
                                   .bytesize = px_block_size(work->block),
                                   .dptr = (void *)(uintptr_t)px_block_address(work->block)};
  px_work_release(work);
  return px_report(cudaSuccess);
}

/* `out` is where the address goes. */
PX_API cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void *out) {
  px_work *work;
  PX_ENTER();
  PX_REQUIRE(out, cudaErrorInvalidValue);
  cudaError_t error = px_node_work(node, cudaGraphNodeTypeMemFree, &work);
  PX_REQUIRE(!error, error);
  *(void **)out = (void *)(uintptr_t)px_block_address(work->block);
  px_work_release(work);
  return px_report(cudaSuccess);
}
