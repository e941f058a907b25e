/* choices.c: graphs with nodes that choose, and with nodes that allocate. */
#include "program.h"

#if VERSION >= 13 /* whose function has the name that an older one had */
cudaError_t cudaGraphAddNode(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *before,
                             const cudaGraphEdgeData *data, size_t count, cudaGraphNodeParams *what);
#define cudaGraphAddNode_v2 cudaGraphAddNode
#endif

/* ---- nodes that choose ---- */

static cudaGraphConditionalHandle condition(cudaGraph_t graph, unsigned value, unsigned flags) {
  cudaGraphConditionalHandle handle;
  MUST(cudaGraphConditionalHandleCreate(&handle, graph, value, flags));
  return handle;
}

/* A node behind all that a graph has: its graphs. */
static cudaGraph_t *add_choice(cudaGraph_t graph, cudaGraphConditionalHandle handle, int type, unsigned size) {
  cudaGraphNodeParams what = {.type = cudaGraphNodeTypeConditional, .conditional = {handle, type, size}};
  cudaGraphNode_t before[4], made;
  size_t count = 4;
  MUST(cudaGraphGetNodes(graph, before, &count));
  MUST(cudaGraphAddNode_v2(&made, graph, before, NULL, count, &what));
  return what.conditional.phGraph_out;
}

static void begin_in(cudaStream_t stream, cudaGraph_t graph) {
  MUST(cudaStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 0, 0));
}

static void end_in(cudaStream_t stream) {
  cudaGraph_t graph;
  MUST(cudaStreamEndCapture(stream, &graph));
}

static void add_digit(cudaStream_t stream, cudaGraph_t graph, board *b, int digit) {
  begin_in(stream, graph);
  append_digit(stream, b, digit);
  end_in(stream);
}

static void set_in(cudaStream_t stream, cudaGraph_t graph, cudaGraphConditionalHandle handle, int number) {
  begin_in(stream, graph);
  launch_in(stream, &choose, (void *[]){&handle, &number});
  end_in(stream);
}

static void run_choice(cudaGraph_t graph, cudaStream_t stream, board *b) {
  cudaGraphExec_t exec;
  b->digits = 0;
  MUST(cudaGraphInstantiate(&exec, graph, 0));
  MUST(cudaGraphLaunch(exec, stream));
  MUST(cudaStreamSynchronize(stream));
  printf("%lld ", b->digits);
  MUST(cudaGraphExecDestroy(exec));
}

/* As long as a number is not 0, 1 and then what a switch says. */
static void do_loop(void) {
  board *b = new_board();
  cudaStream_t stream;
  cudaGraph_t graph;
  int *number = &b->set;
  MUST(cudaStreamCreateWithFlags(&stream, 1));
  MUST(cudaGraphCreate(&graph, 0));
  cudaGraphConditionalHandle again = condition(graph, 1, 1), which = condition(graph, 0, 0);
  cudaGraph_t body = add_choice(graph, again, cudaGraphCondTypeWhile, 1)[0];
  begin_in(stream, body);
  append_digit(stream, b, 1);
  launch_in(stream, &count_down, (void *[]){&number, &which});
  launch_in(stream, &tally, (void *[]){&number, &(int){1}});
  launch_in(stream, &count_down, (void *[]){&number, &again});
  end_in(stream);
  cudaGraph_t *one = add_choice(body, which, cudaGraphCondTypeSwitch, 3);
  for (int i = 0; i < 3; i++) add_digit(stream, one[i], b, 5 + i);
  for (int times = 1; times <= 4; times++) {
    b->set = times;
    run_choice(graph, stream, b);
  }
  b->set = 4003; /* many times, without growing anything */
  run_choice(graph, stream, b);
  printf("%d\n", b->set);
}

/* If; if and else, from the value that a launch begins with, or that a kernel sets. */
static void do_branches(void) {
  board *b = new_board();
  cudaStream_t stream;
  MUST(cudaStreamCreateWithFlags(&stream, 1));
  for (int value = 0; value < 3; value++)
    for (unsigned size = 1; size <= 2; size++) {
      cudaGraph_t graph;
      MUST(cudaGraphCreate(&graph, 0));
      cudaGraphConditionalHandle handle = condition(graph, value == 2, 1);
      if (value < 2) set_in(stream, graph, handle, value);
      cudaGraph_t *graphs = add_choice(graph, handle, cudaGraphCondTypeIf, size);
      for (unsigned i = 0; i < size; i++) add_digit(stream, graphs[i], b, 3 + (int)i);
      run_choice(graph, stream, b);
      MUST(cudaGraphDestroy(graph));
    }
  printf("\n");
}

static void do_choice_errors(void) {
  board *b = new_board();
  cudaGraph_t graph, other;
  cudaGraphNode_t node;
  MUST(cudaGraphCreate(&graph, 0));
  MUST(cudaGraphCreate(&other, 0));
  cudaGraphConditionalHandle handle = condition(graph, 1, 1);
  const cudaConditionalNodeParams wrong[] = {{condition(other, 0, 0), 0, 1}, {(uintptr_t)b, 0, 1}, {handle, 0, 3},
                                             {handle, 1, 2},                 {handle, 2, 0},       {handle, 3, 1}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    cudaGraphNodeParams what = {.type = cudaGraphNodeTypeConditional, .conditional = wrong[i]};
    SAY(cudaGraphAddNode_v2(&node, graph, NULL, NULL, 0, &what));
  }
  cudaGraph_t body = add_choice(graph, handle, cudaGraphCondTypeWhile, 1)[0];
  SAY(cudaGraphDestroy(body));
  SAY(cudaGraphClone(&other, graph));
  SAY(cudaGraphAddChildGraphNode(&node, other, NULL, 0, graph));
  SAY(cudaFree((void *)(uintptr_t)handle));
  cudaStream_t stream; /* a loop that a fault ends */
  cudaGraphExec_t exec;
  int *nowhere = NULL;
  MUST(cudaStreamCreateWithFlags(&stream, 1));
  begin_in(stream, body);
  launch_in(stream, &store, (void *[]){&nowhere});
  end_in(stream);
  MUST(cudaGraphInstantiate(&exec, graph, 0));
  cudaGraphLaunch(exec, stream);
  SAY(cudaStreamSynchronize(stream));
}

/* ---- memory of graphs ---- */

/* A graph whose nodes allocate memory: digits of which are set in it, and copied; the last one stays, or is freed. */
static cudaGraph_t graph_with_memory(board *b, void **memory, int frees) {
  cudaStream_t stream;
  cudaGraph_t graph;
  MUST(cudaStreamCreateWithFlags(&stream, 1));
  MUST(cudaStreamBeginCapture(stream, 0));
  MUST(cudaMallocAsync(memory, sizeof(int), stream));
  MUST(cudaMemsetAsync(*memory, 3, sizeof(int), stream));
  MUST(cudaMemcpyAsync(&b->copied, *memory, sizeof(int), cudaMemcpyDeviceToHost, stream));
  if (frees) MUST(cudaFreeAsync(*memory, stream));
  MUST(cudaStreamEndCapture(stream, &graph));
  MUST(cudaStreamDestroy(stream));
  return graph;
}

static unsigned long long graph_memory(int attribute) {
  unsigned long long bytes;
  MUST(cudaDeviceGetGraphMemAttribute(0, attribute, &bytes));
  return bytes;
}

static void do_graph_memory(void) {
  board *b = new_board();
  cudaGraphExec_t exec, second;
  cudaGraph_t other;
  cudaGraphNode_t nodes[4];
  size_t count = 4;
  int type;
  void *memory, *first;
  cudaGraph_t graph = graph_with_memory(b, &memory, 1);
  MUST(cudaGraphGetNodes(graph, nodes, &count));
  MUST(cudaGraphNodeGetType(nodes[0], &type));
  MUST(cudaGraphMemFreeNodeGetParams(nodes[3], &first));
  printf("%d %s\n", type, first == memory ? "freed" : "another");
  SAY(cudaGraphClone(&other, graph));
  SAY(cudaGraphDestroyNode(nodes[0]));
  SAY(cudaGraphAddMemFreeNode(&nodes[0], graph, NULL, 0, memory));
  SAY(cudaGraphAddMemFreeNode(&nodes[0], graph, NULL, 0, b));
  MUST(cudaGraphInstantiate(&exec, graph, 0));
  SAY(cudaGraphInstantiate(&second, graph, 0));
  for (int i = 0; i < 2; i++) MUST(cudaGraphLaunch(exec, NULL));
  MUST(cudaDeviceSynchronize());
  printf("%x %llu %llu\n", b->copied, graph_memory(0), graph_memory(1));
  SAY(cudaFree(memory)); /* the graph has freed it */
  MUST(cudaGraphExecDestroy(exec));
  MUST(cudaGraphDestroy(graph));
  printf("%llu\n", graph_memory(2));
}

/* What a graph leaves is freed by the program, or by its next launch. */
static void do_graph_memory_left(void) {
  board *b = new_board();
  cudaGraphExec_t exec;
  void *memory;
  cudaGraph_t graph = graph_with_memory(b, &memory, 0);
  MUST(cudaGraphInstantiate(&exec, graph, 0));
  MUST(cudaGraphLaunch(exec, NULL));
  SAY(cudaGraphLaunch(exec, NULL));
  MUST(cudaMemcpy(&b->set, memory, sizeof(int), cudaMemcpyDeviceToHost));
  SAY(cudaFreeAsync(memory, NULL));
  SAY(cudaFreeAsync(memory, NULL));
  SAY(cudaGraphLaunch(exec, NULL));
  MUST(cudaGraphExecDestroy(exec));
  MUST(cudaGraphInstantiate(&exec, graph, 1));
  SAY(cudaGraphLaunch(exec, NULL));
  MUST(cudaGraphExecDestroy(exec));
  MUST(cudaGraphDestroy(graph));
  printf("%x %llu\n", b->set, graph_memory(2));
  MUST(cudaFree(memory)); /* it has outlived its graph */
  printf("%llu\n", graph_memory(2));
}

const action choice_actions[] = {{"loop", do_loop},
                                 {"branches", do_branches},
                                 {"choice errors", do_choice_errors},
                                 {"graph memory", do_graph_memory},
                                 {"graph memory left", do_graph_memory_left},
                                 {NULL, NULL}};
