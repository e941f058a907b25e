/* matrix_factors.h: what tensor cores multiply, and how they round a sum. */
#ifndef PTXEMU_MATRIX_FACTORS_H
#define PTXEMU_MATRIX_FACTORS_H
#include "matrix_terms.h"

typedef struct doubles {
  f64x4 half[2];
} doubles;

/* What blocks of A and one of B are multiplied from: elements, and codes of their exponents.  `chosen`: the row of B for each
 * element of a sparse A; NULL: the row of its own number. */
typedef struct factors {
  uint32_t k; /* products of a block */
  const float *a, *b;
  const uint8_t *ca, *cb, *chosen;
} factors;

/* Those from the product x on, of the rows of A from `row` on. */
PE_INLINE factors factors_from(factors f, uint32_t x, uint32_t row) {
  uint32_t at = (row / TILE * f.k + x) * TILE + row % TILE, shared = f.chosen ? 0 : x * TILE;
  return (factors){f.k, f.a + at, f.b + shared, f.ca + at, f.cb + shared, f.chosen ? f.chosen + at : NULL};
}

/* Where the row of B is that element x of a row of A multiplies. */
PE_INLINE uint32_t row_of_b(const uint8_t *chosen, uint32_t x, uint32_t row) {
  return (chosen ? chosen[x * TILE + row] : x) * TILE;
}

PE_INLINE doubles doubles_of(i32x8 x) {
  return (doubles){{__builtin_convertvector(LOW(x), f64x4), __builtin_convertvector(HIGH(x), f64x4)}};
}

/* ---- results ------------------------------------------------------------------------------------------------------------ */

PE_INLINE bool is_half(const pe_mma_site *site) { return site->c == PE_TYPE_F16 && site->d == PE_TYPE_F16; }

/* Sums that are rounded to zero have lost their sign. */
PE_INLINE f32x8 positive_zero(f32x8 x) { return (f32x8)((i32x8)x & (((i32x8)x & 0x7fffffff) != 0)); }

PE_INLINE f32x8 halves(f64x4 low, f64x4 high) {
  u32x4 first = to_f16(low), second = to_f16(high);
  return from_f16(JOINED(first, second) << 16);
}

/* Toward zero to so many bits behind the point, of subnormal numbers to multiples of 2^-149. */
PE_INLINE f64x4 cut(f64x4 x, uint32_t bits, bool wild) {
  f64x4 kept = (f64x4)((u64x4)x & ~(((uint64_t)1 << (52 - bits)) - 1));
  if (!wild) return kept;
  u64x4 small = (u64x4)((u64x4)x << 1 < ((uint64_t)(1023 - 126) << 53));
  u64x4 subnormal =
      (u64x4)(__builtin_convertvector(__builtin_convertvector((f64x4)((u64x4)x & small) * 0x1p149, i32x4), f64x4) *
              0x1p-149);
  return (f64x4)(((u64x4)kept & ~small) | (subnormal & small));
}

/* total * 2^exponent as the type of the sum. */
PE_INLINE f32x8 rounded(const pe_mma_site *site, doubles total, i32x8 exponent, bool wild) {
  f64x4 low = total.half[0] * (f64x4)((__builtin_convertvector(LOW(exponent), i64x4) + 1023) << 52);
  f64x4 high = total.half[1] * (f64x4)((__builtin_convertvector(HIGH(exponent), i64x4) + 1023) << 52);
  if (is_half(site)) return positive_zero(halves(low, high));
  f32x4 first = __builtin_convertvector(cut(low, site->result, wild), f32x4);
  f32x4 second = __builtin_convertvector(cut(high, site->result, wild), f32x4);
  return positive_zero(JOINED(first, second));
}

#endif
