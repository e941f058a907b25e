/* matrix_vector.h: elements of matrices as vectors of floats and back.
 *
 * Vectors are passed between inlined functions only.
 */
#ifndef PTXEMU_MATRIX_VECTOR_H
#define PTXEMU_MATRIX_VECTOR_H
#include <string.h>
#include "internal.h"
#pragma GCC diagnostic ignored "-Wpsabi"

typedef uint32_t u32x8 __attribute__((vector_size(32)));
typedef int32_t i32x8 __attribute__((vector_size(32)));
typedef float f32x8 __attribute__((vector_size(32)));
typedef uint8_t u8x32 __attribute__((vector_size(32)));
typedef uint16_t u16x16 __attribute__((vector_size(32)));
typedef double f64x4 __attribute__((vector_size(32)));
typedef uint64_t u64x4 __attribute__((vector_size(32)));
typedef int64_t i64x4 __attribute__((vector_size(32)));
typedef uint64_t u64x2 __attribute__((vector_size(16)));
typedef uint32_t u32x4 __attribute__((vector_size(16)));
typedef int32_t i32x4 __attribute__((vector_size(16)));
typedef float f32x4 __attribute__((vector_size(16)));
typedef double row4 __attribute__((vector_size(32), aligned(8))); /* in memory */
typedef float words4 __attribute__((vector_size(16), aligned(4)));

/* Halves of vectors. */
#define LOW(X) __builtin_shufflevector(X, X, 0, 1, 2, 3)
#define HIGH(X) __builtin_shufflevector(X, X, 4, 5, 6, 7)
#define JOINED(LOW, HIGH) __builtin_shufflevector(LOW, HIGH, 0, 1, 2, 3, 4, 5, 6, 7)

PE_INLINE bool any(i32x8 mask) {
  u64x2 words = (u64x2)(LOW(mask) | HIGH(mask));
  words |= __builtin_shufflevector(words, words, 1, 1);
  return words[0] != 0;
}

/* As loops, which compilers know to be one instruction. */
PE_INLINE i32x8 larger(i32x8 x, i32x8 y) {
  for (int i = 0; i < 8; i++) x[i] = x[i] > y[i] ? x[i] : y[i];
  return x;
}
PE_INLINE i32x8 smaller(i32x8 x, i32x8 y) {
  for (int i = 0; i < 8; i++) x[i] = x[i] < y[i] ? x[i] : y[i];
  return x;
}
PE_INLINE u32x8 larger_words(u32x8 x, u32x8 y) {
  for (int i = 0; i < 8; i++) x[i] = x[i] > y[i] ? x[i] : y[i];
  return x;
}
PE_INLINE u32x8 smaller_words(u32x8 x, u32x8 y) {
  for (int i = 0; i < 8; i++) x[i] = x[i] < y[i] ? x[i] : y[i];
  return x;
}

PE_INLINE f32x8 load_floats(const float *from) {
  f32x8 x;
  memcpy(&x, from, sizeof x);
  return x;
}
PE_INLINE void store_floats(float *to, f32x8 x) { memcpy(to, &x, sizeof x); }

/* ---- from elements ---- */

/* A float of fewer bits, with its sign and those of its exponent and fraction where an f32 has the last ones: the multiplication
 * rebiases the exponent, which is exact for subnormal numbers too. */
PE_INLINE f32x8 rebias(i32x8 bits, float scale) { return (f32x8)bits * scale; }
/* From `least` on are infinity and NaN. */
PE_INLINE f32x8 with_specials(f32x8 x, float least) {
  i32x8 special = ((i32x8)x & 0x7fffffff) >= (i32x8)((f32x8){0} + least);
  return (f32x8)((i32x8)x | (special & 0x7f800000));
}

/* Elements in the high bits, with garbage below. An f32 holds all types but f64. Those that are finite, in half the time: */
PE_INLINE f32x8 from_finite_f16(u32x8 x) { return rebias((i32x8)x >> 3 & (int32_t)0x8fffe000, 0x1p112f); }
PE_INLINE f32x8 from_finite_e4m3(u32x8 x) { return rebias((i32x8)x >> 4 & (int32_t)0x87f00000, 0x1p120f); }
PE_INLINE f32x8 from_finite_e5m2(u32x8 x) { return rebias((i32x8)x >> 3 & (int32_t)0x8fe00000, 0x1p112f); }
/* Of six bits in the low ones of a byte, and of four in the middle; all are finite. */
PE_INLINE f32x8 from_e3m2(u32x8 x) { return rebias((i32x8)(x << 2) >> 5 & (int32_t)0x83e00000, 0x1p124f); }
PE_INLINE f32x8 from_e2m3(u32x8 x) { return rebias((i32x8)(x << 2) >> 6 & (int32_t)0x81f00000, 0x1p126f); }
PE_INLINE f32x8 from_e2m1(u32x8 x) { return rebias((i32x8)(x << 2) >> 6 & (int32_t)0x81c00000, 0x1p126f); }

PE_INLINE f32x8 from_f16(u32x8 x) { return with_specials(from_finite_f16(x), 0x1p16f); }
PE_INLINE f32x8 from_bf16(u32x8 x) { return (f32x8)(x & 0xffff0000); }
PE_INLINE f32x8 from_tf32(u32x8 x) { return (f32x8)(x & 0xffffe000); }
PE_INLINE f32x8 from_e4m3(u32x8 x) { return with_specials(from_finite_e4m3(x), 480); }
PE_INLINE f32x8 from_e5m2(u32x8 x) { return with_specials(from_finite_e5m2(x), 0x1p16f); }
PE_INLINE f32x8 from_signed(u32x8 x, int bits) { return __builtin_convertvector((i32x8)x >> (32 - bits), f32x8); }
PE_INLINE f32x8 from_unsigned(u32x8 x, int bits) { return __builtin_convertvector((i32x8)(x >> (32 - bits)), f32x8); }
PE_INLINE f32x8 from_s8(u32x8 x) { return from_signed(x, 8); }
PE_INLINE f32x8 from_u8(u32x8 x) { return from_unsigned(x, 8); }
PE_INLINE f32x8 from_s4(u32x8 x) { return from_signed(x, 4); }
PE_INLINE f32x8 from_u4(u32x8 x) { return from_unsigned(x, 4); }

/* ---- to and from binary64 ---- */

PE_INLINE void store_doubles(double *to, f32x8 x) {
  *(row4 *)to = __builtin_convertvector(LOW(x), f64x4);
  *(row4 *)(to + 4) = __builtin_convertvector(HIGH(x), f64x4);
}

PE_INLINE u32x8 canonical(f32x8 value) {
  u32x8 nan = (u32x8)(value != value);
  return ((u32x8)value & ~nan) | (0x7fffffff & nan);
}
PE_INLINE u32x4 to_f32(f64x4 x) {
  f32x4 value = __builtin_convertvector(x, f32x4);
  u32x4 nan = (u32x4)(value != value);
  return ((u32x4)value & ~nan) | (0x7fffffff & nan);
}

/* Round to nearest even as f16: adding and taking away 1.5 * 2^52 times the f16's last place rounds a double. */
PE_INLINE u32x4 to_f16(f64x4 x) {
  u64x4 exponent = (u64x4)x & 0x7ff0000000000000, least = {0};
  least += (uint64_t)(1023 - 14) << 52;
  u64x4 small = (u64x4)((i64x4)exponent < (i64x4)least);
  f64x4 magic = (f64x4)((exponent & ~small) | (least & small)) * 0x1.8p42;
  f32x4 rounded = __builtin_convertvector(x + magic - magic, f32x4) * 0x1p-112f, value = __builtin_convertvector(x, f32x4);
  u32x4 magnitude = ((u32x4)rounded & 0x7fffffff) >> 13, sign = (u32x4)value >> 16 & 0x8000;
  u32x4 large = (u32x4)((i32x4)magnitude > 0x7c00), nan = (u32x4)(value != value);
  u32x4 result = (magnitude & ~large) | (0x7c00 & large) | sign;
  return (result & ~nan) | (0x7fff & nan);
}

/* A float rounded to nearest even to the places that an f16 has, but with any exponent; no result is -0. Adding and taking away
 * 1.5 * 2^23 times the f16's last place does it. */
PE_INLINE f32x8 to_half_places(f32x8 x) {
  i32x8 least = (i32x8){0} + ((127 - 14) << 23), power = larger((i32x8)x & 0x7f800000, least);
  f32x8 magic = (f32x8)((u32x8)power + (13u << 23 | 1u << 22));
  return x + magic - magic;
}

#define INFINITE_HALF 65520 /* is rounded to infinity, and so is more */

PE_INLINE f32x8 or_infinite_half(f32x8 x) {
  i32x8 magnitude = (i32x8)x & INT32_MAX, over = (f32x8)magnitude >= INFINITE_HALF;
  return (f32x8)(((i32x8)x & (~over | INT32_MIN)) | (0x7f800000 & over));
}

/* The bits of an f16 that a float holds. */
PE_INLINE u32x8 half_bits(f32x8 x) {
  i32x8 small = ((i32x8)(x * 0x1p-112f) & 0x7fffffff) >> 13, infinity = (i32x8){0} + 0x7c00;
  u32x8 nan = (u32x8)(x != x), bits = (u32x8)smaller(small, infinity) | ((u32x8)x >> 16 & 0x8000);
  return (bits & ~nan) | (0x7fff & nan);
}

/* Any float rounded to nearest even as f16. */
PE_INLINE f32x8 to_nearest_half(f32x8 x) {
  f32x8 held = or_infinite_half(x);
  return (f32x8)((i32x8)to_half_places(held) | ((i32x8)x & INT32_MIN));
}

#endif
