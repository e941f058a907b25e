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

/* How floats of a format are added up: bits below the leading one, of the largest texel and of the result, and least exponents.
 * Results below `least` are zero. */
typedef struct pe_fineness {
  int32_t texel, least_texel, result, least_result;
  double least;
  bool by_fours; /* planes are aligned to pe_of_four of their exponents */
} pe_fineness;

/* The sum of every lane: so many units of 2^exponent. */
typedef struct pe_texel_sum {
  double units[PE_LANES];
  int32_t exponent[PE_LANES];
} pe_texel_sum;

#define PE_EMPTY INT32_MIN /* the exponent of a sum of nothing */

PE_INLINE pe_fineness pe_fineness_of(const pe_texture *t, bool srgb) {
  if (srgb) return (pe_fineness){7, -126, 10, -14, 0, true};
  if (t->memory.bits == 16) return (pe_fineness){14, -14, 10, -14, 0, false};
  return (pe_fineness){27, -126, 23, -126, 0x1p-126, false};
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

/* Add a plane of `count` texels: their numbers, exponents and weights.  Texels without weight have no part in it. */
PE_INLINE void pe_add_plane(pe_texel_sum *restrict sum, uint32_t count, double number[][PE_LANES],
                            int32_t exponent[][PE_LANES], int32_t weight[][PE_LANES], pe_fineness fine) {
  int32_t aligned[PE_LANES];
  double units[PE_LANES];
  pe_align(aligned, count, exponent, weight, fine.least_texel);
  pe_add_aligned(units, count, number, weight, aligned, fine.texel);
  for (uint32_t i = 0; i < PE_LANES; i++) {
    int32_t before = sum->exponent[i], own = aligned[i], here = fine.by_fours && own != PE_EMPTY ? pe_of_four(own) : own;
    int32_t coarse = here > before ? here : before;
    int32_t down_before = before == PE_EMPTY ? 0 : before - coarse, down_here = own == PE_EMPTY ? 0 : own - coarse;
    sum->units[i] = pe_cut(sum->units[i] * pe_power(down_before)) + pe_cut(units[i] * pe_power(down_here));
    sum->exponent[i] = coarse;
  }
}

/* A sum that is not rounded yet, as the bits of f32: to so many bits behind the leading one. */
PE_INLINE void pe_round_units(uint32_t *restrict bits, const double *restrict value, pe_fineness fine) {
  uint32_t nan = fine.result == 23 ? 0x7fffffff : 0x7fffe000;
  for (uint32_t i = 0; i < PE_LANES; i++) {
    double magnitude = __builtin_fabs(value[i]), infinite = __builtin_inf();
    int32_t exponent = (int32_t)(pe_double_bits(magnitude) >> 52) - 1023;
    int32_t last = (exponent > fine.least_result ? exponent : fine.least_result) - fine.result;
    double rounded = __builtin_floor(magnitude * pe_power(-last) + 0.5) * pe_power(last);
    rounded = rounded < fine.least ? 0 : rounded;
    rounded = magnitude == infinite ? infinite : rounded;
    uint32_t found = pe_float_bits((float)__builtin_copysign(rounded, value[i]));
    bits[i] = magnitude == magnitude ? found : nan;
  }
}

PE_INLINE void pe_round_sum(uint32_t *restrict bits, const pe_texel_sum *restrict sum, pe_fineness fine) {
  double value[PE_LANES];
  for (uint32_t i = 0; i < PE_LANES; i++) {
    int32_t exponent = sum->exponent[i];
    value[i] = sum->units[i] * pe_power(exponent == PE_EMPTY ? 0 : exponent - fine.texel - 8);
  }
  pe_round_units(bits, value, fine);
}

/* The same of one plane, without a sum of several. */
PE_INLINE void pe_sum_of_plane(uint32_t *restrict bits, double number[][PE_LANES], int32_t exponent[][PE_LANES],
                               int32_t weight[][PE_LANES], pe_fineness fine) {
  int32_t aligned[PE_LANES];
  double value[PE_LANES];
  pe_align(aligned, PE_PLANE, exponent, weight, fine.least_texel);
  pe_add_aligned(value, PE_PLANE, number, weight, aligned, fine.texel);
  for (uint32_t i = 0; i < PE_LANES; i++) value[i] *= pe_power(aligned[i] == PE_EMPTY ? 0 : aligned[i] - fine.texel - 8);
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
