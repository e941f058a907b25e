/* graph.c: nodes and edges of graphs. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "px_graph.h"
#include "px_runtime.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void px_graph_lock(void) { pthread_mutex_lock(&lock); }

void px_graph_unlock(void) { pthread_mutex_unlock(&lock); }

bool px_is_graph(cudaGraph_t graph) { return px_is_live(graph, PX_GRAPH); }

bool px_is_node(cudaGraphNode_t node) { return px_is_live(node, PX_NODE); }

/* ---- sets of nodes ---- */

bool px_nodes_add(px_nodes *nodes, struct px_node *node) {
  if (nodes->count == nodes->room) {
    size_t room = nodes->room ? 2 * nodes->room : 2;
    struct px_node **grown = realloc(nodes->node, room * sizeof(struct px_node *));
    if (!grown) return false;
    nodes->node = grown;
    nodes->room = room;
  }
  nodes->node[nodes->count++] = node;
  return true;
}

static size_t place_of(const px_nodes *nodes, const struct px_node *node) {
  size_t at = 0;
  while (at < nodes->count && nodes->node[at] != node) at++;
  return at;
}

bool px_nodes_have(const px_nodes *nodes, const struct px_node *node) { return place_of(nodes, node) < nodes->count; }

static void take_away(px_nodes *nodes, const struct px_node *node) {
  size_t at = place_of(nodes, node);
  if (at == nodes->count) return;
  memmove(nodes->node + at, nodes->node + at + 1, (--nodes->count - at) * sizeof *nodes->node);
}

/* ---- edges, with the lock held ---- */

/* Of two nodes, the one with fewer edges is asked. */
static bool follows(const struct px_node *node, const struct px_node *before) {
  return node->before.count < before->behind.count ? px_nodes_have(&node->before, before)
                                                   : px_nodes_have(&before->behind, node);
}

bool px_node_follow(struct px_node *node, struct px_node *before) {
  if (follows(node, before)) return true;
  if (!px_nodes_add(&node->before, before)) return false;
  if (px_nodes_add(&before->behind, node)) return true;
  node->before.count--;
  return false;
}

static void part(struct px_node *node, struct px_node *before) {
  take_away(&node->before, before);
  take_away(&before->behind, node);
}

/* ---- nodes and graphs, with the lock held ---- */

struct px_graph *px_graph_new(void) {
  struct px_graph *graph = calloc(1, sizeof *graph);
  if (!graph || px_live_add(graph, PX_GRAPH)) return graph;
  free(graph);
  return NULL;
}

struct px_node *px_node_new(struct px_graph *graph, int type, px_work *work, struct px_graph *child) {
  static unsigned long long last;
  struct px_node *node = calloc(1, sizeof *node);
  if (!node || !px_live_add(node, PX_NODE)) {
    free(node);
    return NULL;
  }
  *node = (struct px_node){.type = type, .id = ++last, .graph = graph, .work = work, .child = child};
  if (child) child->child = true;
  node->previous = graph->last;
  *(graph->last ? &graph->last->next : &graph->first) = node;
  graph->last = node;
  graph->count++;
  return node;
}

static void empty(struct px_node *node) {
  px_work_release(node->work);
  if (node->child) px_graph_free(node->child);
  px_choice_free(node->choice);
  free(node->places);
  node->work = NULL;
  node->child = NULL;
  node->choice = NULL;
  node->places = NULL;
}

void px_node_give(struct px_node *node, px_work *work) {
  empty(node);
  node->work = work;
}

static void free_node(struct px_node *node) {
  px_live_remove(node, PX_NODE);
  empty(node);
  free(node->hints);
  free(node->before.node);
  free(node->behind.node);
  free(node);
}

static void remove_node(struct px_node *node) {
  struct px_graph *graph = node->graph;
  for (size_t i = 0; i < node->before.count; i++) take_away(&node->before.node[i]->behind, node);
  for (size_t i = 0; i < node->behind.count; i++) take_away(&node->behind.node[i]->before, node);
  *(node->previous ? &node->previous->next : &graph->first) = node->next;
  *(node->next ? &node->next->previous : &graph->last) = node->previous;
  graph->count--;
  free_node(node);
}

void px_graph_free(struct px_graph *graph) {
  px_live_remove(graph, PX_GRAPH);
  for (struct px_node *node = graph->first, *next; node; node = next) {
    next = node->next;
    free_node(node);
  }
  px_conditions_free(graph->conditions);
  free(graph);
}

/* A copy of a node, without its edges; `copies` has those that were made before. */
static bool copy_node(struct px_node *node, struct px_graph *to, px_nodes *copies) {
  struct px_graph *child = node->child ? px_graph_copy(node->child) : NULL;
  bool fits = child || !node->child;
  struct px_node *made = fits ? px_node_new(to, node->type, node->work, child) : NULL;
  if (!made) {
    if (child) px_graph_free(child);
    return false;
  }
  if (node->work) px_work_keep(node->work);
  made->origin = node->id;
  node->number = copies->count;
  return px_copy_hints(made, node) && px_nodes_add(copies, made);
}

static bool copy_all(const struct px_graph *graph, struct px_graph *to, px_nodes *copies) {
  bool fits = true;
  for (struct px_node *node = graph->first; fits && node; node = node->next) fits = copy_node(node, to, copies);
  for (struct px_node *node = graph->first; fits && node; node = node->next)
    for (size_t i = 0; fits && i < node->before.count; i++)
      fits = px_node_follow(copies->node[node->number], copies->node[node->before.node[i]->number]);
  return fits;
}

struct px_graph *px_graph_copy(const struct px_graph *graph) {
  px_nodes copies = {0};
  struct px_graph *made = px_graph_new();
  bool fits = made && copy_all(graph, made, &copies);
  free(copies.node);
  if (!fits && made) px_graph_free(made);
  return fits ? made : NULL;
}

/* ---- making them ---- */

PX_API cudaError_t cudaGraphCreate(cudaGraph_t *out, unsigned flags) {
  ENTER_GRAPH(out && !flags);
  *out = px_graph_new();
  LEAVE(*out ? cudaSuccess : cudaErrorMemoryAllocation);
}

PX_API cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  ENTER_GRAPH(px_is_graph(graph) && !graph->child && !graph->captured);
  px_graph_free(graph);
  LEAVE(cudaSuccess);
}

bool px_graph_is_single(const struct px_graph *graph) {
  bool single = false;
  for (const struct px_node *node = graph->first; !single && node; node = node->next)
    single = !px_type_can_change(node->type);
  return single;
}

PX_API cudaError_t cudaGraphClone(cudaGraph_t *out, cudaGraph_t graph) {
  ENTER_GRAPH(out && px_is_graph(graph));
  if (px_graph_is_single(graph)) LEAVE(cudaErrorNotSupported);
  *out = px_graph_copy(graph);
  LEAVE(*out ? cudaSuccess : cudaErrorMemoryAllocation);
}

PX_API cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t *out, cudaGraphNode_t node, cudaGraph_t clone) {
  ENTER_GRAPH(out && px_is_node(node) && px_is_graph(clone));
  struct px_node *at = clone->first;
  while (at && at->origin != node->id) at = at->next;
  *out = at;
  LEAVE(at ? cudaSuccess : cudaErrorInvalidValue);
}

bool px_nodes_are_of(const cudaGraphNode_t *nodes, size_t count, const struct px_graph *graph) {
  if (count && !nodes) return false;
  for (size_t i = 0; i < count; i++)
    if (!px_is_node(nodes[i]) || nodes[i]->graph != graph) return false;
  return true;
}

/* Whether a graph frees the same already. */
static bool is_freed(const struct px_graph *graph, const px_work *work) {
  const struct px_node *node = graph->first;
  while (node && !(node->type == cudaGraphNodeTypeMemFree && node->work->block == work->block)) node = node->next;
  return node != NULL;
}

static cudaError_t add(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,
                       px_content content) {
  if (!out || !px_is_graph(graph) || !px_nodes_are_of(before, count, graph)) return cudaErrorInvalidValue;
  if (content.child && !px_is_graph(content.child)) return cudaErrorInvalidValue;
  if (content.child && px_graph_is_single(content.child)) return cudaErrorNotSupported;
  if (content.type == cudaGraphNodeTypeMemFree && is_freed(graph, content.work)) return cudaErrorInvalidValue;
  struct px_graph *child = content.child ? px_graph_copy(content.child) : NULL;
  bool fits = child || !content.child;
  struct px_node *made = fits ? px_node_new(graph, content.type, content.work, child) : NULL;
  if (!made && child) px_graph_free(child);
  if (!made) return cudaErrorMemoryAllocation;
  if (content.work) px_work_keep(content.work);
  for (size_t i = 0; fits && i < count; i++) {
    bool twice = follows(made, before[i]);
    fits = !twice && px_node_follow(made, before[i]);
    if (twice) {
      remove_node(made);
      return cudaErrorInvalidValue;
    }
  }
  if (!fits) remove_node(made);
  *out = fits ? made : NULL;
  return fits ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t px_graph_add(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,
                         px_content content) {
  px_graph_lock();
  cudaError_t error = add(out, graph, before, count, content);
  px_graph_unlock();
  px_work_release(content.work);
  return error;
}

cudaError_t px_node_set(cudaGraphNode_t node, px_content content) {
  px_graph_lock();
  bool fits = px_is_node(node) && node->type == content.type && !content.child && px_type_can_change(content.type);
  cudaError_t error = fits ? px_keep_attributes(node->work, content.work) : cudaErrorInvalidValue;
  if (!error) px_node_give(node, content.work);
  px_graph_unlock();
  if (error) px_work_release(content.work);
  return error;
}

cudaError_t px_node_work(cudaGraphNode_t node, int type, px_work **out) {
  px_graph_lock();
  bool fits = px_is_node(node) && node->type == type;
  if (fits) *out = px_work_keep(node->work);
  px_graph_unlock();
  return fits ? cudaSuccess : cudaErrorInvalidValue;
}

PX_API cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
  ENTER_GRAPH(px_is_node(node) && !node->graph->captured);
  if (!px_type_can_change(node->type)) LEAVE(cudaErrorNotSupported);
  remove_node(node);
  LEAVE(cudaSuccess);
}

/* ---- edges ---- */

bool px_plain_edges(const cudaGraphEdgeData *data, size_t count) {
  static const cudaGraphEdgeData plain;
  for (size_t i = 0; data && i < count; i++)
    if (memcmp(&data[i], &plain, sizeof plain) != 0) return false;
  return true;
}

PX_API cudaError_t cudaGraphAddDependencies_v2(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                               const cudaGraphEdgeData *data, size_t count) {
  ENTER_GRAPH(px_is_graph(graph) && px_nodes_are_of(from, count, graph) && px_nodes_are_of(to, count, graph));
  if (!px_plain_edges(data, count)) LEAVE(cudaErrorNotSupported);
  for (size_t i = 0; i < count; i++) {
    if (from[i] == to[i] || follows(to[i], from[i])) LEAVE(cudaErrorInvalidValue);
    if (!px_node_follow(to[i], from[i])) LEAVE(cudaErrorMemoryAllocation);
  }
  LEAVE(cudaSuccess);
}

PX_API cudaError_t cudaGraphRemoveDependencies_v2(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                                  const cudaGraphEdgeData *data, size_t count) {
  ENTER_GRAPH(px_is_graph(graph) && px_nodes_are_of(from, count, graph) && px_nodes_are_of(to, count, graph));
  if (!px_plain_edges(data, count)) LEAVE(cudaErrorNotSupported);
  for (size_t i = 0; i < count; i++)
    if (!follows(to[i], from[i])) LEAVE(cudaErrorInvalidValue);
  for (size_t i = 0; i < count; i++) part(to[i], from[i]);
  LEAVE(cudaSuccess);
}

/* ---- questions ---- */

/* What a caller gets of an array: the rest of it is NULL, and the count what was written; without one, the count alone. */
typedef struct answer {
  cudaGraphNode_t *first, *second; /* or NULL */
  cudaGraphEdgeData *data;
  size_t room, found;
} answer;

static answer begin_answer(cudaGraphNode_t *first, cudaGraphNode_t *second, cudaGraphEdgeData *data, size_t *count) {
  return (answer){first, second, data, first ? *count : 0, 0};
}

static void put(answer *out, struct px_node *first, struct px_node *second) {
  if (out->found < out->room) {
    out->first[out->found] = first;
    if (out->second) out->second[out->found] = second;
    if (out->data) out->data[out->found] = (cudaGraphEdgeData){0};
  }
  out->found++;
}

static cudaError_t end_answer(const answer *out, size_t *count) {
  for (size_t i = out->found; i < out->room; i++) {
    out->first[i] = NULL;
    if (out->second) out->second[i] = NULL;
  }
  *count = out->first && out->found > out->room ? out->room : out->found;
  return cudaSuccess;
}

PX_API cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
  ENTER_GRAPH(px_is_graph(graph) && count);
  answer out = begin_answer(nodes, NULL, NULL, count);
  for (struct px_node *node = graph->first; node; node = node->next) put(&out, node, NULL);
  LEAVE(end_answer(&out, count));
}

PX_API cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
  ENTER_GRAPH(px_is_graph(graph) && count);
  answer out = begin_answer(nodes, NULL, NULL, count);
  for (struct px_node *node = graph->first; node; node = node->next)
    if (!node->before.count) put(&out, node, NULL);
  LEAVE(end_answer(&out, count));
}

PX_API cudaError_t cudaGraphGetEdges_v2(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
                                        cudaGraphEdgeData *data, size_t *count) {
  ENTER_GRAPH(px_is_graph(graph) && count && !from == !to);
  answer out = begin_answer(from, to, data, count);
  for (struct px_node *node = graph->first; node; node = node->next)
    for (size_t i = 0; i < node->behind.count; i++) put(&out, node, node->behind.node[i]);
  LEAVE(end_answer(&out, count));
}

static cudaError_t neighbours(cudaGraphNode_t node, bool behind, cudaGraphNode_t *nodes, cudaGraphEdgeData *data,
                              size_t *count) {
  ENTER_GRAPH(px_is_node(node) && count);
  const px_nodes *found = behind ? &node->behind : &node->before;
  answer out = begin_answer(nodes, NULL, data, count);
  for (size_t i = 0; i < found->count; i++) put(&out, found->node[i], NULL);
  LEAVE(end_answer(&out, count));
}

PX_API cudaError_t cudaGraphNodeGetDependencies_v2(cudaGraphNode_t node, cudaGraphNode_t *nodes, cudaGraphEdgeData *data,
                                                   size_t *count) {
  return neighbours(node, false, nodes, data, count);
}

PX_API cudaError_t cudaGraphNodeGetDependentNodes_v2(cudaGraphNode_t node, cudaGraphNode_t *nodes, cudaGraphEdgeData *data,
                                                     size_t *count) {
  return neighbours(node, true, nodes, data, count);
}

PX_API cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, int *type) {
  ENTER_GRAPH(px_is_node(node) && type);
  *type = node->type;
  LEAVE(cudaSuccess);
}

PX_API cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t *out) {
  ENTER_GRAPH(px_is_node(node) && node->type == cudaGraphNodeTypeGraph && out);
  *out = node->child;
  LEAVE(cudaSuccess);
}
