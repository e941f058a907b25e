/* graph.c: graphs, made by capturing streams: launches, copies, sets, functions of the program, and their order. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "px_graph.h"

enum { GRAPH = 0x47726170, EXEC = 0x45786563 };

/* Nodes and, as pairs of their numbers, which comes before which. Earlier nodes have lower numbers. */
typedef struct nodes {
  px_work **work;
  size_t count, room;
  int (*edge)[2];
  size_t edges, edge_room;
} nodes;

struct px_graph {
  uint32_t mark; /* GRAPH */
  unsigned long long id;
  struct px_graph *next;     /* that is being made */
  struct px_stream *origin;  /* NULL: it is made */
  struct px_stream **joined; /* streams that are captured in it */
  size_t streams, stream_room;
  bool broken; /* something could not be captured */
  nodes all;
};

struct px_graph_exec {
  uint32_t mark; /* EXEC */
  nodes all;
  px_item *last; /* a graph does not run beside itself */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct px_graph *captures; /* that go on */

static bool make_room(void **array, size_t count, size_t *room, size_t size) {
  if (count < *room) return true;
  size_t more = *room ? 2 * *room : 16;
  void *grown = realloc(*array, more * size);
  if (!grown) return false;
  *array = grown;
  *room = more;
  return true;
}

static bool add_edge(nodes *all, int before, int behind) {
  if (before < 0) return true;
  if (!make_room((void **)&all->edge, all->edges, &all->edge_room, sizeof *all->edge)) return false;
  all->edge[all->edges][0] = before;
  all->edge[all->edges++][1] = behind;
  return true;
}

static bool add_node(nodes *all, px_work *work) {
  if (!make_room((void **)&all->work, all->count, &all->room, sizeof *all->work)) return false;
  all->work[all->count++] = work;
  return true;
}

static void release(nodes *all) {
  for (size_t i = 0; i < all->count; i++) px_work_release(all->work[i]);
  free(all->work);
  free(all->edge);
}

/* ---- capture ---- */

static bool join(struct px_graph *graph, struct px_stream *stream) {
  if (!make_room((void **)&graph->joined, graph->streams, &graph->stream_room, sizeof *graph->joined)) return false;
  graph->joined[graph->streams++] = stream;
  stream->capture = graph;
  stream->tail = -1;
  return true;
}

/* With the lock held. */
static cudaError_t add(struct px_stream *stream, px_work *work, int also) {
  struct px_graph *graph = stream->capture;
  int number = (int)graph->all.count;
  if (!work || !add_node(&graph->all, work)) {
    px_work_release(work);
    graph->broken = true;
    return cudaErrorMemoryAllocation;
  }
  bool fits = add_edge(&graph->all, stream->tail, number) && add_edge(&graph->all, also, number);
  graph->broken |= !fits;
  stream->tail = number;
  return fits ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t px_capture(struct px_stream *stream, px_work *work) {
  pthread_mutex_lock(&lock);
  cudaError_t error = add(stream, work, -1);
  pthread_mutex_unlock(&lock);
  return error;
}

unsigned long long px_capture_id(const struct px_stream *stream) { return stream->capture ? stream->capture->id : 0; }

cudaError_t px_capture_join(struct px_stream *stream, unsigned long long id, int node) {
  pthread_mutex_lock(&lock);
  cudaError_t error = cudaSuccess;
  struct px_graph *graph = captures;
  while (graph && graph->id != id) graph = graph->next;
  if (!graph)
    error = cudaErrorCapturedEvent;
  else if (stream->capture && stream->capture != graph)
    error = cudaErrorStreamCaptureMerge;
  else if (!stream->capture && !join(graph, stream))
    error = cudaErrorMemoryAllocation;
  else
    error = add(stream, px_work_new(PX_NOTHING), node);
  pthread_mutex_unlock(&lock);
  return error;
}

PX_API cudaError_t cudaStreamBeginCapture(cudaStream_t stream, int mode) {
  static unsigned long long last;
  PX_ENTER();
  PX_REQUIRE(px_is_stream(stream), cudaErrorInvalidResourceHandle);
  PX_REQUIRE(mode >= 0 && mode <= 2, cudaErrorInvalidValue);
  PX_REQUIRE((uintptr_t)stream > 1, cudaErrorStreamCaptureUnsupported);
  struct px_stream *own = px_stream_of(stream);
  PX_REQUIRE(!own->capture, cudaErrorIllegalState);
  struct px_graph *graph = calloc(1, sizeof *graph);
  PX_REQUIRE(graph, cudaErrorMemoryAllocation);
  graph->mark = GRAPH;
  graph->origin = own;
  pthread_mutex_lock(&lock);
  bool joined = join(graph, own);
  if (joined) {
    graph->id = ++last;
    graph->next = captures;
    captures = graph;
  }
  pthread_mutex_unlock(&lock);
  if (!joined) free(graph);
  return px_report(joined ? cudaSuccess : cudaErrorMemoryAllocation);
}

static void destroy(struct px_graph *graph) {
  release(&graph->all);
  free(graph->joined);
  graph->mark = 0;
  free(graph);
}

/* Whether all that other streams have put into the graph comes before the end of the stream that began it. */
static bool is_joined(const struct px_graph *graph) {
  const nodes *all = &graph->all;
  bool *reached = calloc(all->count + 1, 1), joined = reached != NULL;
  if (reached && graph->origin->tail >= 0) reached[graph->origin->tail] = true;
  for (size_t i = all->edges; reached && i-- > 0;) /* edges are in the order of what they lead to */
    if (reached[all->edge[i][1]]) reached[all->edge[i][0]] = true;
  for (size_t i = 0; joined && i < all->count; i++) joined = reached[i];
  free(reached);
  return joined;
}

PX_API cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out) {
  PX_ENTER();
  PX_REQUIRE(px_is_stream(stream), cudaErrorInvalidResourceHandle);
  struct px_stream *own = px_stream_of(stream);
  struct px_graph *graph = own->capture;
  PX_REQUIRE(out && graph, cudaErrorInvalidValue);
  PX_REQUIRE(graph->origin == own, cudaErrorStreamCaptureUnmatched);
  pthread_mutex_lock(&lock);
  cudaError_t error = graph->broken      ? cudaErrorStreamCaptureInvalidated
                      : is_joined(graph) ? cudaSuccess
                                         : cudaErrorStreamCaptureUnjoined;
  for (size_t i = 0; i < graph->streams; i++) graph->joined[i]->capture = NULL;
  graph->streams = 0;
  graph->origin = NULL;
  struct px_graph **at = &captures;
  while (*at != graph) at = &(*at)->next;
  *at = graph->next;
  pthread_mutex_unlock(&lock);
  if (error) destroy(graph);
  *out = error ? NULL : graph;
  return px_report(error);
}

PX_API cudaError_t cudaStreamIsCapturing(cudaStream_t stream, int *status) {
  PX_ENTER();
  PX_REQUIRE(px_is_stream(stream), cudaErrorInvalidResourceHandle);
  PX_REQUIRE(status, cudaErrorInvalidValue);
  const struct px_graph *graph = px_stream_of(stream)->capture;
  *status = !graph ? 0 : graph->broken ? 2 : 1;
  return px_report(cudaSuccess);
}

/* ---- graphs ---- */

static bool is_graph(cudaGraph_t graph) { return graph && graph->mark == GRAPH && !graph->origin; }

static bool is_exec(cudaGraphExec_t exec) { return exec && exec->mark == EXEC; }

PX_API cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  PX_ENTER();
  PX_REQUIRE(is_graph(graph), cudaErrorInvalidValue);
  destroy(graph);
  return px_report(cudaSuccess);
}

/* Their number only: nodes have no handles. */
PX_API cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *out, size_t *count) {
  PX_ENTER();
  PX_REQUIRE(is_graph(graph) && count, cudaErrorInvalidValue);
  PX_REQUIRE(!out, cudaErrorNotSupported);
  *count = graph->all.count;
  return px_report(cudaSuccess);
}

static bool copy(const nodes *from, nodes *to) {
  for (size_t i = 0; i < from->count; i++)
    if (!add_node(to, px_work_keep(from->work[i]))) {
      px_work_release(from->work[i]);
      return false;
    }
  for (size_t i = 0; i < from->edges; i++)
    if (!add_edge(to, from->edge[i][0], from->edge[i][1])) return false;
  return true;
}

PX_API cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags) {
  enum { FREE_ON_LAUNCH = 1, USE_PRIORITY = 8 };
  PX_ENTER();
  PX_REQUIRE(out && is_graph(graph), cudaErrorInvalidValue);
  PX_REQUIRE(!(flags & ~(unsigned long long)(FREE_ON_LAUNCH | USE_PRIORITY)), cudaErrorNotSupported);
  struct px_graph_exec *exec = calloc(1, sizeof *exec);
  PX_REQUIRE(exec, cudaErrorMemoryAllocation);
  exec->mark = EXEC;
  bool made = copy(&graph->all, &exec->all);
  if (!made) release(&exec->all);
  if (!made) free(exec);
  *out = made ? exec : NULL;
  return px_report(made ? cudaSuccess : cudaErrorMemoryAllocation);
}

PX_API cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags) {
  return cudaGraphInstantiateWithFlags(out, graph, flags);
}

PX_API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  PX_ENTER();
  PX_REQUIRE(is_exec(exec), cudaErrorInvalidValue);
  exec->mark = 0;
  release(&exec->all);
  if (exec->last) px_item_release(exec->last);
  free(exec);
  return px_report(cudaSuccess);
}

PX_API cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  px_item *end;
  PX_ENTER();
  PX_REQUIRE(is_exec(exec), cudaErrorInvalidValue);
  PX_REQUIRE(px_is_stream(stream), cudaErrorInvalidResourceHandle);
  PX_REQUIRE(!px_stream_of(stream)->capture, cudaErrorNotSupported);
  const nodes *all = &exec->all;
  cudaError_t error =
      px_submit_graph(stream, all->work, all->count, (const int (*)[2])all->edge, all->edges, exec->last, &end);
  if (error) return px_report(error);
  if (exec->last) px_item_release(exec->last);
  exec->last = end;
  return px_report(cudaSuccess);
}

/* There is nothing to move before the first launch. */
PX_API cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  PX_ENTER();
  PX_REQUIRE(is_exec(exec), cudaErrorInvalidValue);
  PX_REQUIRE(px_is_stream(stream), cudaErrorInvalidResourceHandle);
  return px_report(cudaSuccess);
}
