// special_regs
extern "C" __global__ void sr(unsigned* o, unsigned long long* q) {
  unsigned v; int t = threadIdx.x; 
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(v)); o[t] = v; asm volatile("mov.u32 %0, %%warpid;" : "=r"(v)); o[32 + t] = v; asm volatile("mov.u32 %0, %%lanemask_lt;" : "=r"(v)); o[64 + t] = v; asm volatile("mov.u32 %0, %%smid;" : "=r"(v)); o[96 + t] = v; asm volatile("mov.u32 %0, %%nsmid;" : "=r"(v)); o[128 + t] = v; asm volatile("mov.u32 %0, %%dynamic_smem_size;" : "=r"(v)); o[160 + t] = v; asm volatile("mov.u32 %0, %%total_smem_size;" : "=r"(v)); o[192 + t] = v;
  q[0] = clock64(); q[1] = clock(); unsigned long long g; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(g)); q[2] = g; __nanosleep(10); q[3] = __isGlobal(o) + 2 * __isShared(o); q[4] = gridDim.z + blockIdx.y + threadIdx.z + blockDim.y; asm volatile("mov.u64 %0, %%gridid;" : "=l"(g)); q[5] = g;
}
