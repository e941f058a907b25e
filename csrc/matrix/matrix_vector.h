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
typedef double f64x4 __attribute__((vector_size(32)));
typedef uint64_t u64x4 __attribute__((vector_size(32)));
typedef int64_t i64x4 __attribute__((vector_size(32)));
typedef uint32_t u32x4 __attribute__((vector_size(16)));
typedef int32_t i32x4 __attribute__((vector_size(16)));
typedef float f32x4 __attribute__((vector_size(16)));
typedef double row4 __attribute__((vector_size(32), aligned(8))); /* in memory */
typedef float words4 __attribute__((vector_size(16), aligned(4)));

/* Halves of vectors. */
#define LOW(X) __builtin_shufflevector(X, X, 0, 1, 2, 3)
#define HIGH(X) __builtin_shufflevector(X, X, 4, 5, 6, 7)
#define JOINED(LOW, HIGH) __builtin_shufflevector(LOW, HIGH, 0, 1, 2, 3, 4, 5, 6, 7)

/* ---- from elements ---- */

/* A float of fewer bits, moved to the place of an f32's: its exponent is rebiased by the multiplication, which is exact for
 * subnormal numbers too.  From `special` on are infinity and NaN. */
PE_INLINE f32x8 rebias(u32x8 sign, u32x8 magnitude, float scale, int32_t special) {
  u32x8 bits = (u32x8)((f32x8)magnitude * scale);
  return (f32x8)(bits | sign | ((u32x8)((i32x8)magnitude >= special) & 0x7f800000));
}

/* Elements in the low bits, with garbage above. An f32 holds all types but f64. */
PE_INLINE f32x8 from_f16(u32x8 x) { return rebias((x & 0x8000) << 16, (x & 0x7fff) << 13, 0x1p112f, 0x7c00 << 13); }
PE_INLINE f32x8 from_bf16(u32x8 x) { return (f32x8)(x << 16); }
PE_INLINE f32x8 from_tf32(u32x8 x) { return (f32x8)(x & 0xffffe000); }
PE_INLINE f32x8 from_e4m3(u32x8 x) { return rebias((x & 0x80) << 24, (x & 0x7f) << 20, 0x1p120f, 0x7f << 20); }
PE_INLINE f32x8 from_e5m2(u32x8 x) { return from_f16((x & 0xff) << 8); }
PE_INLINE f32x8 from_signed(u32x8 x, int bits) {
  return __builtin_convertvector((i32x8)(x << (32 - bits)) >> (32 - bits), f32x8);
}
PE_INLINE f32x8 from_unsigned(u32x8 x, int bits) { return __builtin_convertvector((i32x8)(x & ((1u << bits) - 1)), f32x8); }
PE_INLINE f32x8 from_s8(u32x8 x) { return from_signed(x, 8); }
PE_INLINE f32x8 from_u8(u32x8 x) { return from_unsigned(x, 8); }
PE_INLINE f32x8 from_s4(u32x8 x) { return from_signed(x, 4); }
PE_INLINE f32x8 from_u4(u32x8 x) { return from_unsigned(x, 4); }

/* ---- to and from binary64 ---- */

PE_INLINE void store_doubles(double *to, f32x8 x) {
  *(row4 *)to = __builtin_convertvector(LOW(x), f64x4);
  *(row4 *)(to + 4) = __builtin_convertvector(HIGH(x), f64x4);
}

PE_INLINE u32x4 canonical(f32x4 value) {
  u32x4 nan = (u32x4)(value != value);
  return ((u32x4)value & ~nan) | (0x7fffffff & nan);
}
PE_INLINE u32x4 to_f32(f64x4 x) { return canonical(__builtin_convertvector(x, f32x4)); }

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

/* A positive float rounded to nearest even as f16: adding and taking away 1.5 * 2^23 times the f16's last place does it. */
PE_INLINE f32x8 nearest_half(f32x8 x) {
  i32x8 exponent = ((i32x8)x >> 23) - 127, normal = exponent > -14;
  f32x8 magic = (f32x8)(((exponent & normal) + (-14 & ~normal) + 13 + 127) << 23) * 1.5f, even = x + magic - magic;
  i32x8 over = even >= 0x1p16f;
  return (f32x8)(((i32x8)even & ~over) | (0x7f800000 & over));
}

/* The bits of an f16, for any float. */
PE_INLINE u32x8 half_bits(f32x8 x) {
  u32x8 sign = (u32x8)x & 0x80000000, magnitude = (u32x8)x ^ sign, nan = magnitude > 0x7f800000;
  u32x8 small = (u32x8)(nearest_half((f32x8)magnitude) * 0x1p-112f) >> 13;
  u32x8 special = magnitude >= 0x47800000; /* 2^16 */
  u32x8 bits = (small & ~special) | (0x7c00 & special);
  return ((bits | sign >> 16) & ~nan) | (0x7fff & nan);
}

#endif
