// Control flow as compilers lay it out; tests/kernels/test_kernels_divergence.py says in Python what each kernel computes.
// nvcc -ptx -arch=compute_75 control_flow.cu
typedef unsigned int u32;

extern "C" __global__ void nested(u32* out, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  u32 h = t;
  for (int i = 0; i < n; i++) {
    if ((i + t) % 5 == 3) continue;
    for (int j = t & 3; j < 12; j++) {
      if (((h >> 3) & 7) == 5) { h += 17; break; }
      if (j & 1) { h ^= j * 2654435761u; continue; }
      h = h * 31 + i;
    }
    if (h % 61 == 7) break;
    h += 3;
  }
  out[t] = h;
}

extern "C" __global__ void early_return(u32* out, const int* limit, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  u32 sum = 0;
  for (int i = 0;; i++) {
    sum += i * (t + 1);
    out[t] = sum;
    if (i == limit[t]) return;
    if (sum > 5000) break;
  }
  out[t] = sum | 0x80000000u;
}

extern "C" __global__ void collatz(const u32* seeds, u32* steps, u32* peak, u32* last) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  u32 v = seeds[t], top = v, before = 0, count = 0;
  while (v > 1) {
    before = v;
    v = v & 1 ? 3 * v + 1 : v / 2;
    if (v > top) top = v;
    count++;
  }
  steps[t] = count; peak[t] = top; last[t] = before;
}

extern "C" __global__ void pending(u32* out, const u32* data, int uniform) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  u32 v = data[t], h = 1;
  if (v & 1) {
    if (uniform > 3) { for (int i = 0; i < uniform; i++) h = h * 5 + (v & 2 ? i : 1); }
    else h = 100;
    if (v & 4) { h += 7; if (uniform & 1) h *= 3; else h ^= v; }
  } else if (uniform == 5) {
    h = v;
    do { h = h / 2 + uniform; } while (h > 40);
  }
  out[t] = h;
}

extern "C" __global__ void two_exits(u32* out, const u32* data, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  u32 v = data[t], i = 0, tag;
  while (true) {
    v = v * 1664525u + 1013904223u;
    if (v % 7 == 0) { tag = v; break; }
    i++;
    if ((int)i >= n) { tag = 0xffffffffu; break; }
  }
  out[2 * t] = i; out[2 * t + 1] = tag;
}

extern "C" __global__ void rounds(u32* out, const u32* data, int count) {
  __shared__ u32 s[1024];
  int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  int n = blockDim.x * blockDim.y * blockDim.z, b = blockIdx.x;
  s[t] = data[b * n + t];
  __syncthreads();
  for (int i = 0; i < count; i++) {
    u32 v = s[(t + i + 1) % n];
    if (v & 1) for (u32 k = 0; k < (v & 7); k++) v = v * 3 + k;
    __syncthreads();
    if (t % 3 != i % 3) s[t] ^= v;
    __syncthreads();
  }
  out[b * n + t] = s[t];
}

struct Coordinates { u32 thread[3], block[3], threads[3], blocks[3]; };
extern "C" __global__ void coordinates(Coordinates* out) {
  u32 t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  u32 b = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  Coordinates c = {{threadIdx.x, threadIdx.y, threadIdx.z}, {blockIdx.x, blockIdx.y, blockIdx.z},
                   {blockDim.x, blockDim.y, blockDim.z}, {gridDim.x, gridDim.y, gridDim.z}};
  out[b * (blockDim.x * blockDim.y * blockDim.z) + t] = c;
}
