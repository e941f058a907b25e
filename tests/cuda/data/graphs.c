/* graphs.c: graphs that are captured, and graphs that are made node by node. */
#include "program.h"

/* ---- capture ---- */

static void capture_chain(board *b, cudaStream_t stream, cudaStream_t side) {
  cudaEvent_t forked, joined;
  int *number = &b->set;
  MUST(cudaEventCreate(&forked));
  MUST(cudaEventCreate(&joined));
  append_digit(stream, b, 1);
  MUST(cudaEventRecord(forked, stream));
  MUST(cudaStreamWaitEvent(side, forked, 0));
  MUST(cudaMemsetAsync(number, 2, sizeof *number, side));
  MUST(cudaMemcpyAsync(&b->copied, number, sizeof *number, cudaMemcpyDeviceToDevice, side));
  append_digit(stream, b, 2);
  MUST(cudaEventRecord(joined, side));
  MUST(cudaStreamWaitEvent(stream, joined, 0));
  MUST(cudaLaunchHostFunc(stream, append_here, b));
  append_digit(stream, b, 3);
  MUST(cudaEventDestroy(forked));
  MUST(cudaEventDestroy(joined));
}

static void do_graph(void) {
  board *b = new_board();
  cudaStream_t stream, side;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  size_t count, edges;
  int capturing;
  MUST(cudaStreamCreate(&stream));
  MUST(cudaStreamCreateWithFlags(&side, 1));
  MUST(cudaStreamBeginCapture(stream, 0));
  capture_chain(b, stream, side);
  MUST(cudaStreamIsCapturing(side, &capturing));
  MUST(cudaStreamEndCapture(stream, &graph));
  MUST(cudaGraphGetNodes(graph, NULL, &count));
  MUST(cudaGraphGetRootNodes(graph, NULL, &edges));
  printf("%lld %d %d %zu %zu\n", b->digits, b->copied, capturing, count, edges);
  MUST(cudaGraphInstantiate(&exec, graph, 0));
  MUST(cudaGraphDestroy(graph));
  await_flag(stream, b, 0);
  MUST(cudaGraphLaunch(exec, stream));
  MUST(cudaGraphLaunch(exec, side)); /* not beside itself */
  append_digit(side, b, 4);
  printf("%lld %d\n", b->digits, b->copied);
  raise_flag(b, 0);
  MUST(cudaStreamSynchronize(side));
  printf("%lld %x\n", b->digits, b->copied);
  MUST(cudaGraphExecDestroy(exec));
}

static cudaGraph_t nowhere_graph;

/* End a capture that something has made invalid. */
static void say_end(cudaStream_t stream) { SAY(cudaStreamEndCapture(stream, &nowhere_graph)); }

static void *end_elsewhere(void *stream) {
  say_end(stream);
  return NULL;
}

/* What makes a capture invalid, and what does not. */
static void do_capture_errors(void) {
  board *b = new_board();
  cudaStream_t stream, side, blocking;
  cudaEvent_t event, outside;
  cudaGraph_t graph;
  pthread_t thread;
  void *memory;
  int mode = 2;
  MUST(cudaStreamCreateWithFlags(&stream, 1));
  MUST(cudaStreamCreateWithFlags(&side, 1));
  MUST(cudaStreamCreate(&blocking));
  MUST(cudaEventCreate(&event));
  MUST(cudaEventCreate(&outside));
  SAY(cudaStreamBeginCapture(NULL, 0));
  SAY(cudaStreamEndCapture(stream, &graph));
  MUST(cudaStreamBeginCapture(stream, 0)); /* waited for */
  SAY(cudaStreamBeginCapture(stream, 0));
  SAY(cudaStreamSynchronize(stream));
  say_end(stream);
  MUST(cudaStreamBeginCapture(stream, 0)); /* an event of it is asked */
  MUST(cudaEventRecord(event, stream));
  SAY(cudaEventQuery(event));
  say_end(stream);
  SAY(cudaStreamWaitEvent(stream, event, 0));
  MUST(cudaStreamBeginCapture(stream, 0)); /* not joined */
  MUST(cudaEventRecord(event, stream));
  MUST(cudaStreamWaitEvent(side, event, 0));
  append_digit(side, b, 5);
  say_end(stream);
  MUST(cudaStreamBeginCapture(stream, 0)); /* ended where it did not begin */
  MUST(cudaEventRecord(event, stream));
  MUST(cudaStreamWaitEvent(side, event, 0));
  say_end(side);
  say_end(stream);
  MUST(cudaEventRecord(outside, side));
  MUST(cudaStreamBeginCapture(stream, 0)); /* waits for what is not captured */
  SAY(cudaStreamWaitEvent(stream, outside, 0));
  say_end(stream);
  MUST(cudaStreamBeginCapture(stream, 0)); /* two captures that meet */
  MUST(cudaStreamBeginCapture(side, 0));
  MUST(cudaEventRecord(event, side));
  SAY(cudaStreamWaitEvent(stream, event, 0));
  say_end(side);
  say_end(stream);
  MUST(cudaStreamBeginCapture(blocking, 2)); /* a question does no harm */
  SAY(cudaStreamIsCapturing(NULL, &mode));
  say_end(blocking);
  mode = 2;
  MUST(cudaStreamBeginCapture(blocking, 2)); /* the default stream would wait for it */
  SAY(cudaMemsetAsync(&b->set, 1, 4, NULL));
  say_end(blocking);
  MUST(cudaStreamBeginCapture(stream, 0)); /* memory */
  SAY(cudaMalloc(&memory, 16));
  say_end(stream);
  MUST(cudaStreamBeginCapture(stream, 0));
  MUST(cudaThreadExchangeStreamCaptureMode(&mode));
  MUST(cudaMalloc(&memory, 16));
  MUST(cudaThreadExchangeStreamCaptureMode(&mode));
  pthread_create(&thread, NULL, end_elsewhere, stream);
  pthread_join(thread, NULL);
  say_end(stream);
  append_digit(stream, b, 6);
  MUST(cudaDeviceSynchronize());
  printf("%lld\n", b->digits);
}

enum { THREADS = 4, ROUNDS = 50 };

static struct {
  board *b;
  cudaStream_t stream;
  cudaGraphExec_t exec;
} shared;

static void *capture_many(void *unused) {
  for (int i = 0; i < ROUNDS; i++) append_digit(shared.stream, shared.b, 1);
  return unused;
}

static void *launch_many(void *unused) {
  cudaStream_t own;
  MUST(cudaStreamCreateWithFlags(&own, 1));
  for (int i = 0; i < ROUNDS; i++) MUST(cudaGraphLaunch(shared.exec, own));
  MUST(cudaStreamSynchronize(own));
  return unused;
}

static void run_in_threads(void *(*function)(void *)) {
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, function, NULL);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

/* Threads that capture one stream, and that launch one graph. */
static void do_graph_threads(void) {
  cudaGraph_t graph;
  unsigned long long wanted = 0;
  shared.b = new_board();
  MUST(cudaStreamCreateWithFlags(&shared.stream, 1));
  MUST(cudaStreamBeginCapture(shared.stream, 2));
  run_in_threads(capture_many);
  MUST(cudaStreamEndCapture(shared.stream, &graph));
  MUST(cudaGraphInstantiate(&shared.exec, graph, 0));
  run_in_threads(launch_many);
  for (int i = 0; i < THREADS * ROUNDS * THREADS * ROUNDS; i++) wanted = 10 * wanted + 1;
  puts((unsigned long long)shared.b->digits == wanted ? "right" : "lost");
}

/* ---- node by node ---- */

static cudaGraphNode_t add_digit(cudaGraph_t graph, board *b, int digit, const cudaGraphNode_t *before, size_t count) {
  cudaGraphNode_t node;
  long long *digits = &b->digits;
  cudaKernelNodeParams what = {&append, {1, 1, 1}, {1, 1, 1}, 0, (void *[]){&digits, &digit}, NULL};
  MUST(cudaGraphAddKernelNode(&node, graph, before, count, &what));
  return node;
}

static void run_graph(cudaGraphExec_t exec, board *b) {
  b->digits = b->copied = b->set = 0;
  MUST(cudaGraphLaunch(exec, NULL));
  MUST(cudaDeviceSynchronize());
  printf("%lld %x %x\n", b->digits, b->set, b->copied);
}

static void append_nine(void *data) { ((board *)data)->digits = 10 * ((board *)data)->digits + 9; }

typedef struct made {
  cudaGraph_t graph;
  cudaGraphNode_t first, set, copy, host, last;
} made;

/* 1 -> {set -> copy, host} -> 2 */
static made make_graph(board *b) {
  made m;
  cudaMemsetParams set = {&b->set, 0, 0x11223344, 4, 1, 1};
  cudaHostNodeParams host = {append_nine, b};
  MUST(cudaGraphCreate(&m.graph, 0));
  m.first = add_digit(m.graph, b, 1, NULL, 0);
  MUST(cudaGraphAddMemsetNode(&m.set, m.graph, &m.first, 1, &set));
  MUST(cudaGraphAddMemcpyNode1D(&m.copy, m.graph, &m.set, 1, &b->copied, &b->set, 4, cudaMemcpyDefault));
  MUST(cudaGraphAddHostNode(&m.host, m.graph, &m.first, 1, &host));
  m.last = add_digit(m.graph, b, 2, (cudaGraphNode_t[]){m.copy, m.host}, 2);
  return m;
}

static void say_parameters(const made *m) {
  cudaKernelNodeParams kernel;
  cudaMemsetParams set;
  cudaMemcpy3DParms copy;
  cudaHostNodeParams host;
  MUST(cudaGraphKernelNodeGetParams(m->last, &kernel));
  MUST(cudaGraphMemsetNodeGetParams(m->set, &set));
  MUST(cudaGraphMemcpyNodeGetParams(m->copy, &copy));
  MUST(cudaGraphHostNodeGetParams(m->host, &host));
  printf("%d %u %d | %x %u %zu | %zu %d | %d\n", kernel.func == (void *)&append, kernel.blockDim.x,
         *(int *)kernel.kernelParams[1], set.value, set.elementSize, set.width, copy.extent.width, copy.kind,
         host.fn == append_nine);
}

static void do_nodes(void) {
  board *b = new_board();
  made m = make_graph(b);
  cudaGraphExec_t exec;
  cudaGraphNode_t nodes[8], found;
  size_t count = 8, roots = 8;
  int type;
  say_parameters(&m);
  MUST(cudaGraphGetNodes(m.graph, nodes, &count));
  MUST(cudaGraphGetRootNodes(m.graph, &found, &(size_t){1}));
  MUST(cudaGraphGetRootNodes(m.graph, NULL, &roots));
  MUST(cudaGraphNodeGetType(m.host, &type));
  printf("%zu %zu %d %d %d\n", count, roots, nodes[4] == m.last && !nodes[5], found == m.first, type);
  MUST(cudaGraphInstantiate(&exec, m.graph, 0));
  run_graph(exec, b);
  long long *digits = &b->digits;
  int five = 5;
  cudaKernelNodeParams kernel = {&append, {1, 1, 1}, {1, 1, 1}, 0, (void *[]){&digits, &five}, NULL};
  MUST(cudaGraphExecKernelNodeSetParams(exec, m.last, &kernel)); /* what is instantiated alone */
  MUST(cudaGraphExecMemcpyNodeSetParams1D(exec, m.copy, &b->copied, &b->set, 2, cudaMemcpyDefault));
  MUST(cudaGraphNodeSetEnabled(exec, m.first, 0));
  run_graph(exec, b);
  say_parameters(&m);
  cudaMemsetParams set = {&b->set, 0, 7, 1, 3, 1};
  MUST(cudaGraphMemsetNodeSetParams(m.set, &set)); /* the graph */
  cudaGraphExecUpdateResultInfo info;
  MUST(cudaGraphExecUpdate(exec, m.graph, &info));
  MUST(cudaGraphNodeSetEnabled(exec, m.first, 1));
  run_graph(exec, b);
  MUST(cudaGraphDestroyNode(m.host));
  SAY(cudaGraphExecUpdate(exec, m.graph, &info));
  printf("%d\n", info.result);
  MUST(cudaGraphExecDestroy(exec));
  MUST(cudaGraphInstantiate(&exec, m.graph, 0));
  run_graph(exec, b);
  MUST(cudaGraphExecDestroy(exec));
  MUST(cudaGraphDestroy(m.graph));
}

/* Graphs within graphs, clones, events. */
static void do_children(void) {
  board *b = new_board();
  made m = make_graph(b);
  cudaGraph_t outer, clone, within;
  cudaGraphNode_t first, child, last, found;
  cudaGraphExec_t exec;
  cudaEvent_t event;
  MUST(cudaEventCreate(&event));
  MUST(cudaGraphCreate(&outer, 0));
  first = add_digit(outer, b, 3, NULL, 0);
  MUST(cudaGraphAddChildGraphNode(&child, outer, &first, 1, m.graph));
  last = add_digit(outer, b, 4, &child, 1);
  MUST(cudaGraphAddEventRecordNode(&last, outer, &last, 1, event));
  MUST(cudaGraphDestroyNode(m.first)); /* the copy within is as it was */
  MUST(cudaGraphInstantiate(&exec, outer, 0));
  run_graph(exec, b);
  MUST(cudaEventQuery(event));
  SAY(cudaGraphExecChildGraphNodeSetParams(exec, child, m.graph));
  MUST(cudaGraphChildGraphNodeGetGraph(child, &within));
  SAY(cudaGraphDestroy(within));
  MUST(cudaGraphClone(&clone, outer));
  MUST(cudaGraphNodeFindInClone(&found, first, clone));
  MUST(cudaGraphDestroyNode(found));
  SAY(cudaGraphNodeFindInClone(&found, first, clone));
  MUST(cudaGraphExecDestroy(exec));
  MUST(cudaGraphDestroy(outer));
  MUST(cudaGraphInstantiate(&exec, clone, 0));
  run_graph(exec, b);
}

/* CUDA 12 has no data of edges here. */
#if VERSION == 12
cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                     size_t count);
cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                        size_t count);
#define EDGES(name, graph, from, to) name(graph, from, to, 1)
#else
cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                     const cudaGraphEdgeData *data, size_t count);
cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                        const cudaGraphEdgeData *data, size_t count);
#define EDGES(name, graph, from, to) name(graph, from, to, NULL, 1)
#endif

static cudaError_t add_edge(cudaGraph_t graph, cudaGraphNode_t from, cudaGraphNode_t to) {
  return EDGES(cudaGraphAddDependencies, graph, &from, &to);
}

static cudaError_t remove_edge(cudaGraph_t graph, cudaGraphNode_t from, cudaGraphNode_t to) {
  return EDGES(cudaGraphRemoveDependencies, graph, &from, &to);
}

static void do_graph_errors(void) {
  board *b = new_board();
  made m = make_graph(b), other = make_graph(b);
  cudaGraphNode_t node;
  cudaGraphExec_t exec;
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaKernelNodeParams kernel = {&append, {1, 1, 1}, {2048, 1, 1}, 0, (void *[]){NULL, NULL}, NULL};
  cudaMemsetParams set = {&b->set, 0, 0, 3, 1, 1};
  SAY(cudaGraphCreate(&graph, 1));
  SAY(cudaGraphAddEmptyNode(&node, m.graph, &other.first, 1));
  SAY(cudaGraphAddEmptyNode(&node, m.graph, (cudaGraphNode_t[]){m.first, m.first}, 2));
  SAY(cudaGraphAddKernelNode(&node, m.graph, NULL, 0, &kernel));
  SAY(cudaGraphAddMemsetNode(&node, m.graph, NULL, 0, &set));
  SAY(cudaGraphMemsetNodeGetParams(m.first, &set));
  SAY(add_edge(m.graph, m.first, m.set)); /* it is there */
  MUST(add_edge(m.graph, m.last, m.first));
  SAY(cudaGraphInstantiate(&exec, m.graph, 0)); /* a circle */
  MUST(remove_edge(m.graph, m.last, m.first));
  SAY(remove_edge(m.graph, m.last, m.first));
  MUST(cudaGraphInstantiate(&exec, m.graph, 0));
  SAY(cudaGraphNodeSetEnabled(exec, m.host, 0));
  SAY(cudaGraphNodeSetEnabled(exec, other.first, 0));
  run_graph(exec, b);
  MUST(cudaStreamCreateWithFlags(&stream, 1)); /* capture into a graph that is there */
  MUST(cudaStreamBeginCaptureToGraph(stream, m.graph, &m.last, NULL, 1, 0));
  append_digit(stream, b, 8);
  SAY(cudaGraphDestroy(m.graph));
  MUST(cudaStreamEndCapture(stream, &graph));
  printf("%d\n", graph == m.graph);
  MUST(cudaGraphExecDestroy(exec));
  MUST(cudaGraphInstantiate(&exec, m.graph, 0));
  run_graph(exec, b);
}

const action graph_actions[] = {{"graph", do_graph},
                                {"capture errors", do_capture_errors},
                                {"graph threads", do_graph_threads},
                                {"nodes", do_nodes},
                                {"children", do_children},
                                {"graph errors", do_graph_errors},
                                {NULL, NULL}};
