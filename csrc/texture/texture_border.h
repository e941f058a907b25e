/* texture_border.h: the border colour, as a formatted store would write it. */
#ifndef PTXEMU_TEXTURE_BORDER_H
#define PTXEMU_TEXTURE_BORDER_H
#include "texture_texel.h"

/* The leading bits of a float, so many behind the first one. */
PE_INLINE float pe_leading(float value, uint32_t bits) { return pe_float(pe_float_bits(value) & ~0u << (23 - bits)); }

/* The border colour's component as a number that filters add up. */
PE_INLINE double pe_border_number(const pe_texture *t, const pe_sampler *s, uint32_t component) {
  bool srgb = t->srgb && component < 3;
  float value = s->border[component];
  if (t->kind == PE_KIND_UINT || t->kind == PE_KIND_SINT) return 0;
  if (t->kind == PE_KIND_FLOAT) return t->memory.bits == 16 ? pe_f16_value(pe_f16_cut(pe_float_bits(value))) : value;
  float least = t->kind == PE_KIND_SNORM ? -1 : 0, within = value > least ? value : least; /* not NaN */
  within = within < 1 ? within : 1;
  if (srgb) return pe_leading(within, 7);
  double stored = pe_normalized_cut(__builtin_fabsf(within), (uint32_t)pe_kind_scale(t, srgb), t->memory.bits);
  return within < 0 ? -stored : stored;
}

PE_INLINE int32_t pe_border_exponent(double border) { return (int32_t)(pe_float_bits((float)border) >> 23 & 255) - 127; }

#endif
