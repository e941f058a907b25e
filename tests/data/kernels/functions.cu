// Device functions that stay calls, local arrays and module variables; tests/kernels/test_kernels_functions.py has the oracles.
// nvcc -ptx -arch=compute_75 functions.cu
struct Vector { float x, y, z; };
struct Particle { Vector position; int kind; double weight; char name[5]; };

__device__ __noinline__ float dot(Vector a, Vector b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
__device__ __noinline__ Vector scaled(Vector v, float by) { Vector r = {v.x * by, v.y * by, v.z * by}; return r; }
__device__ __noinline__ Particle move(Particle p, Vector by, int times) {
  for (int i = 0; i < times; i++) {
    Vector step = scaled(by, (float)(i + 1));
    p.position.x += step.x; p.position.y += step.y; p.position.z += step.z;
    p.name[i % 5]++;
  }
  p.weight += dot(p.position, by);
  p.kind = -p.kind;
  return p;
}
extern "C" __global__ void particles(Particle* out, Particle start, Vector by, const int* times) {
  int t = threadIdx.x;
  start.kind += t;
  out[t] = move(start, by, times[t]);
}

__device__ __noinline__ void put(int* array, int at, int value) { array[at & 15] += value; }
extern "C" __global__ void scratch(const int* keys, int* out, int n) {
  int bins[16] = {0}, t = blockIdx.x * blockDim.x + threadIdx.x;
  for (int i = 0; i < n; i++) put(bins, keys[i] + t, i + 1);
  int best = 0;
  for (int i = 1; i < 16; i++) if (bins[i] > bins[best]) best = i;
  out[2 * t] = best; out[2 * t + 1] = bins[(best + t) & 15];
}

__constant__ short primes[8] = {2, 3, 5, 7, 11, 13, 17, 19};
__device__ int counters[4] = {1, 2, 3, 4};
__device__ int* chosen = &counters[2];
__device__ int** indirect = &chosen;
__constant__ const short* middle = &primes[4];
__device__ const char* words[2] = {"left", "right"};
extern "C" __global__ void variables(int* out) {
  int t = threadIdx.x;
  out[4 * t] = **indirect + chosen[-1]; out[4 * t + 1] = middle[t & 3] - middle[-(t & 3)];
  out[4 * t + 2] = words[t & 1][t & 3]; out[4 * t + 3] = primes[t & 7];
  atomicAdd(&counters[t & 1], 10);
}
