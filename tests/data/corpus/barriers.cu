// barriers
extern "C" __global__ void bars(int* o, int th) {
  int t = threadIdx.x, n = blockDim.x, k = 0; o[n*k++ + t] = __syncthreads_count(t < th); o[n*k++ + t] = __syncthreads_and(t < th); o[n*k++ + t] = __syncthreads_or(t < th);
  __shared__ int s[256]; s[t & 255] = t; if (t < 64) asm volatile("bar.sync 1, 64;" ::: "memory"); else asm volatile("bar.sync 2, %0;" :: "r"(n - 64) : "memory");
  o[n*k++ + t] = s[(t ^ 1) & 255]; __threadfence(); __threadfence_block(); __threadfence_system(); asm volatile("barrier.sync 3;" ::: "memory"); if (t < 32) asm volatile("bar.arrive 4, 64;"); else if (t < 64) asm volatile("bar.sync 4, 64;");
}
