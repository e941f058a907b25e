// atomics_global
#include <cuda_runtime.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
extern "C" __global__ void atom_i32(int* p, int* o, int v) { int i = threadIdx.x; (void)i;
  o[0*blockDim.x+i] = atomicAdd(&p[0], (int)(v+i));
  o[1*blockDim.x+i] = atomicSub(&p[1], (int)(v+i));
  o[2*blockDim.x+i] = atomicExch(&p[2], (int)(v+i));
  o[3*blockDim.x+i] = atomicMin(&p[3], (int)(v+i));
  o[4*blockDim.x+i] = atomicMax(&p[4], (int)(v+i));
  o[5*blockDim.x+i] = atomicAnd(&p[5], (int)(v+i));
  o[6*blockDim.x+i] = atomicOr(&p[6], (int)(v+i));
  o[7*blockDim.x+i] = atomicXor(&p[7], (int)(v+i));
  o[8*blockDim.x+i] = atomicCAS(&p[8], v, (int)(v+i));
}
extern "C" __global__ void atom_u32(unsigned* p, unsigned* o, unsigned v) { int i = threadIdx.x; (void)i;
  o[0*blockDim.x+i] = atomicAdd(&p[0], (unsigned)(v+i));
  o[1*blockDim.x+i] = atomicSub(&p[1], (unsigned)(v+i));
  o[2*blockDim.x+i] = atomicExch(&p[2], (unsigned)(v+i));
  o[3*blockDim.x+i] = atomicMin(&p[3], (unsigned)(v+i));
  o[4*blockDim.x+i] = atomicMax(&p[4], (unsigned)(v+i));
  o[5*blockDim.x+i] = atomicAnd(&p[5], (unsigned)(v+i));
  o[6*blockDim.x+i] = atomicOr(&p[6], (unsigned)(v+i));
  o[7*blockDim.x+i] = atomicXor(&p[7], (unsigned)(v+i));
  o[8*blockDim.x+i] = atomicCAS(&p[8], v, (unsigned)(v+i));
  o[9*blockDim.x+i] = atomicInc(&p[9], (unsigned)(v+i));
  o[10*blockDim.x+i] = atomicDec(&p[10], (unsigned)(v+i));
}
extern "C" __global__ void atom_u64(unsigned long long* p, unsigned long long* o, unsigned long long v) { int i = threadIdx.x; (void)i;
  o[0*blockDim.x+i] = atomicAdd(&p[0], (unsigned long long)(v+i));
  o[1*blockDim.x+i] = atomicExch(&p[1], (unsigned long long)(v+i));
  o[2*blockDim.x+i] = atomicMin(&p[2], (unsigned long long)(v+i));
  o[3*blockDim.x+i] = atomicMax(&p[3], (unsigned long long)(v+i));
  o[4*blockDim.x+i] = atomicAnd(&p[4], (unsigned long long)(v+i));
  o[5*blockDim.x+i] = atomicOr(&p[5], (unsigned long long)(v+i));
  o[6*blockDim.x+i] = atomicXor(&p[6], (unsigned long long)(v+i));
  o[7*blockDim.x+i] = atomicCAS(&p[7], v, (unsigned long long)(v+i));
}
extern "C" __global__ void atom_i64(long long* p, long long* o, long long v) { int i = threadIdx.x; (void)i;
  o[0*blockDim.x+i] = atomicMin(&p[0], (long long)(v+i));
  o[1*blockDim.x+i] = atomicMax(&p[1], (long long)(v+i));
  o[2*blockDim.x+i] = atomicAnd(&p[2], (long long)(v+i));
  o[3*blockDim.x+i] = atomicOr(&p[3], (long long)(v+i));
  o[4*blockDim.x+i] = atomicXor(&p[4], (long long)(v+i));
}
extern "C" __global__ void atom_f32(float* p, float* o, float v) { int i = threadIdx.x; (void)i;
  o[0*blockDim.x+i] = atomicAdd(&p[0], (float)(v+i));
  o[1*blockDim.x+i] = atomicExch(&p[1], (float)(v+i));
}
extern "C" __global__ void atom_f64(double* p, double* o, double v) { int i = threadIdx.x; (void)i;
  o[0*blockDim.x+i] = atomicAdd(&p[0], (double)(v+i));
}
extern "C" __global__ void atom_i32_block(int* p, int* o, int v) { int i = threadIdx.x; (void)i;
  o[0*blockDim.x+i] = atomicAdd_block(&p[0], (int)(v+i));
  o[1*blockDim.x+i] = atomicSub_block(&p[1], (int)(v+i));
  o[2*blockDim.x+i] = atomicExch_block(&p[2], (int)(v+i));
  o[3*blockDim.x+i] = atomicMin_block(&p[3], (int)(v+i));
  o[4*blockDim.x+i] = atomicMax_block(&p[4], (int)(v+i));
  o[5*blockDim.x+i] = atomicAnd_block(&p[5], (int)(v+i));
  o[6*blockDim.x+i] = atomicOr_block(&p[6], (int)(v+i));
  o[7*blockDim.x+i] = atomicXor_block(&p[7], (int)(v+i));
  o[8*blockDim.x+i] = atomicCAS_block(&p[8], v, (int)(v+i));
}
extern "C" __global__ void atom_u32_block(unsigned* p, unsigned* o, unsigned v) { int i = threadIdx.x; (void)i;
  o[0*blockDim.x+i] = atomicAdd_block(&p[0], (unsigned)(v+i));
  o[1*blockDim.x+i] = atomicSub_block(&p[1], (unsigned)(v+i));
  o[2*blockDim.x+i] = atomicExch_block(&p[2], (unsigned)(v+i));
  o[3*blockDim.x+i] = atomicMin_block(&p[3], (unsigned)(v+i));
  o[4*blockDim.x+i] = atomicMax_block(&p[4], (unsigned)(v+i));
  o[5*blockDim.x+i] = atomicAnd_block(&p[5], (unsigned)(v+i));
  o[6*blockDim.x+i] = atomicOr_block(&p[6], (unsigned)(v+i));
  o[7*blockDim.x+i] = atomicXor_block(&p[7], (unsigned)(v+i));
  o[8*blockDim.x+i] = atomicCAS_block(&p[8], v, (unsigned)(v+i));
  o[9*blockDim.x+i] = atomicInc_block(&p[9], (unsigned)(v+i));
  o[10*blockDim.x+i] = atomicDec_block(&p[10], (unsigned)(v+i));
}
extern "C" __global__ void atom_u64_block(unsigned long long* p, unsigned long long* o, unsigned long long v) { int i = threadIdx.x; (void)i;
  o[0*blockDim.x+i] = atomicAdd_block(&p[0], (unsigned long long)(v+i));
  o[1*blockDim.x+i] = atomicExch_block(&p[1], (unsigned long long)(v+i));
  o[2*blockDim.x+i] = atomicMin_block(&p[2], (unsigned long long)(v+i));
  o[3*blockDim.x+i] = atomicMax_block(&p[3], (unsigned long long)(v+i));
  o[4*blockDim.x+i] = atomicAnd_block(&p[4], (unsigned long long)(v+i));
  o[5*blockDim.x+i] = atomicOr_block(&p[5], (unsigned long long)(v+i));
  o[6*blockDim.x+i] = atomicXor_block(&p[6], (unsigned long long)(v+i));
  o[7*blockDim.x+i] = atomicCAS_block(&p[7], v, (unsigned long long)(v+i));
}
extern "C" __global__ void atom_i64_block(long long* p, long long* o, long long v) { int i = threadIdx.x; (void)i;
  o[0*blockDim.x+i] = atomicMin_block(&p[0], (long long)(v+i));
  o[1*blockDim.x+i] = atomicMax_block(&p[1], (long long)(v+i));
  o[2*blockDim.x+i] = atomicAnd_block(&p[2], (long long)(v+i));
  o[3*blockDim.x+i] = atomicOr_block(&p[3], (long long)(v+i));
  o[4*blockDim.x+i] = atomicXor_block(&p[4], (long long)(v+i));
}
extern "C" __global__ void atom_f32_block(float* p, float* o, float v) { int i = threadIdx.x; (void)i;
  o[0*blockDim.x+i] = atomicAdd_block(&p[0], (float)(v+i));
  o[1*blockDim.x+i] = atomicExch_block(&p[1], (float)(v+i));
}
extern "C" __global__ void atom_f64_block(double* p, double* o, double v) { int i = threadIdx.x; (void)i;
  o[0*blockDim.x+i] = atomicAdd_block(&p[0], (double)(v+i));
}
extern "C" __global__ void atom_i32_system(int* p, int* o, int v) { int i = threadIdx.x; (void)i;
  o[0*blockDim.x+i] = atomicAdd_system(&p[0], (int)(v+i));
  o[1*blockDim.x+i] = atomicSub_system(&p[1], (int)(v+i));
  o[2*blockDim.x+i] = atomicExch_system(&p[2], (int)(v+i));
  o[3*blockDim.x+i] = atomicMin_system(&p[3], (int)(v+i));
  o[4*blockDim.x+i] = atomicMax_system(&p[4], (int)(v+i));
  o[5*blockDim.x+i] = atomicAnd_system(&p[5], (int)(v+i));
  o[6*blockDim.x+i] = atomicOr_system(&p[6], (int)(v+i));
  o[7*blockDim.x+i] = atomicXor_system(&p[7], (int)(v+i));
  o[8*blockDim.x+i] = atomicCAS_system(&p[8], v, (int)(v+i));
}
extern "C" __global__ void atom_u32_system(unsigned* p, unsigned* o, unsigned v) { int i = threadIdx.x; (void)i;
  o[0*blockDim.x+i] = atomicAdd_system(&p[0], (unsigned)(v+i));
  o[1*blockDim.x+i] = atomicSub_system(&p[1], (unsigned)(v+i));
  o[2*blockDim.x+i] = atomicExch_system(&p[2], (unsigned)(v+i));
  o[3*blockDim.x+i] = atomicMin_system(&p[3], (unsigned)(v+i));
  o[4*blockDim.x+i] = atomicMax_system(&p[4], (unsigned)(v+i));
  o[5*blockDim.x+i] = atomicAnd_system(&p[5], (unsigned)(v+i));
  o[6*blockDim.x+i] = atomicOr_system(&p[6], (unsigned)(v+i));
  o[7*blockDim.x+i] = atomicXor_system(&p[7], (unsigned)(v+i));
  o[8*blockDim.x+i] = atomicCAS_system(&p[8], v, (unsigned)(v+i));
  o[9*blockDim.x+i] = atomicInc_system(&p[9], (unsigned)(v+i));
  o[10*blockDim.x+i] = atomicDec_system(&p[10], (unsigned)(v+i));
}
extern "C" __global__ void atom_u64_system(unsigned long long* p, unsigned long long* o, unsigned long long v) { int i = threadIdx.x; (void)i;
  o[0*blockDim.x+i] = atomicAdd_system(&p[0], (unsigned long long)(v+i));
  o[1*blockDim.x+i] = atomicExch_system(&p[1], (unsigned long long)(v+i));
  o[2*blockDim.x+i] = atomicMin_system(&p[2], (unsigned long long)(v+i));
  o[3*blockDim.x+i] = atomicMax_system(&p[3], (unsigned long long)(v+i));
  o[4*blockDim.x+i] = atomicAnd_system(&p[4], (unsigned long long)(v+i));
  o[5*blockDim.x+i] = atomicOr_system(&p[5], (unsigned long long)(v+i));
  o[6*blockDim.x+i] = atomicXor_system(&p[6], (unsigned long long)(v+i));
  o[7*blockDim.x+i] = atomicCAS_system(&p[7], v, (unsigned long long)(v+i));
}
extern "C" __global__ void atom_i64_system(long long* p, long long* o, long long v) { int i = threadIdx.x; (void)i;
  o[0*blockDim.x+i] = atomicMin_system(&p[0], (long long)(v+i));
  o[1*blockDim.x+i] = atomicMax_system(&p[1], (long long)(v+i));
  o[2*blockDim.x+i] = atomicAnd_system(&p[2], (long long)(v+i));
  o[3*blockDim.x+i] = atomicOr_system(&p[3], (long long)(v+i));
  o[4*blockDim.x+i] = atomicXor_system(&p[4], (long long)(v+i));
}
extern "C" __global__ void atom_f32_system(float* p, float* o, float v) { int i = threadIdx.x; (void)i;
  o[0*blockDim.x+i] = atomicAdd_system(&p[0], (float)(v+i));
  o[1*blockDim.x+i] = atomicExch_system(&p[1], (float)(v+i));
}
extern "C" __global__ void atom_f64_system(double* p, double* o, double v) { int i = threadIdx.x; (void)i;
  o[0*blockDim.x+i] = atomicAdd_system(&p[0], (double)(v+i));
}
extern "C" __global__ void atom_half(__half* h, __half2* h2, __nv_bfloat16* b, __nv_bfloat162* b2, unsigned short* us, float f) {
  atomicAdd(h, __float2half(f)); h2[1] = atomicAdd(h2, __floats2half2_rn(f, f)); atomicAdd(b, __float2bfloat16(f)); b2[1] = atomicAdd(b2, __floats2bfloat162_rn(f, f)); us[1] = atomicCAS(us, (unsigned short)1, (unsigned short)2);
}

