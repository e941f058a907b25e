/* exec.c: graphs that can be launched.
 *
 * A graph is made flat: the nodes of a graph within it stand between two steps, its begin and its end. Each step knows its node by the
 * number of that, so that its work can be replaced as long as nothing else changes.
 */
#include <stdlib.h>
#include <string.h>
#include "px_graph.h"
#include "px_runtime.h"

enum { FREE_ON_LAUNCH = 1, UPLOAD = 2, USE_PRIORITY = 8 };

typedef struct step {
  unsigned long long id; /* of the node; 0: the end of a graph within */
  struct px_node *node;  /* as long as the graph is looked at */
  int type;
  px_work *work; /* NULL: none */
  bool disabled;
} step;

/* Steps, each behind those that it waits for, and pairs of their numbers: before, behind. */
typedef struct flat {
  step *step;
  size_t count, room;
  size_t (*edge)[2];
  size_t edges, edge_room;
  size_t (*index)[2]; /* numbers of nodes and of their steps, in the order of the former */
} flat;

struct px_graph_exec {
  px_mortal mortal;
  unsigned long long flags;
  flat all;
  px_item *last; /* a graph does not run beside itself; guarded by the lock of queue.c */
};

static bool is_exec(cudaGraphExec_t exec) { return px_is_live(exec, PX_EXEC); }

/* ---- flattening ---- */

static bool make_room(void *array, size_t count, size_t *room, size_t size) {
  void *before, *grown;
  if (count < *room) return true;
  size_t more = *room ? 2 * *room : 16;
  memcpy(&before, array, sizeof before);
  grown = realloc(before, more * size);
  if (!grown) return false;
  memcpy(array, &grown, sizeof grown);
  *room = more;
  return true;
}

static bool add_step(flat *all, struct px_node *node, bool end) {
  if (!make_room(&all->step, all->count, &all->room, sizeof *all->step)) return false;
  px_work *work = end ? NULL : node->work;
  if (work) px_work_keep(work);
  all->step[all->count++] = (step){end ? 0 : node->id, node, node->type, work, false};
  return true;
}

static bool add_edge(flat *all, size_t before, size_t behind) {
  if (!make_room(&all->edge, all->edges, &all->edge_room, sizeof *all->edge)) return false;
  all->edge[all->edges][0] = before;
  all->edge[all->edges++][1] = behind;
  return true;
}

static bool add_steps(flat *all, const struct px_graph *graph) {
  bool fits = true;
  for (struct px_node *node = graph->first; fits && node; node = node->next) {
    node->number = node->end = all->count;
    fits = add_step(all, node, false);
    if (!fits || !node->child) continue;
    fits = add_steps(all, node->child);
    node->end = all->count;
    fits = fits && add_step(all, node, true);
  }
  return fits;
}

/* `within`: the node whose graph it is, or NULL. */
static bool add_edges(flat *all, const struct px_graph *graph, const struct px_node *within) {
  bool fits = true;
  for (const struct px_node *node = graph->first; fits && node; node = node->next) {
    for (size_t i = 0; fits && i < node->before.count; i++) fits = add_edge(all, node->before.node[i]->end, node->number);
    if (within && !node->before.count) fits = fits && add_edge(all, within->number, node->number);
    if (within && !node->behind.count) fits = fits && add_edge(all, node->end, within->end);
    if (node->child) fits = fits && add_edges(all, node->child, node);
    if (node->child && !node->child->count) fits = fits && add_edge(all, node->number, node->end);
  }
  return fits;
}

static int by_first(const void *a, const void *b) {
  const size_t *x = a, *y = b;
  return x[0] != y[0] ? (x[0] > y[0]) - (x[0] < y[0]) : (x[1] > y[1]) - (x[1] < y[1]);
}

static int by_second(const void *a, const void *b) {
  const size_t *x = a, *y = b;
  return x[1] != y[1] ? (x[1] > y[1]) - (x[1] < y[1]) : (x[0] > y[0]) - (x[0] < y[0]);
}

static void sort_edges(flat *all, int (*order)(const void *, const void *)) {
  if (all->edges) qsort(all->edge, all->edges, sizeof *all->edge, order);
}

/* Places of steps so that each is behind those that it waits for; edges are sorted by what comes before. The number of steps that have
 * got one: fewer than there are if they go in circles. `waits` and `queue` have room for all. */
static size_t find_places(const flat *all, size_t *place, size_t *waits, size_t *queue) {
  size_t queued = 0;
  for (size_t i = 0; i < all->edges; i++) waits[all->edge[i][1]]++;
  for (size_t i = 0; i < all->count; i++)
    if (!waits[i]) queue[queued++] = i;
  for (size_t at = 0; at < queued; at++) {
    size_t low = 0, high = all->edges;
    place[queue[at]] = at;
    while (low < high) {
      size_t middle = low + (high - low) / 2;
      if (all->edge[middle][0] < queue[at])
        low = middle + 1;
      else
        high = middle;
    }
    for (; low < all->edges && all->edge[low][0] == queue[at]; low++)
      if (!--waits[all->edge[low][1]]) queue[queued++] = all->edge[low][1];
  }
  return queued;
}

/* Put steps in the order of their places. */
static void move_steps(flat *all, const size_t *place, step *spare) {
  for (size_t i = 0; i < all->count; i++) spare[place[i]] = all->step[i];
  if (all->count) memcpy(all->step, spare, all->count * sizeof *spare);
  for (size_t i = 0; i < all->edges; i++)
    for (int end = 0; end < 2; end++) all->edge[i][end] = place[all->edge[i][end]];
}

static cudaError_t put_in_order(flat *all) {
  size_t *numbers = calloc(3 * all->count + 1, sizeof *numbers);
  step *spare = calloc(all->count + 1, sizeof *spare);
  cudaError_t error = numbers && spare ? cudaSuccess : cudaErrorMemoryAllocation;
  if (!error) {
    sort_edges(all, by_first);
    if (find_places(all, numbers, numbers + all->count, numbers + 2 * all->count) < all->count)
      error = cudaErrorInvalidValue;
  }
  if (!error) move_steps(all, numbers, spare);
  if (!error) sort_edges(all, by_second);
  free(numbers);
  free(spare);
  return error;
}

static bool make_index(flat *all) {
  all->index = calloc(all->count + 1, sizeof *all->index);
  if (!all->index) return false;
  for (size_t i = 0; i < all->count; i++) {
    all->index[i][0] = all->step[i].id;
    all->index[i][1] = i;
  }
  if (all->count) qsort(all->index, all->count, sizeof *all->index, by_first);
  return true;
}

static void release(flat *all) {
  for (size_t i = 0; i < all->count; i++) px_work_release(all->step[i].work);
  free(all->step);
  free(all->edge);
  free(all->index);
}

static cudaError_t flatten(const struct px_graph *graph, flat *all) {
  *all = (flat){0};
  bool fits = add_steps(all, graph) && add_edges(all, graph, NULL);
  cudaError_t error = fits ? put_in_order(all) : cudaErrorMemoryAllocation;
  if (!error && !make_index(all)) error = cudaErrorMemoryAllocation;
  if (error) release(all);
  return error;
}

/* ---- memory: each step that allocates has a block of its own, which is taken by a launch ---- */

static px_block *allocated_by(const step *at) { return at->type == cudaGraphNodeTypeMemAlloc ? at->work->block : NULL; }

static px_block *freed_by(const step *at) { return at->type == cudaGraphNodeTypeMemFree ? at->work->block : NULL; }

/* A block can be used by one executable graph at a time. */
static void disclaim(const flat *all, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (allocated_by(&all->step[i])) px_block_disclaim(allocated_by(&all->step[i]));
}

static bool claim(const flat *all) {
  for (size_t i = 0; i < all->count; i++) {
    px_block *block = allocated_by(&all->step[i]);
    if (!block || px_block_claim(block)) continue;
    disclaim(all, i);
    return false;
  }
  return true;
}

/* Undo the first steps of take_memory. */
static void untake_memory(const flat *all, size_t count) {
  while (count--) {
    const step *at = &all->step[count];
    if (allocated_by(at)) px_block_give(allocated_by(at));
    if (freed_by(at)) px_block_take(freed_by(at));
  }
}

/* What a launch takes and gives, in the order of its steps; false: something is taken already, or was not. `again`: what an earlier launch
 * has left is free. */
static bool take_memory(const flat *all, bool again) {
  for (size_t i = 0; again && i < all->count; i++)
    if (allocated_by(&all->step[i])) px_block_give(allocated_by(&all->step[i]));
  for (size_t i = 0; i < all->count; i++) {
    const step *at = &all->step[i];
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
  cudaError_t error = flatten(graph, &exec->all);
  if (!error) {
    bool claimed = claim(&exec->all), added = claimed && px_live_add(exec, PX_EXEC);
    if (claimed && !added) disclaim(&exec->all, exec->all.count);
    if (!added) release(&exec->all);
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
  release(&exec->all);
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

static void end_plan(px_plan *plan) {
  for (size_t i = 0; i < plan->count; i++) px_work_release(plan->work[i]);
  free(plan->work);
  free(plan->edge);
}

/* What a launch does: work may be replaced in the graph before it is done. */
static bool make_plan(const flat *all, px_plan *plan) {
  *plan = (px_plan){.work = calloc(all->count + 1, sizeof(px_work *)), .edge = calloc(all->edges + 1, sizeof *plan->edge)};
  if (!plan->work || !plan->edge) return false;
  for (; plan->count < all->count; plan->count++) {
    const step *at = &all->step[plan->count];
    if (at->work && !at->disabled) plan->work[plan->count] = px_work_keep(at->work);
  }
  if (all->edges) memcpy(plan->edge, all->edge, all->edges * sizeof *plan->edge);
  plan->edges = all->edges;
  return true;
}

PX_API cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  px_plan plan;
  PX_ENTER();
  PX_REQUIRE(px_is_stream(stream), cudaErrorInvalidResourceHandle);
  cudaError_t error = px_capture_refuse(stream);
  PX_REQUIRE(!error, error);
  px_graph_lock();
  if (!is_exec(exec)) LEAVE(cudaErrorInvalidValue);
  if (!take_memory(&exec->all, exec->flags & FREE_ON_LAUNCH)) LEAVE(cudaErrorInvalidValue);
  bool made = make_plan(&exec->all, &plan);
  if (!made) untake_memory(&exec->all, exec->all.count);
  px_graph_unlock();
  error = made ? px_submit_graph(stream, &plan, &exec->last) : cudaErrorMemoryAllocation;
  end_plan(&plan);
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
static step *step_of(const flat *all, unsigned long long id) {
  size_t low = 0, high = all->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (all->index[middle][0] < id)
      low = middle + 1;
    else
      high = middle;
  }
  return low < all->count && all->index[low][0] == id ? &all->step[all->index[low][1]] : NULL;
}

static step *step_in(cudaGraphExec_t exec, cudaGraphNode_t node) {
  return is_exec(exec) && px_is_node(node) ? step_of(&exec->all, node->id) : NULL;
}

static void replace(step *at, px_work *work) {
  px_work_release(at->work);
  at->work = work;
}

cudaError_t px_exec_set(cudaGraphExec_t exec, cudaGraphNode_t node, px_content content) {
  px_graph_lock();
  step *at = step_in(exec, node);
  bool fits = at && at->type == content.type && px_type_can_change(content.type);
  if (fits) replace(at, content.work);
  px_graph_unlock();
  if (!fits) px_work_release(content.work);
  return fits ? cudaSuccess : cudaErrorInvalidValue;
}

/* ---- updates: another graph with the same nodes and edges ---- */

static int compare_steps(const flat *old, const flat *new, cudaGraphExecUpdateResultInfo *info) {
  for (size_t i = 0; i < new->count; i++) {
    if (new->step[i].type == old->step[i].type) continue;
    info->errorNode = new->step[i].node;
    return cudaGraphExecUpdateErrorNodeTypeChanged;
  }
  return cudaGraphExecUpdateSuccess;
}

static int compare_edges(const flat *old, const flat *new, cudaGraphExecUpdateResultInfo *info) {
  for (size_t i = 0; i < new->edges || i < old->edges; i++) {
    if (i < new->edges && i < old->edges && !memcmp(new->edge[i], old->edge[i], sizeof *new->edge)) continue;
    const size_t *differs = i < new->edges ? new->edge[i] : old->edge[i];
    info->errorNode = new->step[differs[1]].node;
    info->errorFromNode = i < new->edges ? new->step[differs[0]].node : NULL;
    return cudaGraphExecUpdateErrorTopologyChanged;
  }
  return cudaGraphExecUpdateSuccess;
}

static int compare_all(const flat *old, const flat *new, cudaGraphExecUpdateResultInfo *info) {
  for (size_t i = 0; i < new->count; i++)
    if (!px_type_can_change(new->step[i].type)) return cudaGraphExecUpdateErrorNotSupported;
  if (old->count != new->count) return cudaGraphExecUpdateErrorTopologyChanged;
  int result = compare_edges(old, new, info);
  return result ? result : compare_steps(old, new, info);
}

PX_API cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *info) {
  flat new;
  ENTER_GRAPH(is_exec(exec) && px_is_graph(graph) && info);
  *info = (cudaGraphExecUpdateResultInfo){.result = cudaGraphExecUpdateError};
  cudaError_t error = flatten(graph, &new);
  if (error) LEAVE(error);
  info->result = compare_all(&exec->all, &new, info);
  for (size_t i = 0; !info->result && i < new.count; i++) {
    replace(&exec->all.step[i], new.step[i].work);
    new.step[i].work = NULL;
  }
  release(&new);
  LEAVE(info->result ? cudaErrorGraphExecUpdateFailure : cudaSuccess);
}

/* The same of a graph within: `old` is the one that the node has. */
static cudaError_t replace_child(cudaGraphExec_t exec, const flat *old, const flat *new) {
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
  flat old, new;
  ENTER_GRAPH(step_in(exec, node) && node->child && px_is_graph(graph));
  cudaError_t error = flatten(node->child, &old);
  if (error) LEAVE(error);
  error = flatten(graph, &new);
  if (!error) {
    error = replace_child(exec, &old, &new);
    release(&new);
  }
  release(&old);
  LEAVE(error);
}

/* ---- nodes that do nothing for a while ---- */

/* The step of a node that may do so, or NULL. */
static step *switched(cudaGraphExec_t exec, cudaGraphNode_t node) {
  step *at = step_in(exec, node);
  if (!at) return NULL;
  bool can =
      at->type == cudaGraphNodeTypeKernel || at->type == cudaGraphNodeTypeMemcpy || at->type == cudaGraphNodeTypeMemset;
  return can ? at : NULL;
}

PX_API cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned enabled) {
  ENTER_GRAPH(true);
  step *at = switched(exec, node);
  if (!at) LEAVE(cudaErrorInvalidValue);
  at->disabled = !enabled;
  LEAVE(cudaSuccess);
}

PX_API cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned *enabled) {
  ENTER_GRAPH(enabled);
  const step *at = switched(exec, node);
  if (!at) LEAVE(cudaErrorInvalidValue);
  *enabled = !at->disabled;
  LEAVE(cudaSuccess);
}
