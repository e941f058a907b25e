/* px_flat.h: graphs as steps in an order.
 *
 * A graph is made flat: the nodes of a graph within it stand between two steps, its begin and its end. Each step knows its node by the
 * number of that, so that its work can be replaced as long as nothing else changes. Graphs that a node chooses are plans of their own.
 */
#ifndef PTXEMU_CUDA_FLAT_H
#define PTXEMU_CUDA_FLAT_H
#include "px_stream.h"

struct px_graph;

typedef struct px_step {
  unsigned long long id; /* of the node; 0: the end of a graph within */
  struct px_node *node;  /* as long as the graph is looked at */
  int type;
  px_work *work;     /* NULL: none */
  px_branch *branch; /* NULL: nothing is chosen */
  bool disabled;
} px_step;

/* Steps, each behind those that it waits for, and pairs of their numbers: before, behind. */
typedef struct px_flat {
  px_step *step;
  size_t count, room;
  size_t (*edge)[2];
  size_t edges, edge_room;
  size_t (*index)[2]; /* numbers of nodes and of their steps, in the order of the former */
  px_start *start;
  size_t starts, start_room;
  cudaError_t error; /* why it could not be made */
} px_flat;

/* With the lock of graphs held. */
cudaError_t px_flatten(const struct px_graph *graph, px_flat *all);
void px_flat_release(px_flat *all);

/* What a launch does: work may be replaced in the steps before it is done. NULL: there is no memory. */
px_plan *px_plan_new(const px_flat *all);

#endif
