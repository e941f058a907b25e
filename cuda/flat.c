/* flat.c: graphs as steps in an order, and what a launch of them does. */
#include "px_flat.h"
#include <stdlib.h>
#include <string.h>
#include "px_graph.h"
#include "bisect.h"

/* ---- plans ---- */

static void release_starts(px_start *start, size_t count) {
  for (size_t i = 0; i < count; i++) px_block_release(start[i].value);
  free(start);
}

static px_branch *branch_keep(px_branch *branch) {
  if (branch) atomic_fetch_add(&branch->owners, 1);
  return branch;
}

static void branch_release(px_branch *branch) {
  if (!branch || atomic_fetch_sub(&branch->owners, 1) != 1) return;
  for (unsigned i = 0; i < branch->count; i++) px_plan_release(branch->plan[i]);
  px_block_release(branch->value);
  free(branch);
}

px_plan *px_plan_keep(px_plan *plan) {
  atomic_fetch_add(&plan->owners, 1);
  return plan;
}

void px_plan_release(px_plan *plan) {
  if (!plan || atomic_fetch_sub(&plan->owners, 1) != 1) return;
  for (size_t i = 0; i < plan->count; i++) {
    px_work_release(plan->work[i]);
    branch_release(plan->branch[i]);
  }
  release_starts(plan->start, plan->starts);
  free(plan->work);
  free(plan->branch);
  free(plan->edge);
  free(plan);
}

/* Room for what a graph has; NULL: there is no memory. */
static px_plan *empty_plan(const px_flat *all) {
  px_plan *made = calloc(1, sizeof *made);
  if (!made) return NULL;
  *made = (px_plan){.work = calloc(all->count + 1, sizeof *made->work),
                    .branch = calloc(all->count + 1, sizeof *made->branch),
                    .edge = calloc(all->edges + 1, sizeof *made->edge),
                    .start = calloc(all->starts + 1, sizeof *made->start)};
  atomic_init(&made->owners, 1);
  if (made->work && made->branch && made->edge && made->start) return made;
  px_plan_release(made);
  return NULL;
}

px_plan *px_plan_new(const px_flat *all) {
  px_plan *made = empty_plan(all);
  if (!made) return NULL;
  for (; made->count < all->count; made->count++) {
    const px_step *at = &all->step[made->count];
    if (at->work && !at->disabled) made->work[made->count] = px_work_keep(at->work);
    made->branch[made->count] = branch_keep(at->branch);
  }
  for (; made->starts < all->starts; made->starts++) {
    made->start[made->starts] = all->start[made->starts];
    px_block_keep(made->start[made->starts].value);
  }
  if (all->edges) memcpy(made->edge, all->edge, all->edges * sizeof *all->edge);
  made->edges = all->edges;
  return made;
}

/* The plan of a graph that a node may choose. Memory is taken by launches of the whole graph only. */
static cudaError_t plan_of(const struct px_graph *graph, px_plan **out) {
  px_flat all;
  for (const struct px_node *node = graph->first; node; node = node->next)
    if (node->type == cudaGraphNodeTypeMemAlloc || node->type == cudaGraphNodeTypeMemFree) return cudaErrorNotSupported;
  cudaError_t error = px_flatten(graph, &all);
  if (error) return error;
  *out = px_plan_new(&all);
  px_flat_release(&all);
  return *out ? cudaSuccess : cudaErrorMemoryAllocation;
}

static cudaError_t new_branch(const px_choice *choice, px_branch **out) {
  px_branch *made = calloc(1, sizeof *made + choice->count * sizeof *made->plan);
  if (!made) return cudaErrorMemoryAllocation;
  *made = (px_branch){.value = px_block_keep(choice->value), .kind = choice->kind, .count = choice->count};
  atomic_init(&made->owners, 1);
  cudaError_t error = cudaSuccess;
  for (unsigned i = 0; !error && i < made->count; i++) error = plan_of(choice->graph[i], &made->plan[i]);
  *out = error ? NULL : made;
  if (error) branch_release(made);
  return error;
}

/* ---- steps ---- */

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

static bool add_step(px_flat *all, struct px_node *node, bool end) {
  if (!make_room(&all->step, all->count, &all->room, sizeof *all->step)) return false;
  px_work *work = end ? NULL : node->work;
  px_branch *branch = NULL;
  if (node->choice) all->error = new_branch(node->choice, &branch);
  if (all->error) return false;
  if (work) px_work_keep(work);
  all->step[all->count++] =
      (px_step){.id = end ? 0 : node->id, .node = node, .type = node->type, .work = work, .branch = branch};
  return true;
}

/* The values that a launch begins with. */
static bool add_starts(px_flat *all, const struct px_graph *graph) {
  for (const px_condition *one = graph->conditions; one; one = one->next) {
    if (!one->starts) continue;
    if (!make_room(&all->start, all->starts, &all->start_room, sizeof *all->start)) return false;
    all->start[all->starts++] = (px_start){px_block_keep(one->block), one->start};
  }
  return true;
}

static bool add_edge(px_flat *all, size_t before, size_t behind) {
  if (!make_room(&all->edge, all->edges, &all->edge_room, sizeof *all->edge)) return false;
  all->edge[all->edges][0] = before;
  all->edge[all->edges++][1] = behind;
  return true;
}

static bool add_steps(px_flat *all, const struct px_graph *graph) {
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
static bool add_edges(px_flat *all, const struct px_graph *graph, const struct px_node *within) {
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

static void sort_edges(px_flat *all, int (*order)(const void *, const void *)) {
  if (all->edges) qsort(all->edge, all->edges, sizeof *all->edge, order);
}

/* Places of steps so that each is behind those that it waits for; edges are sorted by what comes before. The number of steps that have
 * got one: fewer than there are if they go in circles. `waits` and `queue` have room for all. */
static size_t find_places(const px_flat *all, size_t *place, size_t *waits, size_t *queue) {
  size_t queued = 0;
  for (size_t i = 0; i < all->edges; i++) waits[all->edge[i][1]]++;
  for (size_t i = 0; i < all->count; i++)
    if (!waits[i]) queue[queued++] = i;
  for (size_t at = 0; at < queued; at++) {
    place[queue[at]] = at;
    size_t low = PE_FIRST_NOT(middle, all->edges, all->edge[middle][0] < queue[at]);
    for (; low < all->edges && all->edge[low][0] == queue[at]; low++)
      if (!--waits[all->edge[low][1]]) queue[queued++] = all->edge[low][1];
  }
  return queued;
}

/* Put steps in the order of their places. */
static void move_steps(px_flat *all, const size_t *place, px_step *spare) {
  for (size_t i = 0; i < all->count; i++) spare[place[i]] = all->step[i];
  if (all->count) memcpy(all->step, spare, all->count * sizeof *spare);
  for (size_t i = 0; i < all->edges; i++)
    for (int end = 0; end < 2; end++) all->edge[i][end] = place[all->edge[i][end]];
}

static cudaError_t put_in_order(px_flat *all) {
  size_t *numbers = calloc(3 * all->count + 1, sizeof *numbers);
  px_step *spare = calloc(all->count + 1, sizeof *spare);
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

static bool make_index(px_flat *all) {
  all->index = calloc(all->count + 1, sizeof *all->index);
  if (!all->index) return false;
  for (size_t i = 0; i < all->count; i++) {
    all->index[i][0] = all->step[i].id;
    all->index[i][1] = i;
  }
  if (all->count) qsort(all->index, all->count, sizeof *all->index, by_first);
  return true;
}

void px_flat_release(px_flat *all) {
  for (size_t i = 0; i < all->count; i++) {
    px_work_release(all->step[i].work);
    branch_release(all->step[i].branch);
  }
  release_starts(all->start, all->starts);
  free(all->step);
  free(all->edge);
  free(all->index);
}

cudaError_t px_flatten(const struct px_graph *graph, px_flat *all) {
  *all = (px_flat){0};
  bool fits = add_starts(all, graph) && add_steps(all, graph) && add_edges(all, graph, NULL);
  cudaError_t error = fits ? put_in_order(all) : all->error ? all->error : cudaErrorMemoryAllocation;
  if (!error && !make_index(all)) error = cudaErrorMemoryAllocation;
  if (error) px_flat_release(all);
  return error;
}
