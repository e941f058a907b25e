/* A program as nvcc makes it, in C: registers a fat binary and launches its kernels. host IMAGE WHAT [NUMBER] */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "abi.h"

void **__cudaRegisterFatBinary(const px_fat_wrapper *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit, void *tid, void *bid,
                            dim3 *block, dim3 *grid, int *warp);
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external, size_t size, int constant,
                       int global);
cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream);
cudaError_t cudaFuncSetAttribute(const void *function, int attribute, int value);
cudaError_t cudaMalloc(void **pointer, size_t size);
cudaError_t cudaMallocHost(void **pointer, size_t size);
cudaError_t cudaFree(void *pointer);
cudaError_t cudaMemcpy(void *to, const void *from, size_t size, int kind);
cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t size, size_t offset, int kind);
cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t size, size_t offset, int kind);
cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms *what);
cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width, size_t height,
                                int kind);
cudaError_t cudaMemcpy2DFromArray(void *to, size_t pitch, cudaArray_t from, size_t x, size_t y, size_t width, size_t height,
                                  int kind);
cudaError_t cudaMalloc3DArray(cudaArray_t *out, const cudaChannelFormatDesc *format, cudaExtent extent, unsigned flags);
cudaError_t cudaMallocArray(cudaArray_t *out, const cudaChannelFormatDesc *format, size_t width, size_t height, unsigned flags);
cudaError_t cudaCreateTextureObject(cudaTextureObject_t *out, const cudaResourceDesc *resource, const cudaTextureDesc *wanted,
                                    const cudaResourceViewDesc *view);
cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t *out, const cudaResourceDesc *resource);
cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t object);
cudaError_t cudaHostRegister(void *pointer, size_t size, unsigned flags);
cudaError_t cudaHostUnregister(void *pointer);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaDeviceReset(void);
cudaError_t cudaGetLastError(void);
cudaError_t cudaGraphCreate(void **graph, unsigned flags);
cudaError_t cudaStreamCreate(cudaStream_t *out);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function, void *data, unsigned flags);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, int mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, int *status);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *out, size_t *count);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cudaEventCreate(cudaEvent_t *out);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, int kind, cudaStream_t stream);
cudaError_t cudaMemsetAsync(void *memory, int value, size_t size, cudaStream_t stream);
const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);
const char *ptxemu_last_fault(void);

enum { N = 1000 };

/* Their addresses are what the program knows kernels and variables by. */
static char add, scale, count, empty, hello, store, limited, await, append, fetch, transpose, absent, counter, factors;
static int number;

static void must(cudaError_t error, const char *what) {
  if (!error) return;
  printf("%s: %s (%s)\n", what, cudaGetErrorName(error), cudaGetErrorString(error));
  exit(1);
}
#define MUST(call) must(call, #call)

static void launch(const void *kernel, unsigned grid, unsigned x, unsigned y, void **arguments) {
  MUST(cudaLaunchKernel(kernel, (dim3){grid, 1, 1}, (dim3){x, y, 1}, arguments, 0, NULL));
}

static void add_vectors(float bias) {
  float a[N], b[N], c[N] = {0}, *on_device[3];
  int n = N;
  for (int i = 0; i < N; i++) a[i] = (float)i, b[i] = bias;
  for (int i = 0; i < 3; i++) MUST(cudaMalloc((void **)&on_device[i], sizeof a));
  MUST(cudaMemcpy(on_device[0], a, sizeof a, cudaMemcpyHostToDevice));
  MUST(cudaMemcpy(on_device[1], b, sizeof b, cudaMemcpyHostToDevice));
  void *arguments[] = {&on_device[0], &on_device[1], &on_device[2], &n};
  launch(&add, (N + 255) / 256, 256, 1, arguments);
  MUST(cudaMemcpy(c, on_device[2], sizeof c, cudaMemcpyDeviceToHost));
  for (int i = 0; i < N; i++)
    if (c[i] != (float)i + bias) {
      printf("wrong at %d: %g\n", i, c[i]);
      exit(1);
    }
  for (int i = 0; i < 3; i++) MUST(cudaFree(on_device[i]));
}

static void do_add(void) {
  add_vectors(0.5f);
  puts("right");
}

static void do_symbols(void) {
  float values[4] = {1, 2, 3, 4}, back[2], c[8], *out;
  int seen[4], *on_device, total;
  MUST(cudaMemcpyToSymbol(&factors, values, sizeof values, 0, cudaMemcpyHostToDevice));
  MUST(cudaMemcpyFromSymbol(back, &factors, sizeof back, 8, cudaMemcpyDeviceToHost));
  MUST(cudaMalloc((void **)&out, sizeof c));
  launch(&scale, 1, 8, 1, (void *[]){&out});
  MUST(cudaMemcpy(c, out, sizeof c, cudaMemcpyDeviceToHost));
  MUST(cudaMalloc((void **)&on_device, sizeof seen));
  launch(&count, 1, 4, 1, (void *[]){&on_device});
  launch(&count, 1, 4, 1, (void *[]){&on_device});
  MUST(cudaMemcpyFromSymbol(&total, &counter, sizeof total, 0, cudaMemcpyDeviceToHost));
  printf("%g %g | %g %g %g %g | %d\n", back[0], back[1], c[4], c[5], c[6], c[7], total);
  printf("%s\n", cudaGetErrorName(cudaMemcpyToSymbol(&factors, values, sizeof values, 1, cudaMemcpyHostToDevice)));
  printf("%s\n", cudaGetErrorName(cudaMemcpyToSymbol(&absent, values, sizeof values, 0, cudaMemcpyHostToDevice)));
}

static void do_printf(void) {
  int n = 3;
  printf("before\n");
  launch(&hello, 1, 3, 1, (void *[]){&n});
  printf("after\n");
}

/* A fault comes to light at the next call, and stays until the device is reset. */
static void do_fault(void) {
  int *nowhere = (int *)0x1000;
  void *memory;
  launch(&store, 1, 1, 1, (void *[]){&nowhere});
  printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  printf("%s\n", cudaGetErrorName(cudaMalloc(&memory, 16)));
  printf("%s\n", cudaGetErrorName(cudaLaunchKernel(&empty, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, NULL)));
  printf("%s\n", cudaGetErrorName(cudaGetLastError()));
  printf("%s\n", strstr(ptxemu_last_fault(), "in kernel `store` at <module>:") ? "told" : ptxemu_last_fault());
  MUST(cudaDeviceReset());
  add_vectors(1);
  puts("right again");
}

static void do_errors(void) {
  char bytes[64] = {0};
  void *graph, *memory;
  MUST(cudaMalloc(&memory, 64));
#define SAY(call) printf("%s\n", cudaGetErrorName(call))
  SAY(cudaGraphCreate(&graph, 0));
  SAY(cudaGetLastError());
  SAY(cudaGetLastError());
  SAY(cudaLaunchKernel(&absent, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, NULL));
  SAY(cudaLaunchKernel(&empty, (dim3){1, 1, 1}, (dim3){2048, 1, 1}, NULL, 0, NULL));
  SAY(cudaLaunchKernel(&empty, (dim3){0, 1, 1}, (dim3){1, 1, 1}, NULL, 0, NULL));
  SAY(cudaLaunchKernel(&empty, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 1 << 20, NULL));
  SAY(cudaLaunchKernel(&limited, (dim3){1, 1, 1}, (dim3){65, 1, 1}, NULL, 0, NULL));
  SAY(cudaLaunchKernel(&limited, (dim3){1, 1, 1}, (dim3){64, 1, 1}, NULL, (48 << 10) + 1, NULL));
  SAY(cudaFuncSetAttribute(&limited, 8, 227 << 10));
  SAY(cudaLaunchKernel(&limited, (dim3){1, 1, 1}, (dim3){64, 1, 1}, NULL, 227 << 10, NULL));
  SAY(cudaLaunchKernel(&hello, (dim3){1, 1, 1}, (dim3){64, 1, 1}, (void *[]){NULL}, 0, NULL));
  SAY(cudaMemcpy(bytes, memory, 65, cudaMemcpyDeviceToHost));
  SAY(cudaMemcpy(bytes, bytes, 64, cudaMemcpyDeviceToHost));
  SAY(cudaMemcpy(bytes, memory, 64, 9));
  SAY(cudaFree((char *)memory + 1));
  SAY(cudaFree(memory));
  SAY(cudaFree(memory));
  SAY(cudaMalloc(&memory, (size_t)1 << 62));
}

static void do_arrays(void) {
  enum { W = 8, H = 4 };
  cudaChannelFormatDesc format = {32, 0, 0, 0, cudaChannelFormatKindFloat}, integers = {32, 0, 0, 0, cudaChannelFormatKindSigned};
  float texels[H][W], back[H * W], *out;
  int numbers[H][W], turned[W][H];
  cudaArray_t array, from, to;
  cudaTextureObject_t texture;
  cudaSurfaceObject_t surfaces[2];
  for (int y = 0; y < H; y++)
    for (int x = 0; x < W; x++) texels[y][x] = (float)(numbers[y][x] = 10 * y + x);
  MUST(cudaMallocArray(&array, &format, W, H, 0));
  MUST(cudaMemcpy2DToArray(array, 0, 0, texels, sizeof texels[0], sizeof texels[0], H, cudaMemcpyHostToDevice));
  cudaResourceDesc resource = {.resType = cudaResourceTypeArray, .res.array.array = array};
  MUST(cudaCreateTextureObject(&texture, &resource, &(cudaTextureDesc){.addressMode = {1, 1, 1}}, NULL));
  MUST(cudaMalloc((void **)&out, sizeof back));
  launch(&fetch, 1, W, H, (void *[]){&texture, &out});
  MUST(cudaMemcpy(back, out, sizeof back, cudaMemcpyDeviceToHost));
  printf("%s\n", memcmp(back, texels, sizeof back) ? "texels differ" : "texels");
  MUST(cudaMallocArray(&from, &integers, W, H, cudaArraySurfaceLoadStore));
  MUST(cudaMallocArray(&to, &integers, H, W, cudaArraySurfaceLoadStore));
  MUST(cudaMemcpy2DToArray(from, 0, 0, numbers, sizeof numbers[0], sizeof numbers[0], H, cudaMemcpyHostToDevice));
  resource.res.array.array = from;
  MUST(cudaCreateSurfaceObject(&surfaces[0], &resource));
  resource.res.array.array = to;
  MUST(cudaCreateSurfaceObject(&surfaces[1], &resource));
  launch(&transpose, 1, W, H, (void *[]){&surfaces[0], &surfaces[1]});
  MUST(cudaMemcpy2DFromArray(turned, sizeof turned[0], to, 0, 0, sizeof turned[0], W, cudaMemcpyDeviceToHost));
  for (int y = 0; y < H; y++)
    for (int x = 0; x < W; x++)
      if (turned[x][y] != numbers[y][x]) puts("surface differs");
  printf("%s\n", cudaGetErrorName(cudaMemcpy2DToArray(array, 4, 0, texels, sizeof texels[0], sizeof texels[0], H, 1)));
  printf("%s\n", cudaGetErrorName(cudaMemcpy2DToArray(array, 0, 1, texels, sizeof texels[0], sizeof texels[0], H, 1)));
  MUST(cudaDestroySurfaceObject(surfaces[0]));
  launch(&transpose, 1, W, H, (void *[]){&surfaces[0], &surfaces[1]});
  printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
}

/* Boxes within boxes, against a copy by hand. */
static void do_boxes(void) {
  enum { W = 12, H = 7, D = 5, BYTES = W * H * D };
  static unsigned char in[D][H][W], out[D][H][W], wanted[D][H][W];
  cudaChannelFormatDesc format = {16, 0, 0, 0, cudaChannelFormatKindUnsigned};
  cudaArray_t array;
  void *memory;
  srand(1);
  MUST(cudaMalloc3DArray(&array, &format, (cudaExtent){W / 2, H, D}, 0));
  MUST(cudaMalloc(&memory, BYTES));
  for (int round = 0; round < 200; round++) {
    for (int i = 0; i < BYTES; i++) (&in[0][0][0])[i] = (unsigned char)rand(), (&out[0][0][0])[i] = 0;
    size_t w = 1 + (size_t)rand() % (W / 2), h = 1 + (size_t)rand() % H, d = 1 + (size_t)rand() % D;
    cudaPos at = {(size_t)rand() % (W / 2 - w + 1), (size_t)rand() % (H - h + 1), (size_t)rand() % (D - d + 1)};
    cudaPos bytes = {2 * at.x, at.y, at.z};
    cudaMemcpy3DParms up = {.srcPtr = {in, W, W, H}, .srcPos = bytes, .dstArray = array, .dstPos = at, .extent = {w, h, d}, .kind = 1};
    cudaMemcpy3DParms across = {.srcArray = array, .srcPos = at, .dstPtr = {memory, W, W, H}, .dstPos = bytes, .extent = {w, h, d}, .kind = 3};
    MUST(cudaMemcpy(memory, out, BYTES, cudaMemcpyHostToDevice));
    MUST(cudaMemcpy3D(&up));
    MUST(cudaMemcpy3D(&across));
    MUST(cudaMemcpy(out, memory, BYTES, cudaMemcpyDeviceToHost));
    memset(wanted, 0, BYTES);
    for (size_t z = 0; z < d; z++)
      for (size_t y = 0; y < h; y++)
        memcpy(&wanted[at.z + z][at.y + y][2 * at.x], &in[at.z + z][at.y + y][2 * at.x], 2 * w);
    if (memcmp(wanted, out, BYTES)) printf("round %d differs\n", round);
    up.extent.depth = D - at.z + 1;
    if (cudaMemcpy3D(&up) != cudaErrorInvalidValue) puts("too deep, and not refused");
  }
  puts("boxes");
}

static void do_registered(void) {
  int *mine = calloc(4096, 1), *const place = mine + 5;
  MUST(cudaHostRegister(mine, 4096, 0));
  launch(&store, 1, 1, 1, (void *[]){(void *)&place});
  printf("%d %s\n", mine[5], cudaGetErrorName(cudaHostRegister(mine, 4096, 0)));
  MUST(cudaHostUnregister(mine));
  printf("%s\n", cudaGetErrorName(cudaHostUnregister(mine)));
  launch(&store, 1, 1, 1, (void *[]){(void *)&place});
  printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
}

static void *one_thread(void *bias) {
  cudaStream_t stream;
  MUST(cudaStreamCreate(&stream));
  for (int i = 0; i < 50; i++) add_vectors((float)(uintptr_t)bias);
  MUST(cudaStreamDestroy(stream));
  return NULL;
}

static void do_threads(void) {
  pthread_t threads[8];
  for (uintptr_t i = 0; i < 8; i++) pthread_create(&threads[i], NULL, one_thread, (void *)i);
  for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
  puts("right");
}

/* ---- streams ---- */

/* What the host and kernels share: a flag for each kernel that waits, and digits in the order in which they come. */
typedef struct board {
  int flag[8];
  long long digits;
  int copied, set;
} board;

static board *new_board(void) {
  board *made;
  MUST(cudaMallocHost((void **)&made, sizeof *made));
  memset(made, 0, sizeof *made);
  return made;
}

static void launch_in(cudaStream_t stream, const void *kernel, void **arguments) {
  MUST(cudaLaunchKernel(kernel, (dim3){1, 1, 1}, (dim3){1, 1, 1}, arguments, 0, stream));
}

static void await_flag(cudaStream_t stream, board *b, int number) {
  int *flag = &b->flag[number];
  launch_in(stream, &await, (void *[]){&flag});
}

static void append_digit(cudaStream_t stream, board *b, int digit) {
  long long *digits = &b->digits;
  launch_in(stream, &append, (void *[]){&digits, &digit});
}

static void raise_flag(board *b, int number) { __atomic_store_n(&b->flag[number], 1, __ATOMIC_SEQ_CST); }

static void append_here(void *data) {
  board *b = data;
  b->digits = 10 * b->digits + 7;
  printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
}

static void called_back(cudaStream_t stream, cudaError_t status, void *data) {
  board *b = data;
  b->digits = 10 * b->digits + 8;
  printf("called %s %s\n", stream ? "with its stream" : "", cudaGetErrorName(status));
}

/* All kinds of work in one stream, behind a kernel that waits for the host. */
static void do_order(void) {
  board *b = new_board();
  cudaStream_t stream;
  cudaEvent_t before, after;
  float milliseconds;
  int *number;
  MUST(cudaMalloc((void **)&number, sizeof *number));
  MUST(cudaStreamCreate(&stream));
  MUST(cudaEventCreate(&before));
  MUST(cudaEventCreate(&after));
  MUST(cudaEventRecord(before, stream));
  await_flag(stream, b, 0);
  append_digit(stream, b, 1);
  MUST(cudaMemsetAsync(number, 1, sizeof *number, stream));
  MUST(cudaMemcpyAsync(&b->copied, number, sizeof *number, cudaMemcpyDeviceToHost, stream));
  MUST(cudaLaunchHostFunc(stream, append_here, b));
  append_digit(stream, b, 2);
  MUST(cudaStreamAddCallback(stream, called_back, b, 0));
  MUST(cudaEventRecord(after, stream));
  append_digit(stream, b, 3);
  printf("%s %s %s\n", cudaGetErrorName(cudaStreamQuery(stream)), cudaGetErrorName(cudaEventQuery(after)),
         cudaGetErrorName(cudaEventElapsedTime(&milliseconds, before, after)));
  printf("%lld %d\n", b->digits, b->copied);
  raise_flag(b, 0);
  MUST(cudaEventSynchronize(after));
  MUST(cudaEventElapsedTime(&milliseconds, before, after));
  MUST(cudaStreamSynchronize(stream));
  printf("%lld %x %s\n", b->digits, b->copied, milliseconds > 0 ? "later" : "at once");
  MUST(cudaStreamQuery(stream));
  MUST(cudaEventDestroy(before));
  MUST(cudaStreamDestroy(stream));
}

/* Which streams wait for each other. */
static void do_default_stream(void) {
  board *b = new_board();
  cudaStream_t blocking, other, apart;
  MUST(cudaStreamCreate(&blocking));
  MUST(cudaStreamCreate(&other));
  MUST(cudaStreamCreateWithFlags(&apart, 1));
  await_flag(blocking, b, 0);
  append_digit(blocking, b, 1);
  append_digit(other, b, 2); /* beside it */
  MUST(cudaStreamSynchronize(other));
  printf("%lld\n", b->digits);
  append_digit(NULL, b, 3);
  append_digit(other, b, 4); /* behind the default stream's */
  append_digit(apart, b, 5); /* beside all */
  MUST(cudaStreamSynchronize(apart));
  printf("%lld %s %s\n", b->digits, cudaGetErrorName(cudaStreamQuery(NULL)), cudaGetErrorName(cudaStreamQuery(other)));
  raise_flag(b, 0);
  MUST(cudaStreamDestroy(blocking)); /* its work goes on */
  MUST(cudaStreamSynchronize(other));
  printf("%lld\n", b->digits);
  await_flag(apart, b, 1);
  append_digit(apart, b, 6);
  cudaEvent_t event;
  MUST(cudaEventCreate(&event));
  MUST(cudaEventRecord(event, apart));
  MUST(cudaStreamWaitEvent(other, event, 0));
  MUST(cudaEventDestroy(event));
  append_digit(other, b, 7);
  printf("%s\n", cudaGetErrorName(cudaStreamQuery(other)));
  raise_flag(b, 1);
  long long seen;
  MUST(cudaMemcpy(&seen, &b->digits, sizeof seen, cudaMemcpyDeviceToHost)); /* in the order of the default stream */
  printf("%lld\n", seen);
}

/* A fault drops what is behind it, and tells callbacks. */
static void do_late_fault(void) {
  board *b = new_board();
  int *nowhere = (int *)0x1000;
  cudaStream_t stream;
  MUST(cudaStreamCreate(&stream));
  await_flag(stream, b, 0);
  launch_in(stream, &store, (void *[]){&nowhere});
  append_digit(stream, b, 1);
  MUST(cudaStreamAddCallback(stream, called_back, b, 0));
  MUST(cudaGetLastError());
  raise_flag(b, 0);
  printf("%s\n", cudaGetErrorName(cudaStreamSynchronize(stream)));
  printf("%lld\n", b->digits);
  printf("%s\n", cudaGetErrorName(cudaStreamQuery(stream)));
  MUST(cudaDeviceReset());
  add_vectors(1);
}

/* A reset ends kernels that never would, and drops the rest. */
static void do_reset(void) {
  for (int i = 0; i < 20; i++) {
    board *b = new_board();
    cudaStream_t streams[3];
    for (int k = 0; k < 3; k++) {
      MUST(cudaStreamCreate(&streams[k]));
      await_flag(streams[k], b, 0);
      append_digit(streams[k], b, 1);
    }
    MUST(cudaDeviceReset());
    add_vectors((float)i);
  }
  puts("right");
}

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
  printf("%s\n", cudaGetErrorName(cudaEventQuery(forked)));
  MUST(cudaEventDestroy(forked));
  MUST(cudaEventDestroy(joined));
}

static void do_graph(void) {
  board *b = new_board();
  cudaStream_t stream, side;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  size_t count;
  int capturing;
  MUST(cudaStreamCreate(&stream));
  MUST(cudaStreamCreateWithFlags(&side, 1));
  MUST(cudaStreamBeginCapture(stream, 0));
  capture_chain(b, stream, side);
  MUST(cudaStreamIsCapturing(side, &capturing));
  printf("%s %d\n", cudaGetErrorName(cudaStreamSynchronize(stream)), capturing);
  printf("%s\n", cudaGetErrorName(cudaStreamEndCapture(side, &graph)));
  MUST(cudaStreamEndCapture(stream, &graph));
  MUST(cudaGraphGetNodes(graph, NULL, &count));
  printf("%lld %d %zu\n", b->digits, b->copied, count);
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
  MUST(cudaStreamBeginCapture(stream, 0));
  cudaEvent_t event;
  MUST(cudaEventCreate(&event));
  MUST(cudaEventRecord(event, stream));
  MUST(cudaStreamWaitEvent(side, event, 0));
  append_digit(side, b, 5);
  printf("%s\n", cudaGetErrorName(cudaStreamEndCapture(stream, &graph)));
  printf("%s\n", cudaGetErrorName(cudaStreamWaitEvent(stream, event, 0)));
  append_digit(side, b, 6);
  MUST(cudaDeviceSynchronize());
  printf("%lld\n", b->digits);
}

/* Many threads with many streams, and events between them: each stream's digits come in order. */
static void *many(void *unused) {
  board *boards[4];
  cudaStream_t streams[4];
  cudaEvent_t event;
  MUST(cudaEventCreate(&event));
  for (int k = 0; k < 4; k++) {
    boards[k] = new_board();
    MUST(cudaStreamCreateWithFlags(&streams[k], (unsigned)k & 1));
  }
  for (int round = 0; round < 40; round++) {
    for (int k = 0; k < 4; k++) {
      boards[k]->digits = 0;
      boards[k]->flag[0] = 0;
      await_flag(streams[k], boards[k], 0);
      for (int digit = 1; digit < 6; digit++) append_digit(streams[k], boards[k], digit);
      MUST(cudaEventRecord(event, streams[k]));
      MUST(cudaStreamWaitEvent(streams[(k + 1) % 4], event, 0));
    }
    for (int k = 0; k < 4; k++) raise_flag(boards[k], 0);
    for (int k = 0; k < 4; k++) MUST(cudaStreamSynchronize(streams[k]));
    for (int k = 0; k < 4; k++)
      if (boards[k]->digits != 12345) printf("%lld\n", boards[k]->digits);
  }
  for (int k = 0; k < 4; k++) MUST(cudaStreamDestroy(streams[k]));
  MUST(cudaEventDestroy(event));
  return unused;
}

static void do_many(void) {
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, many, NULL);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  puts("right");
}

static void *on_small_stack(void *nothing) {
  int n = 1, *nowhere = (int *)0x1000;
  launch(&hello, 1, 1, 1, (void *[]){&n});
  launch(&store, 1, 1, 1, (void *[]){&nowhere});
  printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  return nothing;
}

static void do_small_stack(void) {
  pthread_t thread;
  pthread_attr_t attributes;
  launch(&empty, 1, 32, 1, NULL);
  pthread_attr_init(&attributes);
  if (pthread_attr_setstacksize(&attributes, 64 << 10)) abort();
  pthread_create(&thread, &attributes, on_small_stack, NULL);
  pthread_join(thread, NULL);
}

static void do_fork(void) {
  add_vectors(2);
  fflush(stdout);
  if (!fork()) {
    void *memory;
    printf("child: %s\n", cudaGetErrorName(cudaMalloc(&memory, 16)));
    fflush(stdout);
    _exit(0);
  }
  wait(NULL);
  add_vectors(3);
  puts("parent: right");
}

static long resident(void) {
  long pages = 0, mine = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (fscanf(file, "%ld %ld", &pages, &mine) != 2) abort();
  fclose(file);
  return mine * 4;
}

/* Kilobytes that many launches leave. */
static void do_launches(void) {
  struct timespec from, to;
  for (int i = 0; i < 200; i++) launch(&empty, 1, 32, 1, NULL);
  long before = resident();
  clock_gettime(CLOCK_MONOTONIC, &from);
  for (int i = 0; i < number; i++) launch(&empty, 1, 32, 1, NULL);
  clock_gettime(CLOCK_MONOTONIC, &to);
  double seconds = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) * 1e-9;
  fprintf(stderr, "%.2f us a launch\n", seconds / number * 1e6);
  printf("%ld\n", resident() - before);
}

/* Kilobytes that many loads leave: a reset unloads, the next launch loads. */
static void do_loads(void) {
  long before = 0;
  for (int i = 0; i < number + 20; i++) {
    if (i == 20) before = resident();
    launch(&empty, 1, 32, 1, NULL);
    MUST(cudaDeviceReset());
  }
  printf("%ld\n", resident() - before);
}

static void *contents(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) abort();
  char *data = malloc(1 << 20);
  if (!fread(data, 1, 1 << 20, file)) abort();
  fclose(file);
  return data;
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*run)(void);
  } actions[] = {{"add", do_add},         {"symbols", do_symbols}, {"printf", do_printf},         {"fault", do_fault},
                 {"errors", do_errors},   {"arrays", do_arrays},   {"boxes", do_boxes},           {"registered", do_registered},
                 {"threads", do_threads}, {"small stack", do_small_stack}, {"order", do_order}, {"default stream", do_default_stream},
                 {"late fault", do_late_fault}, {"reset", do_reset}, {"graph", do_graph}, {"many", do_many}, {"fork", do_fork},       {"launches", do_launches},     {"loads", do_loads}};
  static const struct {
    char *host;
    const char *name;
  } kernels[] = {{&add, "add"},     {&scale, "scale"}, {&count, "count"}, {&empty, "empty"}, {&hello, "hello"},
                 {&store, "store"}, {&limited, "limited"}, {&await, "await"}, {&append, "append"}, {&fetch, "fetch"}, {&transpose, "transpose"}};
  if (argc < 3) return 2;
  px_fat_wrapper wrapper = {0x466243b1, 1, contents(argv[1]), NULL};
  void **handle = __cudaRegisterFatBinary(&wrapper);
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
    __cudaRegisterFunction(handle, kernels[i].host, kernels[i].host, kernels[i].name, -1, NULL, NULL, NULL, NULL, NULL);
  __cudaRegisterVar(handle, &counter, &counter, "counter", 0, 4, 0, 0);
  __cudaRegisterVar(handle, &factors, &factors, "factors", 0, 16, 1, 0);
  __cudaRegisterFatBinaryEnd(handle);
  number = argc > 3 ? atoi(argv[3]) : 0;
  for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
    if (!strcmp(actions[i].name, argv[2])) actions[i].run();
  __cudaUnregisterFatBinary(handle);
  return 0;
}
