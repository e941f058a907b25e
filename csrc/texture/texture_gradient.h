/* texture_gradient.h: the mip level that follows from gradients (docs/semantics.md, "Mip levels and gradients").
 *
 * A level is the logarithm of the longest of dPdx, dPdy, and 11/16 of their sum and difference.  A length is the largest
 * component + 11/32 of the next + 1/4 of the least.  All are numbers of ten bits, rounded as was measured on sm_90.
 */
#ifndef PTXEMU_TEXTURE_GRADIENT_H
#define PTXEMU_TEXTURE_GRADIENT_H
#include "texture_short.h"

#define PE_NO_LEVEL (PE_SHORT_ZERO * 256) /* below all others, in 256ths */

/* How far each coordinate goes along one direction on the screen, in texels of level 0. */
typedef struct pe_slope {
  pe_shorts size[3];
  uint32_t negative[3][PE_LANES];
} pe_slope;

/* A component of a length: rounded * 2^exponent, more exactly in 16ths, and what a product of it is rounded by, in 512ths. */
typedef struct pe_part {
  int32_t rounded, sixteenths, rounding, exponent;
} pe_part;

/* A number as such a component, or 11/16 of it. */
PE_INLINE pe_part pe_part_of(int32_t significand, int32_t exponent, bool reduced) {
  if (!reduced) return (pe_part){significand, 16 * significand, 64, exponent};
  int32_t product = 11 * significand, below = product + 4 < 16 * PE_SHORT_LEAST;
  return (pe_part){(product + 4) >> (4 - below), product << below, 32 << below, exponent - below};
}

/* 11/32 of a component, and 1/4 of a smaller one, which is cut to half a unit, or a quarter if the product is below 256. */
PE_INLINE int32_t pe_small_parts(pe_part mid, pe_part least) {
  int32_t down = pe_bounded_shift(mid.exponent - least.exponent), fine = 11 * mid.rounded + 4 < 16 * PE_SHORT_LEAST;
  int32_t quarter = least.rounded >> pe_bounded_shift(down + 1 - fine) << (8 - fine);
  return (11 * mid.sixteenths + quarter + mid.rounding) >> 9;
}

/* Have the larger number first in each lane. */
PE_INLINE void pe_order_shorts(pe_shorts *restrict a, pe_shorts *restrict b) {
  for (uint32_t i = 0; i < PE_LANES; i++) {
    int32_t s = a->significand[i], t = b->significand[i], e = a->exponent[i], f = b->exponent[i];
    bool swap = f > e || (f == e && t > s);
    a->significand[i] = swap ? t : s;
    b->significand[i] = swap ? s : t;
    a->exponent[i] = swap ? f : e;
    b->exponent[i] = swap ? e : f;
  }
}

/* 256 times the logarithm of (256 + index) / 256. */
extern const uint8_t pe_level_part[256];

/* Raise levels, in 256ths, to the logarithm of a length, whose components lose their order. */
PE_INLINE void pe_raise_levels(int32_t *restrict level, pe_shorts c[3], uint32_t count, bool reduced) {
  int32_t length[PE_LANES], exponent[PE_LANES];
  if (count > 1) pe_order_shorts(&c[0], &c[1]);
  if (count > 2) {
    pe_order_shorts(&c[1], &c[2]);
    pe_order_shorts(&c[0], &c[1]);
  }
  for (uint32_t i = 0; i < PE_LANES; i++) {
    pe_part none = pe_part_of(0, PE_SHORT_ZERO, reduced), part[3] = {none, none, none};
    for (uint32_t k = 0; k < count; k++) part[k] = pe_part_of(c[k].significand[i], c[k].exponent[i], reduced);
    int32_t down = pe_bounded_shift(part[0].exponent - part[1].exponent);
    length[i] = part[0].rounded + (pe_small_parts(part[1], part[2]) >> down);
    exponent[i] = part[0].exponent;
  }
  for (uint32_t i = 0; i < PE_LANES; i++) {
    int32_t over = length[i] >= 2 * PE_SHORT_LEAST, whole = exponent[i] + PE_SHORT_BITS - 1 + over;
    int32_t found = whole * 256 + pe_level_part[length[i] >> (1 + over) & 255];
    level[i] = found > level[i] ? found : level[i];
  }
}

/* The levels that follow from two slopes, in 256ths.  In lanes of `apart` their sum and difference do not count. */
PE_INLINE void pe_gradient_levels(int32_t *restrict level, const pe_slope slope[2], uint32_t count, uint32_t apart) {
  pe_shorts c[3];
  int32_t both[PE_LANES];
  for (uint32_t i = 0; i < PE_LANES; i++) level[i] = PE_NO_LEVEL;
  for (uint32_t n = 0; n < 2; n++) {
    for (uint32_t k = 0; k < count; k++) c[k] = slope[n].size[k];
    pe_raise_levels(level, c, count, false);
  }
  for (uint32_t i = 0; i < PE_LANES; i++) both[i] = level[i];
  for (uint32_t difference = 0; difference < 2; difference++) {
    uint32_t negative[PE_LANES];
    for (uint32_t k = 0; k < count; k++) {
      for (uint32_t i = 0; i < PE_LANES; i++) negative[i] = slope[0].negative[k][i] ^ slope[1].negative[k][i] ^ difference;
      pe_add_shorts(&c[k], &slope[0].size[k], &slope[1].size[k], negative);
    }
    pe_raise_levels(both, c, count, true);
  }
  for (uint32_t i = 0; i < PE_LANES; i++) level[i] = apart >> i & 1 ? level[i] : both[i];
}

#endif
