/* condition.c: values that kernels set, and nodes whose graphs run as they say. */
#include <stdlib.h>
#include "px_graph.h"
#include "px_runtime.h"

/* ---- values ---- */

void px_conditions_free(px_condition *conditions) {
  for (px_condition *next; conditions; conditions = next) {
    next = conditions->next;
    px_block_release(conditions->block);
    free(conditions);
  }
}

static cudaError_t new_condition(struct px_graph *graph, unsigned value, bool starts, cudaGraphConditionalHandle *handle) {
  px_condition *made = malloc(sizeof *made);
  px_block *block = made ? px_block_new(sizeof(uint32_t)) : NULL;
  if (!block) {
    free(made);
    return cudaErrorMemoryAllocation;
  }
  *made = (px_condition){graph->conditions, block, value, starts};
  graph->conditions = made;
  *handle = px_block_address(block);
  return cudaSuccess;
}

PX_API cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *handle, cudaGraph_t graph, unsigned value,
                                                    unsigned flags) {
  enum { ASSIGN_DEFAULT = 1 };
  ENTER_GRAPH(handle && px_is_graph(graph) && !(flags & ~(unsigned)ASSIGN_DEFAULT));
  LEAVE(new_condition(graph, value, flags & ASSIGN_DEFAULT, handle));
}

/* The value of a handle that belongs to a graph, or to one that it is within. */
static px_block *value_of(const struct px_graph *graph, cudaGraphConditionalHandle handle) {
  for (; graph; graph = graph->within ? graph->within->graph : NULL)
    for (const px_condition *one = graph->conditions; one; one = one->next)
      if (handle && px_block_address(one->block) == handle) return one->block;
  return NULL;
}

/* ---- nodes ---- */

void px_choice_free(px_choice *choice) {
  if (!choice) return;
  for (unsigned i = 0; i < choice->count; i++)
    if (choice->graph[i]) px_graph_free(choice->graph[i]);
  px_block_release(choice->value);
  free(choice);
}

/* Empty graphs, as many as a kind has. */
static px_choice *new_choice(const cudaConditionalNodeParams *what, px_block *value) {
  px_choice *made = calloc(1, sizeof *made + what->size * sizeof *made->graph);
  if (!made) return NULL;
  *made = (px_choice){px_block_keep(value), what->type, what->size};
  for (unsigned i = 0; i < made->count; i++) {
    made->graph[i] = px_graph_new();
    if (made->graph[i]) continue;
    px_choice_free(made);
    return NULL;
  }
  return made;
}

static bool is_size(int kind, unsigned size) {
  enum { MOST = 1 << 16 };
  switch (kind) {
    case cudaGraphCondTypeIf: return size == 1 || size == 2;
    case cudaGraphCondTypeWhile: return size == 1;
    case cudaGraphCondTypeSwitch: return size >= 1 && size <= MOST;
    default: return false;
  }
}

static cudaError_t add(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,
                       cudaConditionalNodeParams *what) {
  if (!out || !px_is_graph(graph) || !px_nodes_are_of(before, count, graph)) return cudaErrorInvalidValue;
  px_block *value = is_size(what->type, what->size) ? value_of(graph, what->handle) : NULL;
  if (!value) return cudaErrorInvalidValue;
  px_choice *choice = new_choice(what, value);
  struct px_node *made = choice ? px_node_new(graph, cudaGraphNodeTypeConditional, NULL, NULL) : NULL;
  if (!made) {
    px_choice_free(choice);
    return cudaErrorMemoryAllocation;
  }
  made->choice = choice;
  for (unsigned i = 0; i < choice->count; i++) {
    choice->graph[i]->child = true;
    choice->graph[i]->within = made;
  }
  bool fits = true;
  for (size_t i = 0; fits && i < count; i++) fits = px_node_follow(made, before[i]);
  what->phGraph_out = choice->graph;
  *out = made;
  return fits ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t px_add_conditional(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,
                               cudaConditionalNodeParams *what) {
  px_graph_lock();
  cudaError_t error = add(out, graph, before, count, what);
  px_graph_unlock();
  return error;
}
