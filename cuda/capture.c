/* capture.c: capture of streams: their work goes to a graph instead of being done. */
#include <stdlib.h>
#include "px_graph.h"
#include "px_runtime.h"

enum { GLOBAL, THREAD_LOCAL, RELAXED };
enum { NON_BLOCKING = 1 };

typedef struct px_capture {
  struct px_capture *next;
  unsigned long long id;
  struct px_graph *graph;
  bool given; /* the graph is the program's, which goes on with it */
  struct px_stream *origin;
  struct px_stream **joined; /* with the origin */
  size_t streams, room;
  px_nodes placed;  /* nodes that came in by this capture */
  px_nodes dropped; /* of those, what the program has taken out of a stream's tail */
  const void *thread;
  int mode;
  bool broken; /* something could not be captured */
} px_capture_state;

static px_capture_state *captures; /* that go on; guarded by the lock of graphs */
static _Atomic unsigned going_on;
static _Thread_local int thread_mode = GLOBAL;

static const void *this_thread(void) { return &thread_mode; }

bool px_is_captured(cudaStream_t stream) { return atomic_load(&px_stream_of(stream)->capture) != NULL; }

/* ---- with the lock held ---- */

static px_capture_state *find(unsigned long long id) {
  px_capture_state *capture = captures;
  while (capture && capture->id != id) capture = capture->next;
  return capture;
}

static bool join(px_capture_state *capture, struct px_stream *stream) {
  if (capture->streams == capture->room) {
    size_t room = capture->room ? 2 * capture->room : 4;
    struct px_stream **grown = realloc(capture->joined, room * sizeof(struct px_stream *));
    if (!grown) return false;
    capture->joined = grown;
    capture->room = room;
  }
  capture->joined[capture->streams++] = stream;
  stream->tail.count = 0;
  atomic_store(&stream->capture, capture);
  return true;
}

static cudaError_t break_off(px_capture_state *capture, cudaError_t error) {
  capture->broken = true;
  return error;
}

static int type_of(const px_work *work) {
  switch (work->kind) {
    case PX_LAUNCH: return cudaGraphNodeTypeKernel;
    case PX_COPY: return cudaGraphNodeTypeMemcpy;
    case PX_SET: return cudaGraphNodeTypeMemset;
    case PX_HOST: return cudaGraphNodeTypeHost;
    case PX_RECORD: return cudaGraphNodeTypeEventRecord;
    case PX_WAIT: return cudaGraphNodeTypeWaitEvent;
    case PX_TAKE: return cudaGraphNodeTypeMemAlloc;
    case PX_GIVE: return cudaGraphNodeTypeMemFree;
    case PX_NOTHING: break;
  }
  return cudaGraphNodeTypeEmpty;
}

/* A node behind what its stream has. */
static cudaError_t add(struct px_stream *stream, px_capture_state *capture, px_work *work) {
  px_nodes *tail = &stream->tail;
  if (capture->broken) return cudaErrorStreamCaptureInvalidated;
  struct px_node *node = px_node_new(capture->graph, type_of(work), work, NULL);
  if (!node) return break_off(capture, cudaErrorMemoryAllocation);
  px_work_keep(work);
  bool fits = px_nodes_add(&capture->placed, node);
  for (size_t i = 0; fits && i < tail->count; i++) fits = px_node_follow(node, tail->node[i]);
  tail->count = 0;
  fits = fits && px_nodes_add(tail, node);
  return fits ? cudaSuccess : break_off(capture, cudaErrorMemoryAllocation);
}

static bool unite(px_nodes *all, const px_nodes *more) {
  bool fits = true;
  for (size_t i = 0; fits && i < more->count; i++)
    fits = px_nodes_have(all, more->node[i]) || px_nodes_add(all, more->node[i]);
  return fits;
}

static cudaError_t wait_for(struct px_stream *stream, cudaEvent_t event) {
  px_capture_state *own = atomic_load(&stream->capture), *capture = find(atomic_load(&event->capture));
  if (stream->gone) return cudaErrorInvalidResourceHandle;
  if (!capture && own && !atomic_load(&event->capture)) return break_off(own, cudaErrorStreamCaptureIsolation);
  if (!capture) return own ? break_off(own, cudaErrorCapturedEvent) : cudaErrorCapturedEvent;
  if (capture->broken || (own && own->broken)) return cudaErrorStreamCaptureInvalidated;
  if (own && own != capture) {
    own->broken = true;
    return break_off(capture, cudaErrorStreamCaptureMerge);
  }
  bool fits = (own || join(capture, stream)) && unite(&stream->tail, &event->behind);
  return fits ? cudaSuccess : break_off(capture, cudaErrorMemoryAllocation);
}

bool px_capture_leave(struct px_stream *stream) {
  px_capture_state *capture = atomic_load(&stream->capture);
  if (!capture || capture->origin == stream) return !capture;
  size_t at = 0;
  while (capture->joined[at] != stream) at++;
  capture->joined[at] = capture->joined[--capture->streams];
  stream->tail.count = 0;
  atomic_store(&stream->capture, NULL);
  return true;
}

/* ---- what calls with a stream ask ---- */

bool px_capture(struct px_stream *stream, px_work *work, cudaError_t *error) {
  if (!atomic_load(&going_on)) return false;
  px_graph_lock();
  px_capture_state *capture = atomic_load(&stream->capture);
  if (capture) *error = add(stream, capture, work);
  px_graph_unlock();
  if (capture) px_work_release(work);
  if (capture || stream != px_stream_of(NULL)) return capture != NULL;
  *error = px_capture_legacy();
  if (*error) px_work_release(work);
  return *error != cudaSuccess;
}

bool px_capture_record(struct px_stream *stream, cudaEvent_t event, cudaError_t *error) {
  if (!atomic_load(&going_on) && !atomic_load(&event->capture)) return false;
  px_graph_lock();
  px_capture_state *capture = atomic_load(&stream->capture);
  event->behind.count = 0;
  atomic_store(&event->capture, capture ? capture->id : 0);
  if (capture) {
    bool fits = unite(&event->behind, &stream->tail);
    *error = capture->broken ? cudaErrorStreamCaptureInvalidated
             : fits          ? cudaSuccess
                             : break_off(capture, cudaErrorMemoryAllocation);
  }
  px_graph_unlock();
  return capture != NULL;
}

bool px_capture_join(struct px_stream *stream, cudaEvent_t event, cudaError_t *error) {
  if (!atomic_load(&going_on) && !atomic_load(&event->capture)) return false;
  px_graph_lock();
  bool concerned = atomic_load(&stream->capture) || atomic_load(&event->capture);
  if (concerned) *error = wait_for(stream, event);
  px_graph_unlock();
  return concerned;
}

/* ---- what cannot be captured ---- */

cudaError_t px_capture_refuse(cudaStream_t stream) {
  if (!atomic_load(&going_on)) return cudaSuccess;
  px_graph_lock();
  px_capture_state *capture = atomic_load(&px_stream_of(stream)->capture);
  if (capture) capture->broken = true;
  px_graph_unlock();
  if (capture) return cudaErrorStreamCaptureUnsupported;
  return px_stream_of(stream) == px_stream_of(NULL) ? px_capture_legacy() : cudaSuccess;
}

cudaError_t px_capture_refuse_event(cudaEvent_t event) {
  if (!atomic_load(&event->capture)) return cudaSuccess;
  px_graph_lock();
  px_capture_state *capture = find(atomic_load(&event->capture));
  if (capture) capture->broken = true;
  px_graph_unlock();
  return cudaErrorCapturedEvent;
}

static bool has_blocking(const px_capture_state *capture) {
  size_t i = 0;
  while (i < capture->streams && capture->joined[i]->flags & NON_BLOCKING) i++;
  return i < capture->streams;
}

/* An error if the legacy default stream would have to wait for a captured stream; whose capture is broken off, if `used`. */
static cudaError_t ask_legacy(bool used) {
  bool found = false;
  if (!atomic_load(&going_on)) return cudaSuccess;
  px_graph_lock();
  for (px_capture_state *capture = captures; capture; capture = capture->next) {
    if (!has_blocking(capture)) continue;
    found = true;
    capture->broken |= used;
  }
  px_graph_unlock();
  return found ? cudaErrorStreamCaptureImplicit : cudaSuccess;
}

cudaError_t px_capture_legacy(void) { return ask_legacy(true); }

/* A thread in the relaxed mode is forbidden nothing; in the local mode, by its own captures only. */
static bool forbids(const px_capture_state *capture) {
  bool own = capture->thread == this_thread();
  return own ? capture->mode != RELAXED : capture->mode == GLOBAL && thread_mode == GLOBAL;
}

cudaError_t px_capture_unsafe(void) {
  bool found = false;
  if (!atomic_load(&going_on) || thread_mode == RELAXED) return cudaSuccess;
  px_graph_lock();
  for (px_capture_state *capture = captures; capture; capture = capture->next) {
    if (!forbids(capture)) continue;
    found = true;
    capture->broken = true;
  }
  px_graph_unlock();
  return found ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

PX_API cudaError_t cudaThreadExchangeStreamCaptureMode(int *mode) {
  PX_REQUIRE(mode && *mode >= GLOBAL && *mode <= RELAXED, cudaErrorInvalidValue);
  int before = thread_mode;
  thread_mode = *mode;
  *mode = before;
  return px_report(cudaSuccess);
}

/* ---- begin and end ---- */

/* With the lock held. */
static cudaError_t begin(struct px_stream *stream, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,
                         int mode) {
  static unsigned long long last;
  if (stream->gone) return cudaErrorInvalidResourceHandle;
  if (atomic_load(&stream->capture)) return cudaErrorIllegalState;
  if (graph && (!px_is_graph(graph) || graph->captured)) return cudaErrorInvalidValue;
  for (size_t i = 0; i < count; i++)
    if (!px_is_node(before[i]) || before[i]->graph != graph) return cudaErrorInvalidValue;
  px_capture_state *capture = calloc(1, sizeof *capture);
  if (!capture) return cudaErrorMemoryAllocation;
  *capture = (px_capture_state){.next = captures,
                                .id = ++last,
                                .graph = graph ? graph : px_graph_new(),
                                .given = graph != NULL,
                                .origin = stream,
                                .thread = this_thread(),
                                .mode = mode};
  bool fits = capture->graph && join(capture, stream);
  for (size_t i = 0; fits && i < count; i++) fits = px_nodes_add(&stream->tail, before[i]);
  if (!fits) {
    atomic_store(&stream->capture, NULL);
    if (capture->graph && !graph) px_graph_free(capture->graph);
    free(capture->joined);
    free(capture);
    return cudaErrorMemoryAllocation;
  }
  capture->graph->captured = true;
  captures = capture;
  atomic_fetch_add(&going_on, 1);
  return cudaSuccess;
}

static cudaError_t begin_in(cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count, int mode) {
  PX_ENTER();
  PX_REQUIRE(px_is_stream(stream), cudaErrorInvalidResourceHandle);
  PX_REQUIRE(mode >= GLOBAL && mode <= RELAXED, cudaErrorInvalidValue);
  PX_REQUIRE(px_stream_of(stream) != px_stream_of(NULL), cudaErrorStreamCaptureUnsupported);
  px_graph_lock();
  cudaError_t error = begin(px_stream_of(stream), graph, before, count, mode);
  px_graph_unlock();
  return px_report(error);
}

PX_API cudaError_t cudaStreamBeginCapture(cudaStream_t stream, int mode) { return begin_in(stream, NULL, NULL, 0, mode); }

PX_API cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *before,
                                                 const cudaGraphEdgeData *data, size_t count, int mode) {
  PX_REQUIRE(graph && (before || !count), cudaErrorInvalidValue);
  PX_REQUIRE(px_plain_edges(data, count), cudaErrorNotSupported);
  return begin_in(stream, graph, before, count, mode);
}

/* Whether all that was captured comes before the end of the stream that began: each node has one behind it, but for the tail and what
 * the program has dropped. */
static bool is_joined(const px_capture_state *capture) {
  const px_nodes *ends[] = {&capture->origin->tail, &capture->dropped};
  for (size_t i = 0; i < capture->placed.count; i++) capture->placed.node[i]->number = 0;
  for (size_t k = 0; k < 2; k++)
    for (size_t i = 0; i < ends[k]->count; i++) ends[k]->node[i]->number = 1;
  for (size_t i = 0; i < capture->placed.count; i++) {
    const struct px_node *node = capture->placed.node[i];
    if (!node->behind.count && !node->number) return false;
  }
  return true;
}

/* With the lock held: the streams are free again. */
static cudaError_t end(px_capture_state *capture, cudaGraph_t *out) {
  cudaError_t error = capture->broken      ? cudaErrorStreamCaptureInvalidated
                      : is_joined(capture) ? cudaSuccess
                                           : cudaErrorStreamCaptureUnjoined;
  for (size_t i = 0; i < capture->streams; i++) {
    capture->joined[i]->tail.count = 0;
    atomic_store(&capture->joined[i]->capture, NULL);
  }
  px_capture_state **at = &captures;
  while (*at != capture) at = &(*at)->next;
  *at = capture->next;
  atomic_fetch_sub(&going_on, 1);
  capture->graph->captured = false;
  if (out) *out = error ? NULL : capture->graph;
  if (error && !capture->given) px_graph_free(capture->graph);
  free(capture->placed.node);
  free(capture->dropped.node);
  free(capture->joined);
  free(capture);
  return error;
}

PX_API cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out) {
  PX_ENTER();
  PX_REQUIRE(px_is_stream(stream), cudaErrorInvalidResourceHandle);
  px_graph_lock();
  px_capture_state *capture = atomic_load(&px_stream_of(stream)->capture);
  bool nowhere = capture && !out && !capture->given;
  bool elsewhere = capture && capture->mode != RELAXED && capture->thread != this_thread();
  cudaError_t error = !capture                                  ? cudaErrorIllegalState
                      : nowhere                                 ? cudaErrorInvalidValue
                      : capture->origin != px_stream_of(stream) ? break_off(capture, cudaErrorStreamCaptureUnmatched)
                      : elsewhere                               ? cudaErrorStreamCaptureWrongThread
                                                                : end(capture, out);
  px_graph_unlock();
  return px_report(error);
}

/* ---- questions ---- */

enum { NONE, ACTIVE, INVALIDATED };

PX_API cudaError_t cudaStreamIsCapturing(cudaStream_t stream, int *status) {
  PX_ENTER();
  PX_REQUIRE(px_is_stream(stream), cudaErrorInvalidResourceHandle);
  PX_REQUIRE(status, cudaErrorInvalidValue);
  cudaError_t error = px_stream_of(stream) == px_stream_of(NULL) ? ask_legacy(false) : cudaSuccess;
  px_graph_lock();
  const px_capture_state *capture = atomic_load(&px_stream_of(stream)->capture);
  *status = !capture ? NONE : capture->broken ? INVALIDATED : ACTIVE;
  px_graph_unlock();
  return px_report(error);
}

/* The nodes are those of the stream, until it is used the next time. */
PX_API cudaError_t cudaStreamGetCaptureInfo_v3(cudaStream_t stream, int *status, unsigned long long *id, cudaGraph_t *graph,
                                               const cudaGraphNode_t **nodes, const cudaGraphEdgeData **data,
                                               size_t *count) {
  cudaError_t error = cudaStreamIsCapturing(stream, status);
  if (error) return error;
  px_graph_lock();
  const px_capture_state *capture = atomic_load(&px_stream_of(stream)->capture);
  bool active = capture && !capture->broken;
  if (id) *id = active ? capture->id : 0;
  if (graph) *graph = active ? capture->graph : NULL;
  if (nodes) *nodes = active ? px_stream_of(stream)->tail.node : NULL;
  if (data) *data = NULL; /* edges carry nothing */
  if (count) *count = active ? px_stream_of(stream)->tail.count : 0;
  px_graph_unlock();
  return px_report(cudaSuccess);
}

PX_API cudaError_t cudaStreamUpdateCaptureDependencies_v2(cudaStream_t stream, cudaGraphNode_t *nodes,
                                                          const cudaGraphEdgeData *data, size_t count, unsigned flags) {
  enum { ADD, SET };
  PX_ENTER();
  PX_REQUIRE(px_is_stream(stream), cudaErrorInvalidResourceHandle);
  PX_REQUIRE((nodes || !count) && flags <= SET, cudaErrorInvalidValue);
  PX_REQUIRE(px_plain_edges(data, count), cudaErrorNotSupported);
  const px_nodes more = {nodes, count, count};
  struct px_stream *own = px_stream_of(stream);
  px_graph_lock();
  px_capture_state *capture = atomic_load(&own->capture);
  cudaError_t error = !capture ? cudaErrorIllegalState : capture->broken ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
  for (size_t i = 0; !error && i < count; i++)
    if (!px_is_node(nodes[i]) || nodes[i]->graph != capture->graph) error = cudaErrorInvalidValue;
  bool fits = error || flags == ADD || unite(&capture->dropped, &own->tail);
  if (!error && flags == SET) own->tail.count = 0;
  if (!error && !(fits && unite(&own->tail, &more))) error = break_off(capture, cudaErrorMemoryAllocation);
  px_graph_unlock();
  return px_report(error);
}
