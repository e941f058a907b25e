// suq_sustp_asm
#include <cuda_runtime.h>
#include <stdint.h>
extern "C" __global__ void suq_all(uint64_t s, unsigned* o) {
  unsigned v;
  asm volatile("suq.width.b32 %0, [%1];" : "=r"(v) : "l"(s)); o[0] = v;
  asm volatile("suq.height.b32 %0, [%1];" : "=r"(v) : "l"(s)); o[1] = v;
  asm volatile("suq.depth.b32 %0, [%1];" : "=r"(v) : "l"(s)); o[2] = v;
  asm volatile("suq.channel_data_type.b32 %0, [%1];" : "=r"(v) : "l"(s)); o[3] = v;
  asm volatile("suq.channel_order.b32 %0, [%1];" : "=r"(v) : "l"(s)); o[4] = v;
  asm volatile("suq.array_size.b32 %0, [%1];" : "=r"(v) : "l"(s)); o[5] = v;
  asm volatile("suq.memory_layout.b32 %0, [%1];" : "=r"(v) : "l"(s)); o[6] = v;
}
extern "C" __global__ void sust_p_1d(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sust.p.1d.b32.trap [%0, %1], {%2};" :: "l"(s), "r"(x), "r"(v+0) : "memory");
  asm volatile("sust.p.1d.b32.clamp [%0, %1], {%2};" :: "l"(s), "r"(x), "r"(v+0) : "memory");
  asm volatile("sust.p.1d.b32.zero [%0, %1], {%2};" :: "l"(s), "r"(x), "r"(v+0) : "memory");
}
extern "C" __global__ void sust_p_1d_v2(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sust.p.1d.v2.b32.trap [%0, %1], {%2,%3};" :: "l"(s), "r"(x), "r"(v+0),"r"(v+1) : "memory");
  asm volatile("sust.p.1d.v2.b32.clamp [%0, %1], {%2,%3};" :: "l"(s), "r"(x), "r"(v+0),"r"(v+1) : "memory");
  asm volatile("sust.p.1d.v2.b32.zero [%0, %1], {%2,%3};" :: "l"(s), "r"(x), "r"(v+0),"r"(v+1) : "memory");
}
extern "C" __global__ void sust_p_1d_v4(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sust.p.1d.v4.b32.trap [%0, %1], {%2,%3,%4,%5};" :: "l"(s), "r"(x), "r"(v+0),"r"(v+1),"r"(v+2),"r"(v+3) : "memory");
  asm volatile("sust.p.1d.v4.b32.clamp [%0, %1], {%2,%3,%4,%5};" :: "l"(s), "r"(x), "r"(v+0),"r"(v+1),"r"(v+2),"r"(v+3) : "memory");
  asm volatile("sust.p.1d.v4.b32.zero [%0, %1], {%2,%3,%4,%5};" :: "l"(s), "r"(x), "r"(v+0),"r"(v+1),"r"(v+2),"r"(v+3) : "memory");
}
extern "C" __global__ void sust_p_2d(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sust.p.2d.b32.trap [%0, {%1,%2}], {%3};" :: "l"(s), "r"(x),"r"(y), "r"(v+0) : "memory");
  asm volatile("sust.p.2d.b32.clamp [%0, {%1,%2}], {%3};" :: "l"(s), "r"(x),"r"(y), "r"(v+0) : "memory");
  asm volatile("sust.p.2d.b32.zero [%0, {%1,%2}], {%3};" :: "l"(s), "r"(x),"r"(y), "r"(v+0) : "memory");
}
extern "C" __global__ void sust_p_2d_v2(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sust.p.2d.v2.b32.trap [%0, {%1,%2}], {%3,%4};" :: "l"(s), "r"(x),"r"(y), "r"(v+0),"r"(v+1) : "memory");
  asm volatile("sust.p.2d.v2.b32.clamp [%0, {%1,%2}], {%3,%4};" :: "l"(s), "r"(x),"r"(y), "r"(v+0),"r"(v+1) : "memory");
  asm volatile("sust.p.2d.v2.b32.zero [%0, {%1,%2}], {%3,%4};" :: "l"(s), "r"(x),"r"(y), "r"(v+0),"r"(v+1) : "memory");
}
extern "C" __global__ void sust_p_2d_v4(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sust.p.2d.v4.b32.trap [%0, {%1,%2}], {%3,%4,%5,%6};" :: "l"(s), "r"(x),"r"(y), "r"(v+0),"r"(v+1),"r"(v+2),"r"(v+3) : "memory");
  asm volatile("sust.p.2d.v4.b32.clamp [%0, {%1,%2}], {%3,%4,%5,%6};" :: "l"(s), "r"(x),"r"(y), "r"(v+0),"r"(v+1),"r"(v+2),"r"(v+3) : "memory");
  asm volatile("sust.p.2d.v4.b32.zero [%0, {%1,%2}], {%3,%4,%5,%6};" :: "l"(s), "r"(x),"r"(y), "r"(v+0),"r"(v+1),"r"(v+2),"r"(v+3) : "memory");
}
extern "C" __global__ void sust_p_3d(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sust.p.3d.b32.trap [%0, {%1,%2,%3,%3}], {%4};" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v+0) : "memory");
  asm volatile("sust.p.3d.b32.clamp [%0, {%1,%2,%3,%3}], {%4};" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v+0) : "memory");
  asm volatile("sust.p.3d.b32.zero [%0, {%1,%2,%3,%3}], {%4};" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v+0) : "memory");
}
extern "C" __global__ void sust_p_3d_v2(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sust.p.3d.v2.b32.trap [%0, {%1,%2,%3,%3}], {%4,%5};" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v+0),"r"(v+1) : "memory");
  asm volatile("sust.p.3d.v2.b32.clamp [%0, {%1,%2,%3,%3}], {%4,%5};" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v+0),"r"(v+1) : "memory");
  asm volatile("sust.p.3d.v2.b32.zero [%0, {%1,%2,%3,%3}], {%4,%5};" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v+0),"r"(v+1) : "memory");
}
extern "C" __global__ void sust_p_3d_v4(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sust.p.3d.v4.b32.trap [%0, {%1,%2,%3,%3}], {%4,%5,%6,%7};" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v+0),"r"(v+1),"r"(v+2),"r"(v+3) : "memory");
  asm volatile("sust.p.3d.v4.b32.clamp [%0, {%1,%2,%3,%3}], {%4,%5,%6,%7};" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v+0),"r"(v+1),"r"(v+2),"r"(v+3) : "memory");
  asm volatile("sust.p.3d.v4.b32.zero [%0, {%1,%2,%3,%3}], {%4,%5,%6,%7};" :: "l"(s), "r"(x),"r"(y),"r"(z), "r"(v+0),"r"(v+1),"r"(v+2),"r"(v+3) : "memory");
}
extern "C" __global__ void sust_p_a1d(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sust.p.a1d.b32.trap [%0, {%1,%2}], {%3};" :: "l"(s), "r"(z),"r"(x), "r"(v+0) : "memory");
  asm volatile("sust.p.a1d.b32.clamp [%0, {%1,%2}], {%3};" :: "l"(s), "r"(z),"r"(x), "r"(v+0) : "memory");
  asm volatile("sust.p.a1d.b32.zero [%0, {%1,%2}], {%3};" :: "l"(s), "r"(z),"r"(x), "r"(v+0) : "memory");
}
extern "C" __global__ void sust_p_a1d_v2(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sust.p.a1d.v2.b32.trap [%0, {%1,%2}], {%3,%4};" :: "l"(s), "r"(z),"r"(x), "r"(v+0),"r"(v+1) : "memory");
  asm volatile("sust.p.a1d.v2.b32.clamp [%0, {%1,%2}], {%3,%4};" :: "l"(s), "r"(z),"r"(x), "r"(v+0),"r"(v+1) : "memory");
  asm volatile("sust.p.a1d.v2.b32.zero [%0, {%1,%2}], {%3,%4};" :: "l"(s), "r"(z),"r"(x), "r"(v+0),"r"(v+1) : "memory");
}
extern "C" __global__ void sust_p_a1d_v4(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sust.p.a1d.v4.b32.trap [%0, {%1,%2}], {%3,%4,%5,%6};" :: "l"(s), "r"(z),"r"(x), "r"(v+0),"r"(v+1),"r"(v+2),"r"(v+3) : "memory");
  asm volatile("sust.p.a1d.v4.b32.clamp [%0, {%1,%2}], {%3,%4,%5,%6};" :: "l"(s), "r"(z),"r"(x), "r"(v+0),"r"(v+1),"r"(v+2),"r"(v+3) : "memory");
  asm volatile("sust.p.a1d.v4.b32.zero [%0, {%1,%2}], {%3,%4,%5,%6};" :: "l"(s), "r"(z),"r"(x), "r"(v+0),"r"(v+1),"r"(v+2),"r"(v+3) : "memory");
}
extern "C" __global__ void sust_p_a2d(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sust.p.a2d.b32.trap [%0, {%1,%2,%3,%3}], {%4};" :: "l"(s), "r"(z),"r"(x),"r"(y), "r"(v+0) : "memory");
  asm volatile("sust.p.a2d.b32.clamp [%0, {%1,%2,%3,%3}], {%4};" :: "l"(s), "r"(z),"r"(x),"r"(y), "r"(v+0) : "memory");
  asm volatile("sust.p.a2d.b32.zero [%0, {%1,%2,%3,%3}], {%4};" :: "l"(s), "r"(z),"r"(x),"r"(y), "r"(v+0) : "memory");
}
extern "C" __global__ void sust_p_a2d_v2(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sust.p.a2d.v2.b32.trap [%0, {%1,%2,%3,%3}], {%4,%5};" :: "l"(s), "r"(z),"r"(x),"r"(y), "r"(v+0),"r"(v+1) : "memory");
  asm volatile("sust.p.a2d.v2.b32.clamp [%0, {%1,%2,%3,%3}], {%4,%5};" :: "l"(s), "r"(z),"r"(x),"r"(y), "r"(v+0),"r"(v+1) : "memory");
  asm volatile("sust.p.a2d.v2.b32.zero [%0, {%1,%2,%3,%3}], {%4,%5};" :: "l"(s), "r"(z),"r"(x),"r"(y), "r"(v+0),"r"(v+1) : "memory");
}
extern "C" __global__ void sust_p_a2d_v4(uint64_t s, int x, int y, int z, unsigned v) {
  asm volatile("sust.p.a2d.v4.b32.trap [%0, {%1,%2,%3,%3}], {%4,%5,%6,%7};" :: "l"(s), "r"(z),"r"(x),"r"(y), "r"(v+0),"r"(v+1),"r"(v+2),"r"(v+3) : "memory");
  asm volatile("sust.p.a2d.v4.b32.clamp [%0, {%1,%2,%3,%3}], {%4,%5,%6,%7};" :: "l"(s), "r"(z),"r"(x),"r"(y), "r"(v+0),"r"(v+1),"r"(v+2),"r"(v+3) : "memory");
  asm volatile("sust.p.a2d.v4.b32.zero [%0, {%1,%2,%3,%3}], {%4,%5,%6,%7};" :: "l"(s), "r"(z),"r"(x),"r"(y), "r"(v+0),"r"(v+1),"r"(v+2),"r"(v+3) : "memory");
}

