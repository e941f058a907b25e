/* A program as nvcc makes it, in C: registers a fat binary and launches its kernels. host IMAGE WHAT [NUMBER] */
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "program.h"

enum { N = 1000 };

char add, scale, count, empty, hello, store, limited, await, append, tally, count_down, choose, fetch, transpose, apply, absent, counter, factors;
static int number;

void must(cudaError_t error, const char *what) {
  if (!error) return;
  printf("%s: %s (%s)\n", what, cudaGetErrorName(error), cudaGetErrorString(error));
  exit(1);
}

void launch(const void *kernel, unsigned grid, unsigned x, unsigned y, void **arguments) {
  MUST(cudaLaunchKernel(kernel, (dim3){grid, 1, 1}, (dim3){x, y, 1}, arguments, 0, NULL));
}

void add_vectors(float bias) {
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

/* What lies around an allocation can be touched, but not what lies far away. */
static void do_slack(void) {
  enum { SLACK = 64 << 10, SIZE = 512 };
  static const long offsets[] = {SIZE, SLACK, -SLACK, 16 << 20};
  for (int i = 0; i < 4; i++) {
    char *memory;
    MUST(cudaMalloc((void **)&memory, SIZE));
    char *place = memory + offsets[i];
    launch(&store, 1, 1, 1, (void *[]){&place});
    printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
    MUST(cudaDeviceReset());
  }
}

static void do_errors(void) {
  char bytes[64] = {0};
  void *memory;
  MUST(cudaMalloc(&memory, 64));
  SAY(cudaImportExternalMemory(&memory, bytes));
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
  cudaChannelFormatDesc format = {32, 0, 0, 0, cudaChannelFormatKindFloat},
                        integers = {32, 0, 0, 0, cudaChannelFormatKindSigned};
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
    cudaMemcpy3DParms up = {
      .srcPtr = {in, W, W, H}, .srcPos = bytes, .dstArray = array, .dstPos = at, .extent = {w, h, d}, .kind = 1};
    cudaMemcpy3DParms across = {
      .srcArray = array, .srcPos = at, .dstPtr = {memory, W, W, H}, .dstPos = bytes, .extent = {w, h, d}, .kind = 3};
    MUST(cudaMemcpy(memory, out, BYTES, cudaMemcpyHostToDevice));
    MUST(cudaMemcpy3D(&up));
    MUST(cudaMemcpy3D(&across));
    MUST(cudaMemcpy(out, memory, BYTES, cudaMemcpyDeviceToHost));
    memset(wanted, 0, BYTES);
    for (size_t z = 0; z < d; z++)
      for (size_t y = 0; y < h; y++) memcpy(&wanted[at.z + z][at.y + y][2 * at.x], &in[at.z + z][at.y + y][2 * at.x], 2 * w);
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

static uint8_t *contents(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) abort();
  uint8_t *data = calloc(1, 1 << 20);
  if (!fread(data, 1, 1 << 20, file)) abort();
  fclose(file);
  return data;
}

/* A kernel that calls a function of another file. */
static void do_apply(void) {
  int value = 21, *on_device;
  MUST(cudaMalloc((void **)&on_device, sizeof value));
  MUST(cudaMemcpy(on_device, &value, sizeof value, cudaMemcpyHostToDevice));
  launch(&apply, 1, 1, 1, (void *[]){&on_device});
  MUST(cudaMemcpy(&value, on_device, sizeof value, cudaMemcpyDeviceToHost));
  printf("%d\n", value);
}

/* The wrapper of a file's fat binaries: of one, or of several, as nvcc registers those of a program that it has linked. */
static px_fat_wrapper wrapper_of(const uint8_t *file) {
  enum { MOST = 8, MAGIC_BYTES = 4 };
  static const void *images[MOST + 1];
  const uint8_t *first = file;
  size_t count = 0;
  while (count < MOST && !memcmp(file, "\x50\xed\x55\xba", MAGIC_BYTES)) {
    uint16_t head;
    uint64_t size;
    memcpy(&head, file + 6, sizeof head);
    memcpy(&size, file + 8, sizeof size);
    images[count++] = file;
    file += head + size;
  }
  if (count < 2) return (px_fat_wrapper){PX_FAT_WRAPPER, 1, first, NULL};
  return (px_fat_wrapper){PX_FAT_WRAPPER, PX_FAT_LINKED, images[0], images};
}

static const action actions[] = {
  {"add", do_add},     {"apply", do_apply},           {"symbols", do_symbols}, {"printf", do_printf},
  {"fault", do_fault}, {"slack", do_slack},           {"errors", do_errors},   {"arrays", do_arrays},
  {"boxes", do_boxes}, {"registered", do_registered}, {"threads", do_threads}, {"small stack", do_small_stack},
  {"fork", do_fork},   {"launches", do_launches},     {"loads", do_loads},     {NULL, NULL}};

static void perform(const action *all, const char *name) {
  for (; all->name; all++)
    if (!strcmp(all->name, name)) all->run();
}

int main(int argc, char **argv) {
  static const struct {
    char *host;
    const char *name;
  } kernels[] = {{&add, "add"},       {&scale, "scale"}, {&count, "count"},         {&empty, "empty"},
                 {&hello, "hello"},   {&store, "store"}, {&limited, "limited"},     {&await, "await"},
                 {&append, "append"}, {&tally, "tally"}, {&count_down, "count_down"}, {&choose, "choose"}, {&fetch, "fetch"}, {&transpose, "transpose"}, {&apply, "apply"}};
  if (argc < 3) return 2;
  px_fat_wrapper wrapper = wrapper_of(contents(argv[1]));
  void **handle = __cudaRegisterFatBinary(&wrapper);
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
    __cudaRegisterFunction(handle, kernels[i].host, kernels[i].host, kernels[i].name, -1, NULL, NULL, NULL, NULL, NULL);
  __cudaRegisterVar(handle, &counter, &counter, "counter", 0, 4, 0, 0);
  __cudaRegisterVar(handle, &factors, &factors, "factors", 0, 16, 1, 0);
  __cudaRegisterFatBinaryEnd(handle);
  number = argc > 3 ? atoi(argv[3]) : 0;
  perform(actions, argv[2]);
  perform(stream_actions, argv[2]);
  perform(graph_actions, argv[2]);
  perform(handle_actions, argv[2]);
  perform(mixed_actions, argv[2]);
  perform(ipc_actions, argv[2]);
  perform(choice_actions, argv[2]);
  __cudaUnregisterFatBinary(handle);
  return 0;
}
