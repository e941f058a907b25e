/* texture_sum.h: weighted sums of texels with the bits of a texture unit (docs/semantics.md, "Linear filtering").
 *
 * Weights are whole numbers, 256ths.  Normalized integers are added up exactly, and the sum has 16 bits.  Floats go by planes of up
 * to four texels: those of a plane are cut to multiples of a unit that follows from the largest one, and added up; then planes
 * are cut to the coarser unit of two, and added up.  The sum is rounded once, ties away from zero.
 */
#ifndef PTXEMU_TEXTURE_SUM_H
#define PTXEMU_TEXTURE_SUM_H
#include <stdbool.h>
#include "format.h"
#include "texture_texel.h"

#define PE_PLANE 4 /* texels */

/* How floats of a format are added up: bits below the leading one, of the largest texel and of the result, and least exponents. */
typedef struct pe_fineness {
  int32_t texel, least_texel, result, least_result;
  bool words;    /* f32: results below the least normal number are zero */
  bool by_fours; /* planes are aligned to pe_of_four of their exponents */
} pe_fineness;

/* The sum of every lane: so many units of 2^exponent. */
typedef struct pe_texel_sum {
  double units[PE_LANES];
  int32_t exponent[PE_LANES];
} pe_texel_sum;

#define PE_EMPTY INT32_MIN /* the exponent of a sum of nothing */

PE_INLINE pe_fineness pe_fineness_of(const pe_texture *t, bool srgb) {
  if (srgb) return (pe_fineness){7, -126, 10, -14, false, true};
  if (t->memory.bits == 16) return (pe_fineness){14, -14, 10, -14, false, false};
  return (pe_fineness){27, -126, 23, -126, true, false};
}

PE_INLINE void pe_begin_sum(pe_texel_sum *sum) {
  for (uint32_t i = 0; i < PE_LANES; i++) sum->units[i] = -0.0, sum->exponent[i] = PE_EMPTY; /* negative zeros stay so */
}

/* 2^exponent, or 0 far below. */
PE_INLINE double pe_power(int32_t exponent) {
  uint64_t bits = exponent < -1022 ? 0 : (uint64_t)(exponent + 1023) << 52;
  return pe_double(bits);
}

PE_INLINE double pe_cut(double value) { return __builtin_trunc(value); }

/* Exponents of numbers: those of f32, at most PE_EXPONENT_OF_INFINITY; zeros and subnormal numbers have -127. */
PE_INLINE void pe_exponents(int32_t *restrict exponent, const uint32_t *restrict bits) {
  for (uint32_t i = 0; i < PE_LANES; i++) exponent[i] = pe_exponent(bits[i]);
}

/* The exponent that a plane's texels are aligned to: the largest of those with a weight. */
PE_INLINE void pe_align(int32_t *restrict aligned, uint32_t count, int32_t exponent[][PE_LANES], int32_t weight[][PE_LANES],
                        int32_t least) {
  for (uint32_t i = 0; i < PE_LANES; i++) aligned[i] = PE_EMPTY;
  for (uint32_t c = 0; c < count; c++)
    for (uint32_t i = 0; i < PE_LANES; i++) {
      int32_t own = exponent[c][i] > least ? exponent[c][i] : least;
      own = weight[c][i] ? own : PE_EMPTY;
      aligned[i] = own > aligned[i] ? own : aligned[i];
    }
}

/* Add up a plane in units of 2^(aligned - fine). */
PE_INLINE void pe_add_aligned(double *restrict units, uint32_t count, double number[][PE_LANES], int32_t weight[][PE_LANES],
                              const int32_t *restrict aligned, int32_t fine) {
  double scale[PE_LANES];
  for (uint32_t i = 0; i < PE_LANES; i++) {
    units[i] = -0.0;
    scale[i] = pe_power(aligned[i] == PE_EMPTY ? 0 : fine - aligned[i]);
  }
  for (uint32_t c = 0; c < count; c++)
    for (uint32_t i = 0; i < PE_LANES; i++) {
      int32_t share = weight[c][i];
      double term = share * pe_cut(number[c][i] * scale[i]);
      units[i] += share ? term : -0.0;
    }
}

/* The least of four exponents, the largest of which is a multiple of four. */
PE_INLINE int32_t pe_of_four(int32_t exponent) { return ((exponent + 3) & ~3) - 3; }

/* Add a plane's units of 2^(aligned - fine.texel). */
PE_INLINE void pe_join_plane(pe_texel_sum *restrict sum, const double *restrict units, const int32_t *restrict aligned,
                             pe_fineness fine) {
  for (uint32_t i = 0; i < PE_LANES; i++) {
    int32_t before = sum->exponent[i], own = aligned[i], here = fine.by_fours && own != PE_EMPTY ? pe_of_four(own) : own;
    int32_t coarse = here > before ? here : before;
    int32_t down_before = before == PE_EMPTY ? 0 : before - coarse, down_here = own == PE_EMPTY ? 0 : own - coarse;
    sum->units[i] = pe_cut(sum->units[i] * pe_power(down_before)) + pe_cut(units[i] * pe_power(down_here));
    sum->exponent[i] = coarse;
  }
}

/* Add a plane of `count` texels: their numbers, exponents and weights.  Texels without weight have no part in it. */
PE_INLINE void pe_add_plane(pe_texel_sum *restrict sum, uint32_t count, double number[][PE_LANES],
                            int32_t exponent[][PE_LANES], int32_t weight[][PE_LANES], pe_fineness fine) {
  int32_t aligned[PE_LANES];
  double units[PE_LANES];
  pe_align(aligned, count, exponent, weight, fine.least_texel);
  pe_add_aligned(units, count, number, weight, aligned, fine.texel);
  pe_join_plane(sum, units, aligned, fine);
}

/* A sum that is not rounded yet, as the bits of f32: to so many bits behind the leading one. */
PE_INLINE void pe_round_units(uint32_t *restrict bits, const double *restrict value, pe_fineness fine) {
  for (uint32_t i = 0; i < PE_LANES; i++) {
    double magnitude = __builtin_fabs(value[i]), infinite = __builtin_inf();
    int32_t exponent = (int32_t)(pe_double_bits(magnitude) >> 52) - 1023;
    int32_t last = (exponent > fine.least_result ? exponent : fine.least_result) - fine.result;
    double rounded = __builtin_floor(magnitude * pe_power(-last) + 0.5) * pe_power(last);
    rounded = magnitude == infinite ? infinite : rounded;
    uint32_t found = pe_float_bits((float)__builtin_copysign(rounded, value[i]));
    bits[i] = magnitude == magnitude ? found : 0x7fffe000;
  }
}

/* ---- f32 ------------------------------------------------------------------------------------------------------------- */

/* Bits of f32, and of the f64 that has 29 fraction bits more. */
#define PE_EXPONENT_BITS 0x7f800000u
#define PE_LEAST_EXPONENT 0x00800000u
#define PE_SIGN_BIT 0x80000000u
#define PE_MORE_BITS 29
#define PE_SPARE_BITS 4 /* of a plane's largest texel, behind its last one */

/* Weights, as they are multiplied. */
typedef struct pe_shares {
  double of[PE_PLANE][PE_LANES];
} pe_shares;

PE_INLINE void pe_find_shares(pe_shares *restrict shares, uint32_t count, int32_t weight[][PE_LANES]) {
  for (uint32_t c = 0; c < count; c++)
    for (uint32_t i = 0; i < PE_LANES; i++) shares->of[c][i] = weight[c][i];
}

PE_INLINE uint32_t pe_exponent_bits(uint32_t bits) {
  uint32_t own = bits & PE_EXPONENT_BITS;
  return own > PE_LEAST_EXPONENT ? own : PE_LEAST_EXPONENT;
}

/* The exponent that texels are aligned to, as bits: 0 where none has a weight. */
PE_INLINE void pe_align_words(uint32_t *restrict top, uint32_t count, uint32_t word[][PE_LANES],
                              int32_t weight[][PE_LANES]) {
  memset(top, 0, PE_LANES * sizeof *top);
  for (uint32_t c = 0; c < count; c++)
    for (uint32_t i = 0; i < PE_LANES; i++) {
      uint32_t own = pe_exponent_bits(word[c][i]) & (0u - (weight[c][i] != 0));
      top[i] = own > top[i] ? own : top[i];
    }
}

/* Cut each texel to the unit of the largest; those without weight become -0. */
PE_INLINE void pe_cut_words(float cut[][PE_LANES], const uint32_t *restrict top, uint32_t count, uint32_t word[][PE_LANES],
                            int32_t weight[][PE_LANES]) {
  for (uint32_t c = 0; c < count; c++)
    for (uint32_t i = 0; i < PE_LANES; i++) {
      int32_t lost = (int32_t)((top[i] - pe_exponent_bits(word[c][i])) >> 23) - PE_SPARE_BITS;
      lost = lost < 0 ? 0 : lost > 23 ? 31 : lost; /* all but the sign */
      uint32_t kept = word[c][i] & UINT32_MAX << lost;
      cut[c][i] = pe_float(weight[c][i] ? kept : PE_SIGN_BIT);
    }
}

/* The sum of a plane of f32 texels in 256ths, exact, and the exponent that they are aligned to, as bits. */
PE_INLINE void pe_add_words(double *restrict total, uint32_t *restrict top, uint32_t count, uint32_t word[][PE_LANES],
                            int32_t weight[][PE_LANES], const pe_shares *restrict shares) {
  float cut[PE_PLANE][PE_LANES];
  pe_align_words(top, count, word, weight);
  pe_cut_words(cut, top, count, word, weight);
  for (uint32_t i = 0; i < PE_LANES; i++) total[i] = -0.0;
  for (uint32_t c = 0; c < count; c++)
    for (uint32_t i = 0; i < PE_LANES; i++) total[i] += shares->of[c][i] * cut[c][i];
}

/* Add a plane of f32 texels. */
PE_INLINE void pe_add_plane_of_words(pe_texel_sum *restrict sum, uint32_t count, uint32_t word[][PE_LANES],
                                     int32_t weight[][PE_LANES], const pe_shares *restrict shares, pe_fineness fine) {
  double units[PE_LANES];
  uint32_t top[PE_LANES];
  int32_t aligned[PE_LANES];
  pe_add_words(units, top, count, word, weight, shares);
  for (uint32_t i = 0; i < PE_LANES; i++) {
    int32_t exponent = (int32_t)(top[i] >> 23) - 127;
    aligned[i] = top[i] ? exponent : PE_EMPTY;
    units[i] *= pe_power(top[i] ? fine.texel - exponent : 0);
  }
  pe_join_plane(sum, units, aligned, fine);
}

/* Sums in 256ths as f32: halves away from zero, what is below the least normal number 0. */
PE_INLINE void pe_round_words(uint32_t *restrict bits, const double *restrict total) {
  const uint64_t half = 1ull << (PE_MORE_BITS - 1);
  const double least = 0x1p-126, rises = 0x1p-126 - 0x1p-150;
  for (uint32_t i = 0; i < PE_LANES; i++) {
    double value = total[i] * 0x1p-8, magnitude = __builtin_fabs(value);
    double rounded = pe_double((pe_double_bits(magnitude) + half) >> PE_MORE_BITS << PE_MORE_BITS);
    rounded = magnitude < least ? magnitude < rises ? 0 : least : rounded;
    uint32_t found = pe_float_bits((float)__builtin_copysign(rounded, value));
    bits[i] = magnitude == magnitude ? found : 0x7fffffff;
  }
}

/* ---- results --------------------------------------------------------------------------------------------------------- */

PE_INLINE void pe_round_sum(uint32_t *restrict bits, const pe_texel_sum *restrict sum, pe_fineness fine) {
  double value[PE_LANES];
  int32_t least = fine.texel + (fine.words ? 0 : 8);
  for (uint32_t i = 0; i < PE_LANES; i++) {
    int32_t exponent = sum->exponent[i];
    value[i] = sum->units[i] * pe_power(exponent == PE_EMPTY ? 0 : exponent - least);
  }
  if (fine.words)
    pe_round_words(bits, value);
  else
    pe_round_units(bits, value, fine);
}

/* A sum of normalized integers, in 256ths of their own unit, as the bits of f32. */
PE_INLINE void pe_normalized_sum(uint32_t *restrict bits, const int32_t *restrict sum, uint32_t size, bool is_signed) {
  int32_t most = is_signed ? 32767 : 65535;
  for (uint32_t i = 0; i < PE_LANES; i++) {
    int32_t s = sum[i], value = (s + 128) >> 8;
    if (size == 8) value = is_signed ? s + (((s >> 4) + (s >> 12) + 4) >> 3) : (s * 257 + 128) >> 8;
    value = value < -most ? -most : value;
    bits[i] = pe_float_bits((float)value / (float)most);
  }
}

#endif
