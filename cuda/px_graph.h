/* px_graph.h: graphs: work, and what of it comes before what.
 *
 * One lock guards all graphs and captures. Nothing is done while it is held: a launch takes a plan with it (px_stream.h). Handles of graphs
 * and nodes are looked at while it is held, so that their objects can be freed at once.
 */
#ifndef PTXEMU_CUDA_GRAPH_H
#define PTXEMU_CUDA_GRAPH_H
#include "px_stream.h"

/* ---- graph.c: nodes and their order ---- */

struct px_node {
  int type; /* cudaGraphNodeType* */
  unsigned long long id;
  unsigned long long origin; /* the id of the node that this one was cloned of; 0: none */
  struct px_graph *graph;
  struct px_node *next, *previous; /* in the order in which they were made */
  px_work *work;                   /* NULL: none, or ... */
  struct px_graph *child;          /* ... what is done is a graph, which is owned, ... */
  struct px_choice *choice;        /* ... or one of several, which are owned */
  void **places;                   /* of the arguments in the work, once somebody has asked */
  cudaLaunchAttributeValue *hints; /* attributes that change nothing, by their numbers; NULL: none was set */
  px_nodes before, behind;
  size_t number, end; /* of use to a function that holds the lock */
};

struct px_graph {
  struct px_node *first, *last;
  size_t count;
  bool child;             /* a node owns it */
  struct px_node *within; /* of which it is a choice, or NULL */
  struct px_condition *conditions;
  bool captured; /* a capture goes on */
};

void px_graph_lock(void);
void px_graph_unlock(void);

/* Begin a function on graphs: with the lock held, which LEAVE gives back. */
#define ENTER_GRAPH(condition) \
  PX_ENTER();                  \
  px_graph_lock();             \
  if (!(condition)) LEAVE(cudaErrorInvalidValue)
#define LEAVE(error)                 \
  do {                               \
    cudaError_t px_result = (error); \
    px_graph_unlock();               \
    return px_report(px_result);     \
  } while (0)

bool px_is_graph(cudaGraph_t graph);
bool px_is_node(cudaGraphNode_t node);

bool px_nodes_add(px_nodes *nodes, struct px_node *node);
bool px_nodes_have(const px_nodes *nodes, const struct px_node *node);

/* With the lock held: a new graph; a copy of one; the end of one. NULL: there is no memory. */
struct px_graph *px_graph_new(void);
struct px_graph *px_graph_copy(const struct px_graph *graph);
void px_graph_free(struct px_graph *graph);

/* With the lock held: a new node, which owns work and child from then on, without edges; edges. */
struct px_node *px_node_new(struct px_graph *graph, int type, px_work *work, struct px_graph *child);
bool px_node_follow(struct px_node *node, struct px_node *before);

/* With the lock held: other work for a node, which owns it then. */
void px_node_give(struct px_node *node, px_work *work);

/* What a node is made of. */
typedef struct px_content {
  int type;
  px_work *work;
  struct px_graph *child; /* copied, not owned */
} px_content;

/* Whether nodes are of a graph. With the lock held. */
bool px_nodes_are_of(const cudaGraphNode_t *nodes, size_t count, const struct px_graph *graph);

/* Put work into a new node, into one that is there, or into what was instantiated of it. The work is owned by then, or released. */
cudaError_t px_graph_add(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,
                         px_content content);
cudaError_t px_node_set(cudaGraphNode_t node, px_content content);
cudaError_t px_exec_set(cudaGraphExec_t exec, cudaGraphNode_t node, px_content content);

/* The work of a node of a type, with an owner; an error: it is no such node. */
cudaError_t px_node_work(cudaGraphNode_t node, int type, px_work **out);

/* Whether nodes of a type can be given other parameters: those that own memory cannot. */
static inline bool px_type_can_change(int type) { return type < cudaGraphNodeTypeMemAlloc; }

/* Whether a graph has nodes that there can be but once, as those that allocate: it cannot be copied. With the lock held. */
bool px_graph_is_single(const struct px_graph *graph);

/* Edges carry nothing here. */
bool px_plain_edges(const cudaGraphEdgeData *data, size_t count);

/* ---- node.c: the parameters of nodes ---- */

/* What a program says of a node, as the runtime API says it: what is to be done. */
cudaError_t px_copy_content(const cudaMemcpy3DParms *what, px_content *out);
cudaError_t px_set_content(const cudaMemsetParams *what, px_content *out);
cudaError_t px_host_content(const cudaHostNodeParams *what, px_content *out);
cudaError_t px_event_content(cudaEvent_t event, int type, px_content *out);

/* Where the arguments of a kernel node lie; the node owns the array. */
cudaError_t px_node_places(cudaGraphNode_t node, void ***out);

/* ---- attribute.c: what kernel nodes have besides their parameters ---- */

/* With the lock held: give a new launch the attributes of one that it takes the place of. */
cudaError_t px_keep_attributes(const px_work *old, px_work *new);

/* With the lock held: the hints of a node, also for another; false: there is no memory. */
bool px_copy_hints(struct px_node *to, const struct px_node *from);

/* ---- memory_node.c ---- */

/* A node that allocates memory, or frees what one has allocated. */
cudaError_t px_alloc_content(cudaMemAllocNodeParams *what, px_content *out);
cudaError_t px_free_content(const void *address, px_content *out);

/* ---- condition.c: nodes whose graphs run as a value says that kernels set ---- */

/* A value, which belongs to the graph that it was made for, and to what is instantiated of that. Its handle is where it lies. */
typedef struct px_condition {
  struct px_condition *next; /* of the same graph */
  px_block *block;
  uint32_t start; /* the value at the begin of a launch, if ... */
  bool starts;    /* ... this says so */
} px_condition;

/* The graphs of a node. */
typedef struct px_choice {
  px_block *value; /* owned */
  int kind;        /* cudaGraphCondType* */
  unsigned count;
  struct px_graph *graph[];
} px_choice;

cudaError_t px_add_conditional(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,
                               cudaConditionalNodeParams *what);

/* With the lock held. */
void px_choice_free(px_choice *choice); /* NULL: nothing */
void px_conditions_free(px_condition *conditions);

/* ---- capture.c: streams whose work goes to a graph ---- */

/* Put work that the call then owns into the graph that a stream is captured in, behind what it has there. false: it is not captured,
 * and nothing has happened. */
bool px_capture(struct px_stream *stream, px_work *work, cudaError_t *error);

/* The same of the record of an event, and of a stream that waits for one that was recorded in a capture. */
bool px_capture_record(struct px_stream *stream, cudaEvent_t event, cudaError_t *error);
bool px_capture_join(struct px_stream *stream, cudaEvent_t event, cudaError_t *error);

bool px_is_captured(cudaStream_t stream);

/* A stream that is destroyed: no capture knows it any more. false: one began there. With the lock of graphs held. */
bool px_capture_leave(struct px_stream *stream);

/* Functions that cannot be captured make the capture of a stream or an event invalid, and return an error then. */
cudaError_t px_capture_refuse(cudaStream_t stream);
cudaError_t px_capture_refuse_event(cudaEvent_t event);

/* The same of work in the legacy default stream, which captured streams would have to wait for, and of functions that a capture of
 * this thread, or a global one, forbids. */
cudaError_t px_capture_legacy(void);
cudaError_t px_capture_unsafe(void);

#endif
