// What launching costs a CUDA program: `add` is NVIDIA's vectorAdd in short, `runtime` and `driver KERNEL.ptx` launch and wait,
// `growth KERNEL.ptx` launches and loads many times. Times are microseconds, the least of many rounds; sizes are KiB.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <cuda.h>
#include <cuda_runtime.h>
#include <unistd.h>
#include <vector>

const int ROUNDS = 200, BATCH = 50, ELEMENTS = 50000, LAUNCHES = 10000, LOADS = 1000;

__global__ void sum(const float *a, const float *b, float *c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

__global__ void nothing() {}

static void must(bool good, const char *what) {
  if (good) return;
  printf("failed: %s\n", what);
  exit(1);
}
#define MUST(call) must((call) == 0, #call)

static double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e6 + t.tv_nsec * 1e-3;
}

static long resident() { // pages that the process has in memory
  long all = 0, here = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  must(file && fscanf(file, "%ld %ld", &all, &here) == 2, "/proc/self/statm");
  fclose(file);
  return here * (sysconf(_SC_PAGESIZE) / 1024);
}

template <typename Call> static double least(Call call) {
  double best = 1e30;
  for (int round = 0; round < ROUNDS; round++) {
    const double start = now();
    for (int i = 0; i < BATCH; i++) call();
    const double each = (now() - start) / BATCH;
    if (each < best) best = each;
  }
  return best;
}

static void add() {
  std::vector<float> a(ELEMENTS), b(ELEMENTS), c(ELEMENTS);
  for (int i = 0; i < ELEMENTS; i++) a[i] = i % 1000 * 0.25f, b[i] = i % 77;
  const size_t size = ELEMENTS * sizeof(float);
  float *on[3];
  for (float *&memory : on) MUST(cudaMalloc((void **)&memory, size));
  MUST(cudaMemcpy(on[0], a.data(), size, cudaMemcpyHostToDevice));
  MUST(cudaMemcpy(on[1], b.data(), size, cudaMemcpyHostToDevice));
  sum<<<(ELEMENTS + 255) / 256, 256>>>(on[0], on[1], on[2], ELEMENTS);
  MUST(cudaGetLastError());
  MUST(cudaMemcpy(c.data(), on[2], size, cudaMemcpyDeviceToHost));
  for (int i = 0; i < ELEMENTS; i++) must(c[i] == a[i] + b[i], "a sum");
  for (float *memory : on) MUST(cudaFree(memory));
  puts("right");
}

static void runtime() {
  auto launch = [] { nothing<<<1, 32>>>(), MUST(cudaDeviceSynchronize()); };
  launch();
  printf("%.2f\n", least(launch));
}

static CUmodule loaded(const char *text) {
  CUmodule module;
  MUST(cuModuleLoadData(&module, text));
  return module;
}

static CUfunction found(CUmodule module) {
  CUfunction function;
  MUST(cuModuleGetFunction(&function, module, "nothing"));
  return function;
}

static void launched(CUfunction function) {
  MUST(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr));
  MUST(cuCtxSynchronize());
}

static void driver(const char *text) {
  const CUfunction function = found(loaded(text));
  launched(function);
  printf("%.2f\n", least([=] { launched(function); }));
}

static void load_once(const char *text) {
  const CUmodule module = loaded(text);
  launched(found(module));
  MUST(cuModuleUnload(module));
}

static void growth(const char *text) {
  const CUfunction function = found(loaded(text));
  for (int i = 0; i < 100; i++) launched(function), load_once(text);
  const long before = resident();
  for (int i = 0; i < LAUNCHES; i++) launched(function);
  const long between = resident();
  for (int i = 0; i < LOADS; i++) load_once(text);
  printf("%ld %ld\n", between - before, resident() - between);
}

int main(int count, char **arguments) {
  must(count > 1, "an argument: add, runtime, driver or growth");
  if (!strcmp(arguments[1], "add")) return add(), 0;
  if (!strcmp(arguments[1], "runtime")) return runtime(), 0;
  must(count > 2, "the file with the kernel");
  std::vector<char> text(1 << 16);
  FILE *file = fopen(arguments[2], "r");
  must(file && fread(text.data(), 1, text.size() - 1, file), arguments[2]);
  CUdevice device;
  CUcontext context;
  MUST(cuInit(0));
  MUST(cuDeviceGet(&device, 0));
  MUST(cuDevicePrimaryCtxRetain(&context, device));
  MUST(cuCtxSetCurrent(context));
  if (!strcmp(arguments[1], "driver")) return driver(text.data()), 0;
  return growth(text.data()), 0;
}
