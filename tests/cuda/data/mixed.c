/* mixed.c: both APIs in one process: memory, kernels, streams, contexts and errors of one are known to the other. */
#include <dlfcn.h>
#include "driver_abi.h"
#include "program.h"

cudaError_t cudaMemset(void *memory, int value, size_t size);
cudaError_t cudaSetDevice(int number);
cudaError_t cudaGetFuncBySymbol(CUfunction *out, const void *symbol);
cudaError_t cudaGetDriverEntryPoint(const char *name, void **out, unsigned long long flags, int *status);

enum { MANY = 64, OTHER = VERSION == 12 ? 13 : 12 };

/* A function of a library that is opened for it alone. */
static void *function_of(const char *library, const char *name) {
  void *opened = dlopen(library, RTLD_NOW | RTLD_LOCAL), *found = opened ? dlsym(opened, name) : NULL;
  if (found) return found;
  printf("%s: %s\n", name, dlerror());
  exit(1);
}

/* Call a function of the driver API; arguments have the types of its parameters. */
#define DRIVER(name, ...) ((CUresult (*)())function_of("libcuda.so.1", #name))(__VA_ARGS__)

static void must_be(CUresult error, const char *what) {
  if (!error) return;
  printf("%s: %d\n", what, error);
  exit(1);
}
#define MUST_CU(name, ...) must_be(DRIVER(name, __VA_ARGS__), #name)

static CUcontext current(void) {
  CUcontext found;
  MUST_CU(cuCtxGetCurrent, &found);
  return found;
}

static void do_contexts(void) {
  CUcontext primary, own;
  void *memory;
  printf("%d", DRIVER(cuCtxGetCurrent, &own)); /* before anything else */
  MUST(cudaFree(NULL));
  MUST_CU(cuDevicePrimaryCtxRetain, &primary, 0);
  printf(" %d", current() == primary);
  MUST_CU(cuCtxCreate_v2, &own, 0, 0);
  MUST(cudaMalloc(&memory, 4));
  printf(" %d", current() == own);
  MUST(cudaSetDevice(0));
  printf(" %d", current() == primary);
  MUST_CU(cuCtxSetCurrent, own);
  MUST_CU(cuCtxDestroy_v2, own);
  printf(" %d", current() == primary);
  MUST_CU(cuDevicePrimaryCtxRelease_v2, 0);
  MUST(cudaMemset(memory, 0, 4)); /* the runtime still holds it */
  MUST(cudaDeviceReset());
  printf(" %d", DRIVER(cuMemFree_v2, (CUdeviceptr)(uintptr_t)memory));
  MUST(cudaMalloc(&memory, 4));
  printf(" %d\n", current() == primary);
}

static void check_sum(const float *sum) {
  float out[MANY];
  MUST_CU(cuMemcpyDtoH_v2, (void *)out, (CUdeviceptr)(uintptr_t)sum, sizeof out);
  for (int i = 0; i < MANY; i++)
    if (out[i] != 3) exit(1);
}

static void do_memory(void) {
  float *a, *sum;
  CUdeviceptr b;
  CUfunction function;
  int n = MANY;
  MUST(cudaMalloc((void **)&a, MANY * sizeof *a));
  MUST(cudaMalloc((void **)&sum, MANY * sizeof *sum));
  MUST_CU(cuMemAlloc_v2, &b, MANY * sizeof *a);
  MUST_CU(cuMemsetD32_v2, (CUdeviceptr)(uintptr_t)a, 0x3f800000u, (size_t)MANY);
  MUST_CU(cuMemsetD32_v2, b, 0x40000000u, (size_t)MANY);
  void *arguments[] = {&a, &b, &sum, &n};
  launch(&add, 1, MANY, 1, arguments);
  check_sum(sum);
  MUST(cudaMemset(sum, 0, MANY * sizeof *sum));
  MUST(cudaGetFuncBySymbol(&function, &add));
  MUST_CU(cuLaunchKernel, function, 1u, 1u, 1u, (unsigned)MANY, 1u, 1u, 0u, (CUstream)NULL, arguments, (void **)NULL);
  check_sum(sum);
  MUST_CU(cuMemFree_v2, (CUdeviceptr)(uintptr_t)a);
  MUST(cudaFree((void *)(uintptr_t)b));
  puts("right");
}

static void do_shared_streams(void) {
  board *b = new_board();
  cudaStream_t ours, theirs;
  cudaEvent_t event;
  CUfunction function;
  long long *digits = &b->digits;
  int digit = 2;
  MUST(cudaStreamCreate(&ours));
  MUST_CU(cuStreamCreate, &theirs, 1u);
  MUST_CU(cuEventCreate, &event, 0u);
  MUST(cudaGetFuncBySymbol(&function, &append));
  await_flag(ours, b, 0);
  append_digit(ours, b, 1);
  MUST_CU(cuEventRecord, event, ours);
  MUST(cudaStreamWaitEvent(theirs, event, 0));
  void *arguments[] = {&digits, &digit};
  MUST_CU(cuLaunchKernel, function, 1u, 1u, 1u, 1u, 1u, 1u, 0u, theirs, arguments, (void **)NULL);
  printf("%d %lld", DRIVER(cuStreamQuery, theirs), b->digits);
  raise_flag(b, 0);
  MUST(cudaStreamSynchronize(theirs));
  printf(" %lld", b->digits);
  MUST(cudaEventDestroy(event));
  MUST_CU(cuStreamDestroy_v2, ours);
  printf(" %d\n", cudaStreamQuery(ours));
}

static void do_shared_errors(void) {
  int *nowhere = (int *)0x1000, status;
  CUfunction function;
  void *memory, *entry;
  MUST(cudaGetFuncBySymbol(&function, &store));
  MUST_CU(cuLaunchKernel, function, 1u, 1u, 1u, 1u, 1u, 1u, 0u, (CUstream)NULL, (void *[]){&nowhere}, (void **)NULL);
  SAY(cudaDeviceSynchronize());
  printf("%d\n", DRIVER(cuCtxSynchronize));
  MUST(cudaDeviceReset());
  add_vectors(1);
  MUST(cudaGetDriverEntryPoint("cuCtxSynchronize", &entry, 0, &status));
  printf("%d %d", status, ((CUresult (*)(void))entry)());
  MUST(cudaGetDriverEntryPoint("cuNothing", &entry, 0, &status));
  printf(" %d %d\n", status, entry == NULL);
  char library[32];
  snprintf(library, sizeof library, "libcudart.so.%d", OTHER); /* and another version of the runtime */
  must(((cudaError_t (*)(void **, size_t))function_of(library, "cudaMalloc"))(&memory, 4), library);
  MUST(cudaFree(memory));
}

const action mixed_actions[] = {{"contexts", do_contexts},
                                {"mixed memory", do_memory},
                                {"mixed streams", do_shared_streams},
                                {"mixed errors", do_shared_errors},
                                {NULL, NULL}};
