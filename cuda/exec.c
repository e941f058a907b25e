/* exec.c: graphs that can be launched. */
#include <stdlib.h>
#include <string.h>
#include "px_flat.h"
#include "px_graph.h"
#include "px_runtime.h"
#include "bisect.h"

enum { FREE_ON_LAUNCH = 1, UPLOAD = 2, USE_PRIORITY = 8 };

struct px_graph_exec {
  px_mortal mortal;
  unsigned long long flags;
  px_flat all;
  px_item *last; /* a graph does not run beside itself; guarded by the lock of item.c */
};

static bool is_exec(cudaGraphExec_t exec) { return px_is_live(exec, PX_EXEC); }

/* ---- memory: each step that allocates has a block of its own, which is taken by a launch ---- */

static px_block *allocated_by(const px_step *at) { return at->type == cudaGraphNodeTypeMemAlloc ? at->work->block : NULL; }

static px_block *freed_by(const px_step *at) { return at->type == cudaGraphNodeTypeMemFree ? at->work->block : NULL; }

/* A block can be used by one executable graph at a time. */
static void disclaim(const px_flat *all, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (allocated_by(&all->step[i])) px_block_disclaim(allocated_by(&all->step[i]));
}

static bool claim(const px_flat *all) {
  for (size_t i = 0; i < all->count; i++) {
    px_block *block = allocated_by(&all->step[i]);
    if (!block || px_block_claim(block)) continue;
    disclaim(all, i);
    return false;
  }
  return true;
}

/* Undo the first steps of take_memory. */
static void untake_memory(const px_flat *all, size_t count) {
  while (count--) {
    const px_step *at = &all->step[count];
    if (allocated_by(at)) px_block_give(allocated_by(at));
    if (freed_by(at)) px_block_take(freed_by(at));
  }
}

/* What a launch takes and gives, in the order of its steps; false: something is taken already, or was not. `again`: what an earlier launch
 * has left is free. */
static bool take_memory(const px_flat *all, bool again) {
  for (size_t i = 0; again && i < all->count; i++)
    if (allocated_by(&all->step[i])) px_block_give(allocated_by(&all->step[i]));
  for (size_t i = 0; i < all->count; i++) {
    const px_step *at = &all->step[i];
    bool fits = allocated_by(at) ? px_block_take(allocated_by(at)) : !freed_by(at) || px_block_give(freed_by(at));
    if (fits) continue;
    untake_memory(all, i);
    return false;
  }
  return true;
}

/* ---- instantiation ---- */

static cudaError_t instantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags) {
  if (!out || !px_is_graph(graph)) return cudaErrorInvalidValue;
  if (flags & ~(unsigned long long)(FREE_ON_LAUNCH | UPLOAD | USE_PRIORITY)) return cudaErrorNotSupported;
  struct px_graph_exec *exec = calloc(1, sizeof *exec);
  if (!exec) return cudaErrorMemoryAllocation;
  exec->flags = flags;
  cudaError_t error = px_flatten(graph, &exec->all);
  if (!error) {
    bool claimed = claim(&exec->all), added = claimed && px_live_add(exec, PX_EXEC);
    if (claimed && !added) disclaim(&exec->all, exec->all.count);
    if (!added) px_flat_release(&exec->all);
    error = added ? cudaSuccess : claimed ? cudaErrorMemoryAllocation : cudaErrorNotSupported;
  }
  if (error) free(exec);
  *out = error ? NULL : exec;
  return error;
}

PX_API cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags) {
  ENTER_GRAPH(true);
  LEAVE(instantiate(out, graph, flags));
}

PX_API cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags) {
  return cudaGraphInstantiateWithFlags(out, graph, flags);
}

/* There is nothing to move before the first launch. */
PX_API cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t *out, cudaGraph_t graph,
                                                  cudaGraphInstantiateParams *params) {
  enum { DONE, FAILED, INVALID_STRUCTURE };
  PX_REQUIRE(params, cudaErrorInvalidValue);
  cudaError_t error = cudaGraphInstantiateWithFlags(out, graph, params->flags);
  params->errNode_out = NULL;
  params->result_out = !error ? DONE : error == cudaErrorInvalidValue ? INVALID_STRUCTURE : FAILED;
  return error;
}

PX_API cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long *flags) {
  ENTER_GRAPH(is_exec(exec) && flags);
  *flags = exec->flags;
  LEAVE(cudaSuccess);
}

static void end_exec(px_mortal *object) {
  cudaGraphExec_t exec = (cudaGraphExec_t)object;
  px_flat_release(&exec->all);
  if (exec->last) px_item_release(exec->last);
  free(exec);
}

/* A launch on another thread may be about to take the place of the last one. */
PX_API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  ENTER_GRAPH(px_live_remove(exec, PX_EXEC));
  disclaim(&exec->all, exec->all.count);
  px_end_later(&exec->mortal, end_exec);
  LEAVE(cudaSuccess);
}

/* ---- launches ---- */

PX_API cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  PX_ENTER();
  PX_REQUIRE(px_is_stream(stream), cudaErrorInvalidResourceHandle);
  cudaError_t error = px_capture_refuse(stream);
  PX_REQUIRE(!error, error);
  px_graph_lock();
  if (!is_exec(exec)) LEAVE(cudaErrorInvalidValue);
  if (!take_memory(&exec->all, exec->flags & FREE_ON_LAUNCH)) LEAVE(cudaErrorInvalidValue);
  px_plan *plan = px_plan_new(&exec->all);
  if (!plan) untake_memory(&exec->all, exec->all.count);
  px_graph_unlock();
  error = plan ? px_submit_graph(stream, plan, &exec->last) : cudaErrorMemoryAllocation;
  px_plan_release(plan);
  return px_report(error);
}

PX_API cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  PX_ENTER();
  PX_REQUIRE(px_is_stream(stream), cudaErrorInvalidResourceHandle);
  PX_REQUIRE(is_exec(exec), cudaErrorInvalidValue);
  return px_report(cudaSuccess);
}

/* ---- changes ---- */

/* The step of a node; NULL: the graph that was instantiated has had no such node. */
static px_step *step_of(const px_flat *all, unsigned long long id) {
  size_t low = PE_FIRST_NOT(middle, all->count, all->index[middle][0] < id);
  return low < all->count && all->index[low][0] == id ? &all->step[all->index[low][1]] : NULL;
}

static px_step *step_in(cudaGraphExec_t exec, cudaGraphNode_t node) {
  return is_exec(exec) && px_is_node(node) ? step_of(&exec->all, node->id) : NULL;
}

static void replace(px_step *at, px_work *work) {
  px_work_release(at->work);
  at->work = work;
}

cudaError_t px_exec_set(cudaGraphExec_t exec, cudaGraphNode_t node, px_content content) {
  px_graph_lock();
  px_step *at = step_in(exec, node);
  bool fits = at && at->type == content.type && px_type_can_change(content.type);
  cudaError_t error = fits ? px_keep_attributes(at->work, content.work) : cudaErrorInvalidValue;
  if (!error) replace(at, content.work);
  px_graph_unlock();
  if (error) px_work_release(content.work);
  return error;
}

/* ---- updates: another graph with the same nodes and edges ---- */

static int compare_steps(const px_flat *old, const px_flat *new, cudaGraphExecUpdateResultInfo *info) {
  for (size_t i = 0; i < new->count; i++) {
    if (new->step[i].type == old->step[i].type) continue;
    info->errorNode = new->step[i].node;
    return cudaGraphExecUpdateErrorNodeTypeChanged;
  }
  return cudaGraphExecUpdateSuccess;
}

static int compare_edges(const px_flat *old, const px_flat *new, cudaGraphExecUpdateResultInfo *info) {
  for (size_t i = 0; i < new->edges || i < old->edges; i++) {
    if (i < new->edges && i < old->edges && !memcmp(new->edge[i], old->edge[i], sizeof *new->edge)) continue;
    const size_t *differs = i < new->edges ? new->edge[i] : old->edge[i];
    info->errorNode = new->step[differs[1]].node;
    info->errorFromNode = i < new->edges ? new->step[differs[0]].node : NULL;
    return cudaGraphExecUpdateErrorTopologyChanged;
  }
  return cudaGraphExecUpdateSuccess;
}

static int compare_all(const px_flat *old, const px_flat *new, cudaGraphExecUpdateResultInfo *info) {
  for (size_t i = 0; i < new->count; i++)
    if (!px_type_can_change(new->step[i].type)) return cudaGraphExecUpdateErrorNotSupported;
  if (old->count != new->count) return cudaGraphExecUpdateErrorTopologyChanged;
  int result = compare_edges(old, new, info);
  return result ? result : compare_steps(old, new, info);
}

PX_API cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *info) {
  px_flat new;
  ENTER_GRAPH(is_exec(exec) && px_is_graph(graph) && info);
  *info = (cudaGraphExecUpdateResultInfo){.result = cudaGraphExecUpdateError};
  cudaError_t error = px_flatten(graph, &new);
  if (error) LEAVE(error);
  info->result = compare_all(&exec->all, &new, info);
  for (size_t i = 0; !info->result && i < new.count; i++) {
    replace(&exec->all.step[i], new.step[i].work);
    new.step[i].work = NULL;
  }
  px_flat_release(&new);
  LEAVE(info->result ? cudaErrorGraphExecUpdateFailure : cudaSuccess);
}

/* CUDA 11 wants to know less. */
PX_API cudaError_t px_graph_update_of_11(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphNode_t *node, int *result) {
  cudaGraphExecUpdateResultInfo info = {.result = cudaGraphExecUpdateError};
  PX_REQUIRE(result, cudaErrorInvalidValue);
  cudaError_t error = cudaGraphExecUpdate(exec, graph, &info);
  *result = info.result;
  if (node) *node = info.errorNode;
  return error;
}

/* The same of a graph within: `old` is the one that the node has. */
static cudaError_t replace_child(cudaGraphExec_t exec, const px_flat *old, const px_flat *new) {
  cudaGraphExecUpdateResultInfo unused = {0};
  if (compare_all(old, new, &unused)) return cudaErrorGraphExecUpdateFailure;
  for (size_t i = 0; i < old->count; i++)
    if (old->step[i].id && !step_of(&exec->all, old->step[i].id)) return cudaErrorInvalidValue;
  for (size_t i = 0; i < old->count; i++) {
    if (!old->step[i].id) continue;
    replace(step_of(&exec->all, old->step[i].id), new->step[i].work);
    new->step[i].work = NULL;
  }
  return cudaSuccess;
}

PX_API cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraph_t graph) {
  px_flat old, new;
  ENTER_GRAPH(step_in(exec, node) && node->child && px_is_graph(graph));
  cudaError_t error = px_flatten(node->child, &old);
  if (error) LEAVE(error);
  error = px_flatten(graph, &new);
  if (!error) {
    error = replace_child(exec, &old, &new);
    px_flat_release(&new);
  }
  px_flat_release(&old);
  LEAVE(error);
}

/* ---- nodes that do nothing for a while ---- */

/* The step of a node that may do so, or NULL. */
static px_step *switched(cudaGraphExec_t exec, cudaGraphNode_t node) {
  px_step *at = step_in(exec, node);
  if (!at) return NULL;
  bool can =
      at->type == cudaGraphNodeTypeKernel || at->type == cudaGraphNodeTypeMemcpy || at->type == cudaGraphNodeTypeMemset;
  return can ? at : NULL;
}

PX_API cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned enabled) {
  ENTER_GRAPH(true);
  px_step *at = switched(exec, node);
  if (!at) LEAVE(cudaErrorInvalidValue);
  at->disabled = !enabled;
  LEAVE(cudaSuccess);
}

PX_API cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned *enabled) {
  ENTER_GRAPH(enabled);
  const px_step *at = switched(exec, node);
  if (!at) LEAVE(cudaErrorInvalidValue);
  *enabled = !at->disabled;
  LEAVE(cudaSuccess);
}
