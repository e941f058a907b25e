/* handles.c: handles that are none, that were destroyed, and that another thread destroys. */
#include "program.h"

cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc *format, cudaExtent *extent, unsigned *flags, cudaArray_t array);
cudaError_t cudaMemcpyToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t size, int kind);

enum { ROUNDS = 400, THREADS = 4 };

static const cudaChannelFormatDesc words = {32, 0, 0, 0, cudaChannelFormatKindUnsigned};

/* ---- wrong handles: each is given to functions of all kinds ---- */

static cudaStream_t stream;

static void as_stream(void *handle) {
  SAY(cudaStreamSynchronize(handle));
  SAY(cudaLaunchKernel(&empty, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, handle));
  SAY(cudaStreamDestroy(handle));
}

static void as_event(void *handle) {
  SAY(cudaEventRecord(handle, stream));
  SAY(cudaStreamWaitEvent(stream, handle, 0));
  SAY(cudaEventDestroy(handle));
}

static void as_graph(void *handle) {
  cudaGraphExec_t exec;
  SAY(cudaGraphInstantiate(&exec, handle, 0));
  SAY(cudaGraphDestroy(handle));
}

static void as_node(void *handle) {
  int type;
  SAY(cudaGraphNodeGetType(handle, &type));
  SAY(cudaGraphDestroyNode(handle));
}

static void as_exec(void *handle) {
  SAY(cudaGraphLaunch(handle, stream));
  SAY(cudaGraphExecDestroy(handle));
}

static void as_array(void *handle) {
  cudaResourceDesc resource = {.resType = cudaResourceTypeArray, .res.array.array = handle};
  cudaSurfaceObject_t surface;
  cudaExtent extent;
  int value = 1;
  SAY(cudaArrayGetInfo(NULL, &extent, NULL, handle));
  SAY(cudaMemcpy2DToArray(handle, 0, 0, &value, 4, 4, 1, cudaMemcpyHostToDevice));
  SAY(cudaMemcpyToArray(handle, 0, 0, &value, 4, cudaMemcpyHostToDevice));
  SAY(cudaCreateSurfaceObject(&surface, &resource));
  SAY(cudaFreeArray(handle));
}

static void as_mipmap(void *handle) {
  cudaArray_t level;
  SAY(cudaGetMipmappedArrayLevel(&level, handle, 0));
  SAY(cudaFreeMipmappedArray(handle));
}

static void as_pool(void *handle) {
  unsigned long long value = 0;
  SAY(cudaMemPoolSetAttribute(handle, 4, &value));
}

static void (*const uses[])(void *) = {as_stream, as_event, as_graph, as_node, as_exec, as_array, as_mipmap, as_pool};
enum { KINDS = sizeof uses / sizeof *uses };

/* One of each kind, in the order of `uses`. */
static void make_all(void *out[KINDS]) {
  cudaGraph_t graph;
  cudaGraphNode_t node;
  MUST(cudaStreamCreate((cudaStream_t *)&out[0]));
  MUST(cudaEventCreate((cudaEvent_t *)&out[1]));
  MUST(cudaGraphCreate(&graph, 0));
  MUST(cudaGraphAddEmptyNode(&node, graph, NULL, 0));
  out[2] = graph;
  out[3] = node;
  MUST(cudaGraphInstantiate((cudaGraphExec_t *)&out[4], graph, 0));
  MUST(cudaMallocArray((cudaArray_t *)&out[5], &words, 4, 4, cudaArraySurfaceLoadStore));
  MUST(cudaMallocMipmappedArray((cudaMipmappedArray_t *)&out[6], &words, (cudaExtent){8, 8, 0}, 2, 0));
  MUST(cudaDeviceGetDefaultMemPool((cudaMemPool_t *)&out[7], 0));
}

static void do_wild(void) {
  static _Alignas(64) char bytes[4096]; /* memory that is no object, and memory that is none */
  void *const wild[] = {(void *)0x123450, (void *)0x7, bytes, bytes + 1, (void *)~(uintptr_t)15, (void *)0xdeadbeef00000000};
  MUST(cudaStreamCreate(&stream));
  for (size_t i = 0; i < sizeof wild / sizeof *wild; i++)
    for (size_t k = 0; k < KINDS; k++) uses[k](wild[i]);
}

static void do_wrong_kind(void) {
  void *all[KINDS];
  MUST(cudaStreamCreate(&stream));
  make_all(all);
  for (size_t i = 0; i < KINDS; i++)
    for (size_t k = 0; k < KINDS; k++)
      if (i != k) uses[k](all[i]);
}

static void do_destroyed(void) {
  void *all[KINDS];
  cudaArray_t level;
  MUST(cudaStreamCreate(&stream));
  make_all(all);
  MUST(cudaGetMipmappedArrayLevel(&level, all[6], 1));
  SAY(cudaFreeArray(level)); /* it is the mipmap's */
  MUST(cudaStreamDestroy(all[0]));
  MUST(cudaEventDestroy(all[1]));
  MUST(cudaGraphDestroy(all[2]));
  MUST(cudaGraphExecDestroy(all[4]));
  MUST(cudaFreeArray(all[5]));
  MUST(cudaFreeMipmappedArray(all[6]));
  for (size_t k = 0; k < KINDS - 1; k++) uses[k](all[k]);
  as_array(level);
}

/* A node of a graph that copies from memory, or to an array, which is freed before the launch. */
static void do_freed_under_graph(void) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaGraphNode_t node;
  cudaArray_t array;
  cudaMemcpy3DParms what = {.extent = {4, 1, 1}, .kind = cudaMemcpyDeviceToDevice}, told;
  void *memory;
  for (int freed = 0; freed < 2; freed++) {
    MUST(cudaMalloc(&memory, 16));
    MUST(cudaMallocArray(&array, &words, 4, 1, 0));
    MUST(cudaGraphCreate(&graph, 0));
    what.srcPtr = (cudaPitchedPtr){memory, 16, 4, 1};
    what.dstArray = array;
    MUST(cudaGraphAddMemcpyNode(&node, graph, NULL, 0, &what));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    MUST(freed ? cudaFree(memory) : cudaFreeArray(array));
    MUST(cudaGraphMemcpyNodeGetParams(node, &told));
    printf("%zu\n", told.extent.width);
    MUST(cudaGraphLaunch(exec, NULL));
    SAY(cudaDeviceSynchronize());
    MUST(cudaDeviceReset());
  }
}

/* ---- threads: one destroys what others use ---- */

typedef void *_Atomic shared;
static shared target;
static _Atomic int stopped;

static void use_stream(void *handle) {
  cudaStreamQuery(handle);
  cudaMemsetAsync(NULL, 0, 0, handle);
  cudaStreamSynchronize(handle);
}

static void use_event(void *handle) {
  cudaEventRecord(handle, stream);
  cudaEventQuery(handle);
  cudaStreamWaitEvent(stream, handle, 0);
}

static void use_exec(void *handle) { cudaGraphLaunch(handle, stream); }

static void use_array(void *handle) {
  int value;
  cudaMemcpy2DFromArray(&value, 4, handle, 0, 0, 4, 1, cudaMemcpyDeviceToHost);
}

static void *make_stream(void) {
  cudaStream_t made;
  MUST(cudaStreamCreate(&made));
  return made;
}

static void *make_event(void) {
  cudaEvent_t made;
  MUST(cudaEventCreate(&made));
  return made;
}

static void *make_exec(void) {
  cudaGraph_t graph;
  cudaGraphExec_t made;
  cudaGraphNode_t node;
  MUST(cudaGraphCreate(&graph, 0));
  MUST(cudaGraphAddEmptyNode(&node, graph, NULL, 0));
  MUST(cudaGraphInstantiate(&made, graph, 0));
  MUST(cudaGraphDestroy(graph));
  return made;
}

static void *make_array(void) {
  cudaArray_t made;
  MUST(cudaMallocArray(&made, &words, 4, 4, 0));
  return made;
}

static cudaError_t end_stream(void *handle) { return cudaStreamDestroy(handle); }
static cudaError_t end_event(void *handle) { return cudaEventDestroy(handle); }
static cudaError_t end_exec(void *handle) { return cudaGraphExecDestroy(handle); }
static cudaError_t end_array(void *handle) { return cudaFreeArray(handle); }

typedef struct life {
  void *(*make)(void);
  void (*use)(void *);
  cudaError_t (*end)(void *);
} life;

static void *use_all(void *context) {
  const life *kind = context;
  while (!stopped) kind->use(target);
  return NULL;
}

static void do_destroyed_by_a_thread(void) {
  static const life lives[] = {{make_stream, use_stream, end_stream},
                               {make_event, use_event, end_event},
                               {make_exec, use_exec, end_exec},
                               {make_array, use_array, end_array}};
  pthread_t threads[THREADS];
  MUST(cudaStreamCreate(&stream));
  for (size_t k = 0; k < sizeof lives / sizeof *lives; k++) {
    stopped = 0;
    target = lives[k].make();
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, use_all, (void *)&lives[k]);
    for (int i = 0; i < ROUNDS; i++) {
      void *before = target;
      target = lives[k].make();
      MUST(lives[k].end(before));
    }
    stopped = 1;
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  }
  MUST(cudaDeviceSynchronize());
  add_vectors(1);
  puts("right");
}

const action handle_actions[] = {{"wild", do_wild},
                                 {"wrong kind", do_wrong_kind},
                                 {"destroyed", do_destroyed},
                                 {"freed under graph", do_freed_under_graph},
                                 {"destroyed by a thread", do_destroyed_by_a_thread},
                                 {NULL, NULL}};
