/* texture_axis.h: from coordinates to texel indices, one axis of all lanes at a time.
 *
 * Positions are exact: an f32 coordinate times an extent fits a double.  Loops run over all 32 lanes and take no branches,
 * so that compilers make vectors of them; whatever a lane holds, its indices end up inside the level.
 */
#ifndef PTXEMU_TEXTURE_AXIS_H
#define PTXEMU_TEXTURE_AXIS_H
#include <math.h>
#include <stdbool.h>
#include "format.h"
#include "texture.h"

#define PE_LANES 32

/* Two neighbouring texels along an axis.  The border stands for those that are outside. */
typedef struct pe_axis {
  int32_t at[2][PE_LANES];
  uint32_t outside[2][PE_LANES];
  double part[PE_LANES]; /* weight of the second, a multiple of 1/256 */
} pe_axis;

/* How an axis is read. */
typedef struct pe_axis_rule {
  uint32_t mode; /* PE_ADDRESS_* */
  uint32_t extent;
  double scale;          /* from coordinates to texels */
  const int32_t *offset; /* in texels */
} pe_axis_rule;

PE_INLINE bool pe_repeats(uint32_t mode) { return mode == PE_ADDRESS_WRAP || mode == PE_ADDRESS_MIRROR; }

/* The rule of an axis: nothing repeats unless coordinates are normalized. */
PE_INLINE pe_axis_rule pe_rule(uint32_t mode, bool normalized, uint32_t extent, const int32_t *offset) {
  if (pe_repeats(mode) && !normalized) mode = PE_ADDRESS_CLAMP;
  return (pe_axis_rule){mode, extent, normalized ? extent : 1, offset};
}

/* The position of each coordinate in texels, folded into one period, or kept near the level where nothing repeats. */
PE_INLINE void pe_positions(double *restrict p, const double *restrict u, const pe_axis_rule *rule) {
  const int32_t *restrict offset = rule->offset;
  double scale = rule->scale, extent = rule->extent;
  if (!pe_repeats(rule->mode)) {
    for (uint32_t i = 0; i < PE_LANES; i++) {
      double at = (u[i] == u[i] ? u[i] : 0) * scale + offset[i];
      at = at < -2 ? -2 : at;
      p[i] = at > extent + 2 ? extent + 2 : at;
    }
    return;
  }
  double period = rule->mode == PE_ADDRESS_MIRROR ? 2 * extent : extent, last = nextafter(period, 0);
  for (uint32_t i = 0; i < PE_LANES; i++) {
    double at = (__builtin_fabs(u[i]) < 0x1p24 ? u[i] : 0) * scale + offset[i]; /* f32 from 2^24 on are even integers */
    at -= __builtin_floor(at / period) * period;
    at += at < 0 ? period : 0; /* the quotient was rounded up to a whole one */
    p[i] = at > last ? last : at;
  }
  if (rule->mode == PE_ADDRESS_MIRROR)
    for (uint32_t i = 0; i < PE_LANES; i++) p[i] = p[i] > extent ? period - p[i] : p[i];
}

PE_INLINE void pe_clamp_indices(int32_t *restrict at, int32_t extent) {
  for (uint32_t i = 0; i < PE_LANES; i++) {
    int32_t v = at[i] < 0 ? 0 : at[i];
    at[i] = v < extent ? v : extent - 1;
  }
}

/* Indices at most one texel outside, by address mode. */
PE_INLINE void pe_place_indices(int32_t *restrict at, uint32_t *restrict outside, const pe_axis_rule *rule) {
  int32_t extent = (int32_t)rule->extent;
  if (rule->mode == PE_ADDRESS_WRAP)
    for (uint32_t i = 0; i < PE_LANES; i++) {
      int32_t v = at[i] < 0 ? at[i] + extent : at[i];
      at[i] = v >= extent ? v - extent : v;
    }
  if (rule->mode == PE_ADDRESS_BORDER)
    for (uint32_t i = 0; i < PE_LANES; i++) outside[i] = (uint32_t)at[i] >= (uint32_t)extent;
  pe_clamp_indices(at, extent);
}

/* The texel that a position lies in. */
PE_INLINE void pe_axis_point(pe_axis *restrict axis, const double *restrict p) {
  for (uint32_t i = 0; i < PE_LANES; i++) axis->at[0][i] = (int32_t)__builtin_floor(p[i]);
}

/* The two texels whose centres are around a position; fractions have 8 bits, rounded to nearest. */
PE_INLINE void pe_axis_linear(pe_axis *restrict axis, const double *restrict p) {
  for (uint32_t i = 0; i < PE_LANES; i++) {
    double fixed = __builtin_floor(p[i] * 256 - 127.5), whole = __builtin_floor(fixed * 0x1p-8);
    axis->part[i] = (fixed - whole * 256) * 0x1p-8;
    axis->at[0][i] = (int32_t)whole;
  }
  for (uint32_t i = 0; i < PE_LANES; i++) axis->at[1][i] = axis->at[0][i] + 1;
}

/* The same two texels, found without rounding. */
PE_INLINE void pe_axis_gather(pe_axis *restrict axis, const double *restrict p) {
  for (uint32_t i = 0; i < PE_LANES; i++) axis->at[0][i] = (int32_t)__builtin_floor(p[i] - 0.5);
  for (uint32_t i = 0; i < PE_LANES; i++) axis->at[1][i] = axis->at[0][i] + 1;
}

/* Integer coordinates are indices; there is nothing outside. */
PE_INLINE void pe_axis_integer(pe_axis *restrict axis, const uint32_t *restrict u, const pe_axis_rule *rule) {
  const int32_t *restrict offset = rule->offset;
  uint32_t extent = rule->extent;
  for (uint32_t i = 0; i < PE_LANES; i++) {
    uint32_t at = u[i] + (uint32_t)offset[i];
    axis->outside[0][i] = at >= extent;
    axis->at[0][i] = at < extent ? (int32_t)at : 0;
  }
}

#endif
