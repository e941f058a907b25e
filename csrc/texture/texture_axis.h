/* texture_axis.h: from coordinates to texel indices, one axis of all lanes at a time.
 *
 * Positions are exact: a coordinate with the bits that hardware keeps, times an extent, fits a double.  Loops run over all 32
 * lanes and take no branches, so that compilers make vectors of them; whatever a lane holds, its indices end up inside the level.
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
  int32_t part[PE_LANES]; /* weight of the second in 256ths */
} pe_axis;

/* How an axis is read. */
typedef struct pe_axis_rule {
  uint32_t mode; /* PE_ADDRESS_* */
  uint32_t extent;
  double grain, scale;   /* steps of a coordinate from 0 to 1, and texels */
  const int32_t *offset; /* in texels */
} pe_axis_rule;

PE_INLINE bool pe_repeats(uint32_t mode) { return mode == PE_ADDRESS_WRAP || mode == PE_ADDRESS_MIRROR; }

/* A sampler as a texture takes it.  Nothing repeats unless coordinates are normalized; at several mip levels they are fractions
 * all the same. */
PE_INLINE pe_sampler pe_in_force(const pe_sampler *sampler, const pe_texture *texture) {
  pe_sampler s = *sampler;
  s.normalized &= texture->sampler.normalized;
  for (uint32_t k = 0; k < 3; k++)
    if (pe_repeats(s.address[k]) && !s.normalized) s.address[k] = PE_ADDRESS_CLAMP;
  s.normalized |= texture->memory.levels > 1;
  return s;
}

#define PE_GRAIN 0x1p21 /* a coordinate's fraction has 21 bits; those of wide textures, normalized, have more */
#define PE_FINE_GRAIN 0x1p22
#define PE_FINEST_GRAIN 0x1p23
#define PE_WIDE_EXTENT 8192
#define PE_WIDEST_EXTENT 65536

PE_INLINE pe_axis_rule pe_rule(uint32_t mode, bool normalized, uint32_t extent, const int32_t *offset) {
  double wide = extent > PE_WIDEST_EXTENT ? PE_FINEST_GRAIN : PE_FINE_GRAIN;
  double grain = normalized && extent > PE_WIDE_EXTENT ? wide : PE_GRAIN;
  return (pe_axis_rule){mode, extent, grain, normalized ? extent : 1, offset};
}

/* A coordinate in texels; NaN and subnormal numbers count as 0. */
PE_INLINE double pe_in_texels(double u, const pe_axis_rule *rule) {
  double given = __builtin_fabs(u) >= 0x1p-126 ? u : 0;
  return __builtin_floor(given * rule->grain) / rule->grain * rule->scale;
}

/* The position of each coordinate in texels, within one period, or kept near the level where nothing repeats. */
PE_INLINE void pe_positions(double *restrict p, const double *restrict u, const pe_axis_rule *rule) {
  const int32_t *restrict offset = rule->offset;
  double extent = rule->extent;
  if (!pe_repeats(rule->mode)) {
    for (uint32_t i = 0; i < PE_LANES; i++) {
      double at = pe_in_texels(u[i], rule) + offset[i];
      at = at < -2 ? -2 : at;
      p[i] = at > extent + 2 ? extent + 2 : at;
    }
    return;
  }
  double period = rule->mode == PE_ADDRESS_MIRROR ? 2 * extent : extent, last = nextafter(period, 0);
  for (uint32_t i = 0; i < PE_LANES; i++) {
    double at =
        pe_in_texels(__builtin_fabs(u[i]) < 0x1p24 ? u[i] : 0, rule) + offset[i]; /* f32 from 2^24 on are even integers */
    at -= __builtin_floor(at / period) * period;
    at += at < 0 ? period : 0; /* the quotient was rounded up to a whole one */
    p[i] = at > last ? last : at;
  }
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
  if (rule->mode == PE_ADDRESS_MIRROR)
    for (uint32_t i = 0; i < PE_LANES; i++) {
      int32_t v = at[i] < 0 ? at[i] + 2 * extent : at[i] >= 2 * extent ? at[i] - 2 * extent : at[i];
      at[i] = v >= extent ? 2 * extent - 1 - v : v;
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
    axis->part[i] = (int32_t)(fixed - whole * 256);
    axis->at[0][i] = (int32_t)whole;
  }
  for (uint32_t i = 0; i < PE_LANES; i++) axis->at[1][i] = axis->at[0][i] + 1;
}

/* Integer coordinates are indices; what is outside is clamped, or there is nothing. */
PE_INLINE void pe_axis_integer(pe_axis *restrict axis, const uint32_t *restrict u, const pe_axis_rule *rule, bool clamps) {
  const int32_t *restrict offset = rule->offset;
  int64_t last = (int64_t)rule->extent - 1;
  for (uint32_t i = 0; i < PE_LANES; i++) {
    int64_t at = (int64_t)(int32_t)u[i] + offset[i], inside = at < 0 ? 0 : at > last ? last : at;
    axis->outside[0][i] = !clamps && at != inside;
    axis->at[0][i] = (int32_t)inside;
  }
}

#endif
