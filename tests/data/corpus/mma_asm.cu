// mma_asm
#include <stdint.h>
#include <cuda_pipeline.h>
extern "C" __global__ void mma16816(const uint32_t* a, const uint32_t* b, float* d) {
  int l = threadIdx.x; float c0 = 0, c1 = 0, c2 = 0, c3 = 0; uint32_t a0 = a[l*4], a1 = a[l*4+1], a2 = a[l*4+2], a3 = a[l*4+3], b0 = b[l*2], b1 = b[l*2+1];
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  d[l*4] = c0; d[l*4+1] = c1; d[l*4+2] = c2; d[l*4+3] = c3;
}
extern "C" __global__ void ldm(const uint4* g, uint32_t* o) {
  __shared__ uint4 s[32]; int l = threadIdx.x; __pipeline_memcpy_async(&s[l], &g[l], 16); __pipeline_commit(); __pipeline_wait_prior(0); __syncthreads();
  uint32_t r0, r1, r2, r3, p = (uint32_t)__cvta_generic_to_shared(&s[l]);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(p)); o[l*4] = r0; o[l*4+1] = r1; o[l*4+2] = r2; o[l*4+3] = r3;
}
