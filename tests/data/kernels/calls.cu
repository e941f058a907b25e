// Functions that stay functions: recursion, virtual calls, tables of functions.
// nvcc -ptx -arch=sm_80 calls.cu
#include <cstdio>

#define DEVICE __device__ __noinline__

// ---- recursion

DEVICE unsigned fibonacci(unsigned n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

DEVICE unsigned ackermann(unsigned m, unsigned n) {
  if (m == 0) return n + 1;
  return n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

DEVICE bool is_odd(unsigned n);
DEVICE bool is_even(unsigned n) { return n == 0 || is_odd(n - 1); }
DEVICE bool is_odd(unsigned n) { return n != 0 && is_even(n - 1); }

extern "C" __global__ void recurse(unsigned *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[i] = fibonacci(i % 13);
  out[n + i] = ackermann(2, i % 7);
  out[2 * n + i] = is_even(i % 32);
}

DEVICE int queens(int n, unsigned columns, unsigned left, unsigned right) {
  unsigned all = (1u << n) - 1;
  if (columns == all) return 1;
  int found = 0;
  for (unsigned free = all & ~(columns | left | right); free;) {
    unsigned place = free & -free;
    free ^= place;
    found += queens(n, columns | place, (left | place) << 1, (right | place) >> 1);
  }
  return found;
}

extern "C" __global__ void n_queens(int *out) { out[threadIdx.x] = queens(threadIdx.x % 7 + 1, 0, 0, 0); }

DEVICE void quick_sort(int *first, int *last) {
  if (last - first < 2) return;
  int pivot = first[(last - first) / 2], *low = first, *high = last - 1;
  while (low <= high) {
    while (*low < pivot) low++;
    while (*high > pivot) high--;
    if (low <= high) {
      int kept = *low;
      *low++ = *high;
      *high-- = kept;
    }
  }
  quick_sort(first, high + 1);
  quick_sort(low, last);
}

extern "C" __global__ void sort_rows(int *rows, int length) {
  int *row = rows + (blockIdx.x * blockDim.x + threadIdx.x) * length;
  quick_sort(row, row + length);
}

// Each frame has an array that the next one reads through a pointer.
struct Chain {
  const Chain *up;
  int values[5];
};

DEVICE int walk(const Chain *chain, int depth) {
  Chain here;
  here.up = chain;
  for (int i = 0; i < 5; i++) here.values[i] = depth * 10 + i;
  if (depth > 0) return walk(&here, depth - 1);
  int sum = 0;
  for (const Chain *at = &here; at; at = at->up) sum += at->values[(sum & 3) + 1];
  return sum;
}

extern "C" __global__ void frames(int *out) { out[threadIdx.x] = walk(nullptr, threadIdx.x % 40); }

// Structs by value, whose members are smaller and larger than a word.
struct Mixed {
  char a, b;
  short c;
  double d;
  int e[3];
  char name[3];
};

DEVICE Mixed shift(Mixed m, int depth) {
  if (depth == 0) return m;
  Mixed next = m;
  next.a = m.b + 1, next.b = m.a - 1;
  next.c += depth, next.d *= 0.5;
  next.e[0] = m.e[2], next.e[1] = m.e[0], next.e[2] = m.e[1] + 1;
  next.name[depth % 3] = 'a' + depth;
  return shift(next, depth - 1);
}

extern "C" __global__ void structs(Mixed *out, Mixed start) { out[threadIdx.x] = shift(start, threadIdx.x % 9); }

// ---- what a warp and a CTA share, inside recursive functions

DEVICE int gather(int value, int depth) {
  __syncthreads();
  if (depth == 0) return value;
  value += __shfl_xor_sync(0xffffffff, value, depth);
  __syncthreads();
  return gather(value + __popc(__ballot_sync(0xffffffff, value & 1)), depth - 1);
}

extern "C" __global__ void collective(int *out) { out[threadIdx.x] = gather(threadIdx.x, 4); }

DEVICE int leave(int depth, int *seen) {
  if (depth == 0) asm volatile("exit;");
  atomicAdd(&seen[depth], 1);
  return depth > 20 ? depth : leave(depth - 1, seen) + 1;
}

// Threads with i % 32 <= 20 leave inside; the others meet at the barrier.
extern "C" __global__ void partings(int *out, int *seen) {
  int value = leave(threadIdx.x % 32, seen);
  __syncthreads();
  out[threadIdx.x] = value + __popc(__activemask());
}

// ---- virtual calls

struct Shape {
  __device__ virtual ~Shape() {}
  __device__ virtual float area() const = 0;
  __device__ virtual float scaled(float by) const { return by * area(); }
};

struct Square : Shape {
  float side;
  __device__ Square(float side) : side(side) {}
  __device__ float area() const override { return side * side; }
};

struct Disc : Shape {
  float radius;
  __device__ Disc(float radius) : radius(radius) {}
  __device__ float area() const override { return 3 * radius * radius; }
  __device__ float scaled(float by) const override { return by * by * area(); }
};

struct Pair : Shape {
  const Shape *first, *second;
  __device__ Pair(const Shape *first, const Shape *second) : first(first), second(second) {}
  __device__ float area() const override { return first->area() + second->area(); }
};

extern "C" __global__ void virtual_calls(float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  Square square(i);
  Disc disc(i + 1);
  Pair pair(&square, &disc);
  Pair nested(&pair, &square);
  const Shape *shapes[] = {&square, &disc, &pair, &nested};
  const Shape *shape = shapes[i * 7 % 4];
  out[i] = shape->area();
  out[n + i] = shape->scaled(2);
}

// ---- function pointers

typedef int (*Binary)(int, int);
DEVICE int plus(int a, int b) { return a + b; }
DEVICE int minus(int a, int b) { return a - b; }
DEVICE int times(int a, int b) { return a * b; }
DEVICE int power(int a, int b) { return b == 0 ? 1 : times(a, power(a, b - 1)); }
__device__ Binary table[] = {plus, minus, times, power};
__constant__ Binary fixed[] = {power, plus};

extern "C" __global__ void pointers(unsigned long long *out) {
  out[threadIdx.x] = (unsigned long long)table[threadIdx.x];
}

extern "C" __global__ void apply(int *out, Binary same, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[i] = table[i & 3](i, 3);
  out[n + i] = fixed[i & 1](i, 2);
  out[2 * n + i] = same(i, i);
}

DEVICE int fold(Binary f, const int *values, int n) { return n == 1 ? values[0] : f(fold(f, values, n - 1), values[n - 1]); }

extern "C" __global__ void folds(int *out, const int *values) {
  int i = threadIdx.x;
  out[i] = fold(table[i % 3], values, 1 + i % 9);
}

// ---- surfaces, atomics and output, inside recursive functions

DEVICE int tree(int depth, int node, int *visits, cudaSurfaceObject_t leaves) {
  if (depth == 0) {
    int value;
    surf2Dread(&value, leaves, (node & 7) * 4, threadIdx.x & 3);
    surf2Dwrite(value + 1, leaves, (node & 7) * 4, (threadIdx.x & 3) + 4);
    atomicAdd(&visits[node & 7], 1);
    return value;
  }
  int left = tree(depth - 1, node * 2, visits, leaves);
  int right = node & (1 << (threadIdx.x & 3)) ? tree(depth - 1, node * 2 + 1, visits, leaves) : 1;
  if (depth == 3 && threadIdx.x == 5) printf("node %d: %d %d\n", node, left, right);
  return left + right * 3;
}

extern "C" __global__ void trees(int *out, int *visits, cudaSurfaceObject_t leaves) {
  out[threadIdx.x] = tree(3, threadIdx.x + 1, visits, leaves);
}
