/* texture_short.h: numbers with ten significant bits, of all lanes, as texture units have them where they find mip levels.
 *
 * A number is significand * 2^exponent, its significand from 512 to 1023, or zero.  Loops take no branches.
 */
#ifndef PTXEMU_TEXTURE_SHORT_H
#define PTXEMU_TEXTURE_SHORT_H
#include <stdbool.h>
#include "format.h"
#include "texture_texel.h"

#define PE_SHORT_BITS 10
#define PE_SHORT_LEAST (1 << (PE_SHORT_BITS - 1)) /* a significand */
#define PE_SHORT_ZERO (-4096)                     /* the exponent of zero, below all others */

typedef struct pe_shorts {
  int32_t significand[PE_LANES], exponent[PE_LANES];
} pe_shorts;

/* The magnitudes of f32 numbers times 2^scale, cut.  NaN and subnormal numbers count as zero, infinity as 2^128. */
PE_INLINE void pe_shorten(pe_shorts *restrict to, const float *restrict value, const int32_t *restrict scale) {
  for (uint32_t i = 0; i < PE_LANES; i++) {
    uint32_t bits = pe_float_bits(value[i]) & 0x7fffffff;
    bool counts = bits >= 0x00800000 && bits <= 0x7f800000;
    int32_t exponent = (int32_t)(bits >> 23) - 127 - (PE_SHORT_BITS - 1) + scale[i];
    to->significand[i] = counts ? (int32_t)(PE_SHORT_LEAST | (bits >> 14 & 511)) : 0;
    to->exponent[i] = counts ? exponent : PE_SHORT_ZERO;
  }
}

/* Numbers times an extent, of which ten bits count.  Partial products have three bits more than the result, which is rounded up
 * but for the last of these. */
PE_INLINE void pe_times_extent(pe_shorts *numbers, uint32_t extent) {
  int32_t last = 31 - __builtin_clz(extent), sum[PE_LANES] = {0};
  for (int32_t k = 0; k < PE_SHORT_BITS && k <= last; k++)
    if (extent >> (last - k) & 1)
      for (uint32_t i = 0; i < PE_LANES; i++) sum[i] += numbers->significand[i] << 3 >> k;
  for (uint32_t i = 0; i < PE_LANES; i++) {
    int32_t product = (sum[i] + 7) >> 3, over = product >= 2 * PE_SHORT_LEAST;
    numbers->significand[i] = product >> over;
    numbers->exponent[i] += last + over;
  }
}

PE_INLINE int32_t pe_bounded_shift(int32_t shift) { return shift < 31 ? shift : 31; }

/* Sums of numbers, or their differences in lanes where one is negative: they are aligned with one more bit, and cut. */
PE_INLINE void pe_add_shorts(pe_shorts *restrict to, const pe_shorts *a, const pe_shorts *b, const uint32_t *negative) {
  float sum[PE_LANES];
  int32_t top[PE_LANES];
  for (uint32_t i = 0; i < PE_LANES; i++) {
    int32_t first = a->exponent[i], second = b->exponent[i], most = first > second ? first : second;
    int32_t x = a->significand[i] << 1 >> pe_bounded_shift(most - first);
    int32_t y = b->significand[i] << 1 >> pe_bounded_shift(most - second);
    sum[i] = (float)(negative[i] ? x - y : x + y);
    top[i] = most - 1;
  }
  pe_shorten(to, sum, top);
}

#endif
