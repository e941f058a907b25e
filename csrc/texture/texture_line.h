/* texture_line.h: the texels along an axis of a level, in 32 bits where that gives what texture_axis.h says. */
#ifndef PTXEMU_TEXTURE_LINE_H
#define PTXEMU_TEXTURE_LINE_H
#include "texture_axis.h"

#define PE_EACH_LANE for (uint32_t i = 0; i < PE_LANES; i++)
#define PE_MOST_TEXELS (1u << 22) /* of an axis: positions in 256ths fit an int */
#define PE_GRAIN_BITS 21          /* log2(PE_GRAIN) */

/* Two neighbours along an axis and the weight of the second in 256ths. */
typedef struct pe_line {
  int32_t at[2][PE_LANES];
  int32_t part[PE_LANES];
} pe_line;

/* Coordinates in texels that are clamped: f32 has room for every step. */
PE_INLINE void pe_find_clamped(pe_line *restrict l, const uint32_t *restrict coordinate, int32_t extent, bool linear) {
  float most = (float)(linear ? extent : extent - 1);
  PE_EACH_LANE {
    float u = pe_float(coordinate[i]), at = u > 0 ? u : 0; /* no NaN */
    at = at < most ? at : most;
    if (linear) {
      at *= 256;
      int32_t whole = (int32_t)at, fixed = whole - 128 + (at - (float)whole >= 0.5f); /* floor(at - 127.5) */
      int32_t first = fixed >> 8, second = first + 1;
      l->part[i] = fixed & 255;
      l->at[0][i] = first < 0 ? 0 : first;
      l->at[1][i] = second < extent ? second : extent - 1;
    } else {
      l->at[0][i] = (int32_t)at;
    }
  }
}

/* Fractions of an extent in steps of 2^-21: of what is between 0 and 1, or within a period of so many extents. */
PE_INLINE void pe_find_grains(int32_t *restrict grain, const uint32_t *restrict coordinate, uint32_t mode) {
  const float step = 1 << PE_GRAIN_BITS;
  if (mode == PE_ADDRESS_CLAMP) {
    PE_EACH_LANE {
      float u = pe_float(coordinate[i]), at = u > 0 ? u : 0; /* no NaN */
      grain[i] = (int32_t)((at < 1 ? at : 1) * step);
    }
    return;
  }
  float period = mode == PE_ADDRESS_MIRROR ? 2 : 1;
  int32_t within = ((int32_t)period << PE_GRAIN_BITS) - 1;
  PE_EACH_LANE {
    float u = pe_float(coordinate[i]), size = __builtin_fabsf(u);
    u = size >= 0x1p-126f ? u : 0;
    u = size < 0x1p24f ? u : 0; /* f32 from 2^24 on are even integers */
    float at = (u - __builtin_truncf(u / period) * period) * step;
    int32_t whole = (int32_t)at;
    grain[i] = (whole - ((float)whole > at)) & within;
  }
}

/* Coordinates that are fractions of an extent that is not wide.  A position is grain * extent / 2^21, in two parts, which fit. */
PE_INLINE void pe_find_fractions(pe_line *restrict l, const uint32_t *restrict coordinate, const pe_axis_rule *rule,
                                 bool linear) {
  enum { LOW_BITS = PE_GRAIN_BITS - 10 };
  int32_t grain[PE_LANES], extent = (int32_t)rule->extent;
  uint32_t outside[PE_LANES];
  pe_find_grains(grain, coordinate, rule->mode);
  PE_EACH_LANE {
    int32_t high = (grain[i] >> LOW_BITS) * extent, low = (grain[i] & ((1 << LOW_BITS) - 1)) * extent >> LOW_BITS;
    int32_t fixed = (high + low - 510) >> 2; /* floor(256 * position - 127.5) */
    l->at[0][i] = linear ? fixed >> 8 : (high + low) >> 10;
    l->at[1][i] = (fixed >> 8) + 1;
    l->part[i] = fixed & 255;
  }
  for (uint32_t n = 0; n < (linear ? 2 : 1); n++) pe_place_indices(l->at[n], outside, rule);
}

/* Coordinates in texels. */
PE_INLINE void pe_find_near(pe_line *restrict l, const uint32_t *restrict coordinate, float extent, bool linear) {
  PE_EACH_LANE {
    float u = pe_float(coordinate[i]), at = __builtin_fabsf(u) >= 0x1p-126f ? u : 0; /* no NaN, nothing subnormal */
    at = at < -2 ? -2 : at;
    at = at > extent + 2 ? extent + 2 : at;
    at *= linear ? 256 : 1;
    int32_t whole = (int32_t)at;
    whole -= (float)whole > at;
    if (linear) whole += (at - (float)whole >= 0.5f) - 128; /* floor(at - 127.5) */
    l->at[0][i] = linear ? whole >> 8 : whole;
    l->part[i] = whole & 255;
  }
}

/* Coordinates that are fractions of any extent. */
PE_INLINE void pe_find_normalized(pe_line *restrict l, const uint32_t *restrict coordinate, const pe_axis_rule *rule,
                                  bool linear) {
  double u[PE_LANES], p[PE_LANES];
  PE_EACH_LANE u[i] = pe_float(coordinate[i]);
  pe_positions(p, u, rule);
  PE_EACH_LANE {
    double at = linear ? p[i] * 256 - 127.5 : p[i];
    int32_t whole = (int32_t)at;
    whole -= whole > at;
    l->at[0][i] = linear ? whole >> 8 : whole;
    l->part[i] = whole & 255;
  }
}

/* The texels of one axis, by the rule; lanes that need the border colour. */
PE_INLINE uint32_t pe_find_any_line(pe_line *restrict l, const uint32_t *coordinate, const pe_axis_rule *rule, bool linear) {
  uint32_t outside[PE_LANES], any = 0;
  if (rule->scale == 1 && !pe_repeats(rule->mode))
    pe_find_near(l, coordinate, (float)rule->extent, linear);
  else
    pe_find_normalized(l, coordinate, rule, linear);
  if (linear) PE_EACH_LANE l->at[1][i] = l->at[0][i] + 1;
  for (uint32_t n = 0; n < (linear ? 2 : 1); n++) {
    pe_place_indices(l->at[n], outside, rule);
    if (rule->mode == PE_ADDRESS_BORDER) PE_EACH_LANE any |= outside[i] << i;
  }
  return any;
}

PE_INLINE uint32_t pe_find_line(pe_line *restrict l, const uint32_t *coordinate, const pe_axis_rule *rule, bool normalized,
                                bool linear) {
  if (!normalized && rule->mode == PE_ADDRESS_CLAMP)
    pe_find_clamped(l, coordinate, (int32_t)rule->extent, linear);
  else if (normalized && rule->mode != PE_ADDRESS_BORDER && rule->extent <= PE_WIDE_EXTENT)
    pe_find_fractions(l, coordinate, rule, linear);
  else
    return pe_find_any_line(l, coordinate, rule, linear);
  return 0;
}

#endif
