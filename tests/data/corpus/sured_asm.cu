// sured_asm
#include <cuda_runtime.h>
#include <stdint.h>
extern "C" __global__ void sured_b_add_1d_u32(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sured.b.add.1d.u32.trap [%0, %1], %2;" :: "l"(s), "r"(x), "r"(v) : "memory");
  asm volatile("sured.b.add.1d.u32.clamp [%0, %1], %2;" :: "l"(s), "r"(x), "r"(v) : "memory");
  asm volatile("sured.b.add.1d.u32.zero [%0, %1], %2;" :: "l"(s), "r"(x), "r"(v) : "memory");
}
extern "C" __global__ void sured_b_add_2d_u32(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sured.b.add.2d.u32.trap [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "r"(v) : "memory");
  asm volatile("sured.b.add.2d.u32.clamp [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "r"(v) : "memory");
  asm volatile("sured.b.add.2d.u32.zero [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "r"(v) : "memory");
}
extern "C" __global__ void sured_b_add_3d_u32(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sured.b.add.3d.u32.trap [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v) : "memory");
  asm volatile("sured.b.add.3d.u32.clamp [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v) : "memory");
  asm volatile("sured.b.add.3d.u32.zero [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v) : "memory");
}
extern "C" __global__ void sured_b_add_1d_s32(uint64_t s, int x, int y, int z, int v) {
  asm volatile("sured.b.add.1d.s32.trap [%0, %1], %2;" :: "l"(s), "r"(x), "r"(v) : "memory");
  asm volatile("sured.b.add.1d.s32.clamp [%0, %1], %2;" :: "l"(s), "r"(x), "r"(v) : "memory");
  asm volatile("sured.b.add.1d.s32.zero [%0, %1], %2;" :: "l"(s), "r"(x), "r"(v) : "memory");
}
extern "C" __global__ void sured_b_add_2d_s32(uint64_t s, int x, int y, int z, int v) {
  asm volatile("sured.b.add.2d.s32.trap [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "r"(v) : "memory");
  asm volatile("sured.b.add.2d.s32.clamp [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "r"(v) : "memory");
  asm volatile("sured.b.add.2d.s32.zero [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "r"(v) : "memory");
}
extern "C" __global__ void sured_b_add_3d_s32(uint64_t s, int x, int y, int z, int v) {
  asm volatile("sured.b.add.3d.s32.trap [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v) : "memory");
  asm volatile("sured.b.add.3d.s32.clamp [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v) : "memory");
  asm volatile("sured.b.add.3d.s32.zero [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v) : "memory");
}
extern "C" __global__ void sured_b_add_1d_u64(uint64_t s, int x, int y, int z, unsigned long long v) {
  asm volatile("sured.b.add.1d.u64.trap [%0, %1], %2;" :: "l"(s), "r"(x), "l"(v) : "memory");
  asm volatile("sured.b.add.1d.u64.clamp [%0, %1], %2;" :: "l"(s), "r"(x), "l"(v) : "memory");
  asm volatile("sured.b.add.1d.u64.zero [%0, %1], %2;" :: "l"(s), "r"(x), "l"(v) : "memory");
}
extern "C" __global__ void sured_b_add_2d_u64(uint64_t s, int x, int y, int z, unsigned long long v) {
  asm volatile("sured.b.add.2d.u64.trap [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "l"(v) : "memory");
  asm volatile("sured.b.add.2d.u64.clamp [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "l"(v) : "memory");
  asm volatile("sured.b.add.2d.u64.zero [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "l"(v) : "memory");
}
extern "C" __global__ void sured_b_add_3d_u64(uint64_t s, int x, int y, int z, unsigned long long v) {
  asm volatile("sured.b.add.3d.u64.trap [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "l"(v) : "memory");
  asm volatile("sured.b.add.3d.u64.clamp [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "l"(v) : "memory");
  asm volatile("sured.b.add.3d.u64.zero [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "l"(v) : "memory");
}
extern "C" __global__ void sured_b_min_1d_u32(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sured.b.min.1d.u32.trap [%0, %1], %2;" :: "l"(s), "r"(x), "r"(v) : "memory");
  asm volatile("sured.b.min.1d.u32.clamp [%0, %1], %2;" :: "l"(s), "r"(x), "r"(v) : "memory");
  asm volatile("sured.b.min.1d.u32.zero [%0, %1], %2;" :: "l"(s), "r"(x), "r"(v) : "memory");
}
extern "C" __global__ void sured_b_min_2d_u32(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sured.b.min.2d.u32.trap [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "r"(v) : "memory");
  asm volatile("sured.b.min.2d.u32.clamp [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "r"(v) : "memory");
  asm volatile("sured.b.min.2d.u32.zero [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "r"(v) : "memory");
}
extern "C" __global__ void sured_b_min_3d_u32(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sured.b.min.3d.u32.trap [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v) : "memory");
  asm volatile("sured.b.min.3d.u32.clamp [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v) : "memory");
  asm volatile("sured.b.min.3d.u32.zero [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v) : "memory");
}
extern "C" __global__ void sured_b_min_1d_s32(uint64_t s, int x, int y, int z, int v) {
  asm volatile("sured.b.min.1d.s32.trap [%0, %1], %2;" :: "l"(s), "r"(x), "r"(v) : "memory");
  asm volatile("sured.b.min.1d.s32.clamp [%0, %1], %2;" :: "l"(s), "r"(x), "r"(v) : "memory");
  asm volatile("sured.b.min.1d.s32.zero [%0, %1], %2;" :: "l"(s), "r"(x), "r"(v) : "memory");
}
extern "C" __global__ void sured_b_min_2d_s32(uint64_t s, int x, int y, int z, int v) {
  asm volatile("sured.b.min.2d.s32.trap [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "r"(v) : "memory");
  asm volatile("sured.b.min.2d.s32.clamp [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "r"(v) : "memory");
  asm volatile("sured.b.min.2d.s32.zero [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "r"(v) : "memory");
}
extern "C" __global__ void sured_b_min_3d_s32(uint64_t s, int x, int y, int z, int v) {
  asm volatile("sured.b.min.3d.s32.trap [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v) : "memory");
  asm volatile("sured.b.min.3d.s32.clamp [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v) : "memory");
  asm volatile("sured.b.min.3d.s32.zero [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v) : "memory");
}
extern "C" __global__ void sured_b_max_1d_u32(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sured.b.max.1d.u32.trap [%0, %1], %2;" :: "l"(s), "r"(x), "r"(v) : "memory");
  asm volatile("sured.b.max.1d.u32.clamp [%0, %1], %2;" :: "l"(s), "r"(x), "r"(v) : "memory");
  asm volatile("sured.b.max.1d.u32.zero [%0, %1], %2;" :: "l"(s), "r"(x), "r"(v) : "memory");
}
extern "C" __global__ void sured_b_max_2d_u32(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sured.b.max.2d.u32.trap [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "r"(v) : "memory");
  asm volatile("sured.b.max.2d.u32.clamp [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "r"(v) : "memory");
  asm volatile("sured.b.max.2d.u32.zero [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "r"(v) : "memory");
}
extern "C" __global__ void sured_b_max_3d_u32(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sured.b.max.3d.u32.trap [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v) : "memory");
  asm volatile("sured.b.max.3d.u32.clamp [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v) : "memory");
  asm volatile("sured.b.max.3d.u32.zero [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v) : "memory");
}
extern "C" __global__ void sured_b_max_1d_s32(uint64_t s, int x, int y, int z, int v) {
  asm volatile("sured.b.max.1d.s32.trap [%0, %1], %2;" :: "l"(s), "r"(x), "r"(v) : "memory");
  asm volatile("sured.b.max.1d.s32.clamp [%0, %1], %2;" :: "l"(s), "r"(x), "r"(v) : "memory");
  asm volatile("sured.b.max.1d.s32.zero [%0, %1], %2;" :: "l"(s), "r"(x), "r"(v) : "memory");
}
extern "C" __global__ void sured_b_max_2d_s32(uint64_t s, int x, int y, int z, int v) {
  asm volatile("sured.b.max.2d.s32.trap [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "r"(v) : "memory");
  asm volatile("sured.b.max.2d.s32.clamp [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "r"(v) : "memory");
  asm volatile("sured.b.max.2d.s32.zero [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "r"(v) : "memory");
}
extern "C" __global__ void sured_b_max_3d_s32(uint64_t s, int x, int y, int z, int v) {
  asm volatile("sured.b.max.3d.s32.trap [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v) : "memory");
  asm volatile("sured.b.max.3d.s32.clamp [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v) : "memory");
  asm volatile("sured.b.max.3d.s32.zero [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v) : "memory");
}
extern "C" __global__ void sured_b_and_1d_b32(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sured.b.and.1d.b32.trap [%0, %1], %2;" :: "l"(s), "r"(x), "r"(v) : "memory");
  asm volatile("sured.b.and.1d.b32.clamp [%0, %1], %2;" :: "l"(s), "r"(x), "r"(v) : "memory");
  asm volatile("sured.b.and.1d.b32.zero [%0, %1], %2;" :: "l"(s), "r"(x), "r"(v) : "memory");
}
extern "C" __global__ void sured_b_and_2d_b32(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sured.b.and.2d.b32.trap [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "r"(v) : "memory");
  asm volatile("sured.b.and.2d.b32.clamp [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "r"(v) : "memory");
  asm volatile("sured.b.and.2d.b32.zero [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "r"(v) : "memory");
}
extern "C" __global__ void sured_b_and_3d_b32(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sured.b.and.3d.b32.trap [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v) : "memory");
  asm volatile("sured.b.and.3d.b32.clamp [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v) : "memory");
  asm volatile("sured.b.and.3d.b32.zero [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v) : "memory");
}
extern "C" __global__ void sured_b_or_1d_b32(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sured.b.or.1d.b32.trap [%0, %1], %2;" :: "l"(s), "r"(x), "r"(v) : "memory");
  asm volatile("sured.b.or.1d.b32.clamp [%0, %1], %2;" :: "l"(s), "r"(x), "r"(v) : "memory");
  asm volatile("sured.b.or.1d.b32.zero [%0, %1], %2;" :: "l"(s), "r"(x), "r"(v) : "memory");
}
extern "C" __global__ void sured_b_or_2d_b32(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sured.b.or.2d.b32.trap [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "r"(v) : "memory");
  asm volatile("sured.b.or.2d.b32.clamp [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "r"(v) : "memory");
  asm volatile("sured.b.or.2d.b32.zero [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "r"(v) : "memory");
}
extern "C" __global__ void sured_b_or_3d_b32(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sured.b.or.3d.b32.trap [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v) : "memory");
  asm volatile("sured.b.or.3d.b32.clamp [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v) : "memory");
  asm volatile("sured.b.or.3d.b32.zero [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v) : "memory");
}
extern "C" __global__ void sured_b_min_1d_u64(uint64_t s, int x, int y, int z, unsigned long long v) {
  asm volatile("sured.b.min.1d.u64.trap [%0, %1], %2;" :: "l"(s), "r"(x), "l"(v) : "memory");
  asm volatile("sured.b.min.1d.u64.clamp [%0, %1], %2;" :: "l"(s), "r"(x), "l"(v) : "memory");
  asm volatile("sured.b.min.1d.u64.zero [%0, %1], %2;" :: "l"(s), "r"(x), "l"(v) : "memory");
}
extern "C" __global__ void sured_b_min_2d_u64(uint64_t s, int x, int y, int z, unsigned long long v) {
  asm volatile("sured.b.min.2d.u64.trap [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "l"(v) : "memory");
  asm volatile("sured.b.min.2d.u64.clamp [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "l"(v) : "memory");
  asm volatile("sured.b.min.2d.u64.zero [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "l"(v) : "memory");
}
extern "C" __global__ void sured_b_min_3d_u64(uint64_t s, int x, int y, int z, unsigned long long v) {
  asm volatile("sured.b.min.3d.u64.trap [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "l"(v) : "memory");
  asm volatile("sured.b.min.3d.u64.clamp [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "l"(v) : "memory");
  asm volatile("sured.b.min.3d.u64.zero [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "l"(v) : "memory");
}
extern "C" __global__ void sured_b_max_1d_s64(uint64_t s, int x, int y, int z, long long v) {
  asm volatile("sured.b.max.1d.s64.trap [%0, %1], %2;" :: "l"(s), "r"(x), "l"(v) : "memory");
  asm volatile("sured.b.max.1d.s64.clamp [%0, %1], %2;" :: "l"(s), "r"(x), "l"(v) : "memory");
  asm volatile("sured.b.max.1d.s64.zero [%0, %1], %2;" :: "l"(s), "r"(x), "l"(v) : "memory");
}
extern "C" __global__ void sured_b_max_2d_s64(uint64_t s, int x, int y, int z, long long v) {
  asm volatile("sured.b.max.2d.s64.trap [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "l"(v) : "memory");
  asm volatile("sured.b.max.2d.s64.clamp [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "l"(v) : "memory");
  asm volatile("sured.b.max.2d.s64.zero [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "l"(v) : "memory");
}
extern "C" __global__ void sured_b_max_3d_s64(uint64_t s, int x, int y, int z, long long v) {
  asm volatile("sured.b.max.3d.s64.trap [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "l"(v) : "memory");
  asm volatile("sured.b.max.3d.s64.clamp [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "l"(v) : "memory");
  asm volatile("sured.b.max.3d.s64.zero [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "l"(v) : "memory");
}
extern "C" __global__ void sured_p_add_1d(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sured.p.add.1d.b32.trap [%0, %1], %2;" :: "l"(s), "r"(x), "r"(v) : "memory");
  asm volatile("sured.p.add.1d.b32.clamp [%0, %1], %2;" :: "l"(s), "r"(x), "r"(v) : "memory");
  asm volatile("sured.p.add.1d.b32.zero [%0, %1], %2;" :: "l"(s), "r"(x), "r"(v) : "memory");
}
extern "C" __global__ void sured_p_add_2d(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sured.p.add.2d.b32.trap [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "r"(v) : "memory");
  asm volatile("sured.p.add.2d.b32.clamp [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "r"(v) : "memory");
  asm volatile("sured.p.add.2d.b32.zero [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "r"(v) : "memory");
}
extern "C" __global__ void sured_p_add_3d(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sured.p.add.3d.b32.trap [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v) : "memory");
  asm volatile("sured.p.add.3d.b32.clamp [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v) : "memory");
  asm volatile("sured.p.add.3d.b32.zero [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v) : "memory");
}
extern "C" __global__ void sured_p_min_1d(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sured.p.min.1d.b32.trap [%0, %1], %2;" :: "l"(s), "r"(x), "r"(v) : "memory");
  asm volatile("sured.p.min.1d.b32.clamp [%0, %1], %2;" :: "l"(s), "r"(x), "r"(v) : "memory");
  asm volatile("sured.p.min.1d.b32.zero [%0, %1], %2;" :: "l"(s), "r"(x), "r"(v) : "memory");
}
extern "C" __global__ void sured_p_min_2d(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sured.p.min.2d.b32.trap [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "r"(v) : "memory");
  asm volatile("sured.p.min.2d.b32.clamp [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "r"(v) : "memory");
  asm volatile("sured.p.min.2d.b32.zero [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "r"(v) : "memory");
}
extern "C" __global__ void sured_p_min_3d(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sured.p.min.3d.b32.trap [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v) : "memory");
  asm volatile("sured.p.min.3d.b32.clamp [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v) : "memory");
  asm volatile("sured.p.min.3d.b32.zero [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v) : "memory");
}
extern "C" __global__ void sured_p_max_1d(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sured.p.max.1d.b32.trap [%0, %1], %2;" :: "l"(s), "r"(x), "r"(v) : "memory");
  asm volatile("sured.p.max.1d.b32.clamp [%0, %1], %2;" :: "l"(s), "r"(x), "r"(v) : "memory");
  asm volatile("sured.p.max.1d.b32.zero [%0, %1], %2;" :: "l"(s), "r"(x), "r"(v) : "memory");
}
extern "C" __global__ void sured_p_max_2d(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sured.p.max.2d.b32.trap [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "r"(v) : "memory");
  asm volatile("sured.p.max.2d.b32.clamp [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "r"(v) : "memory");
  asm volatile("sured.p.max.2d.b32.zero [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "r"(v) : "memory");
}
extern "C" __global__ void sured_p_max_3d(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sured.p.max.3d.b32.trap [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v) : "memory");
  asm volatile("sured.p.max.3d.b32.clamp [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v) : "memory");
  asm volatile("sured.p.max.3d.b32.zero [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v) : "memory");
}
extern "C" __global__ void sured_p_and_1d(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sured.p.and.1d.b32.trap [%0, %1], %2;" :: "l"(s), "r"(x), "r"(v) : "memory");
  asm volatile("sured.p.and.1d.b32.clamp [%0, %1], %2;" :: "l"(s), "r"(x), "r"(v) : "memory");
  asm volatile("sured.p.and.1d.b32.zero [%0, %1], %2;" :: "l"(s), "r"(x), "r"(v) : "memory");
}
extern "C" __global__ void sured_p_and_2d(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sured.p.and.2d.b32.trap [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "r"(v) : "memory");
  asm volatile("sured.p.and.2d.b32.clamp [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "r"(v) : "memory");
  asm volatile("sured.p.and.2d.b32.zero [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "r"(v) : "memory");
}
extern "C" __global__ void sured_p_and_3d(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sured.p.and.3d.b32.trap [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v) : "memory");
  asm volatile("sured.p.and.3d.b32.clamp [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v) : "memory");
  asm volatile("sured.p.and.3d.b32.zero [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v) : "memory");
}
extern "C" __global__ void sured_p_or_1d(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sured.p.or.1d.b32.trap [%0, %1], %2;" :: "l"(s), "r"(x), "r"(v) : "memory");
  asm volatile("sured.p.or.1d.b32.clamp [%0, %1], %2;" :: "l"(s), "r"(x), "r"(v) : "memory");
  asm volatile("sured.p.or.1d.b32.zero [%0, %1], %2;" :: "l"(s), "r"(x), "r"(v) : "memory");
}
extern "C" __global__ void sured_p_or_2d(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sured.p.or.2d.b32.trap [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "r"(v) : "memory");
  asm volatile("sured.p.or.2d.b32.clamp [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "r"(v) : "memory");
  asm volatile("sured.p.or.2d.b32.zero [%0, {%1,%2}], %3;" :: "l"(s), "r"(x),"r"(y), "r"(v) : "memory");
}
extern "C" __global__ void sured_p_or_3d(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sured.p.or.3d.b32.trap [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v) : "memory");
  asm volatile("sured.p.or.3d.b32.clamp [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v) : "memory");
  asm volatile("sured.p.or.3d.b32.zero [%0, {%1,%2,%3,%3}], %4;" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v) : "memory");
}

