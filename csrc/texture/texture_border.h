/* texture_border.h: the border colour, as a formatted store would write it. */
#ifndef PTXEMU_TEXTURE_BORDER_H
#define PTXEMU_TEXTURE_BORDER_H
#include "texture_texel.h"

/* A component as a number that filters add up, and its exponent in sums of floats. */
typedef struct pe_border {
  double number;
  int32_t exponent;
} pe_border;

PE_INLINE pe_border pe_float_border(double value) { return (pe_border){value, pe_exponent(pe_float_bits((float)value))}; }

PE_INLINE pe_border pe_border_of(const pe_texture *t, const pe_sampler *s, uint32_t component) {
  float value = s->border[component];
  if (t->kind == PE_KIND_UINT || t->kind == PE_KIND_SINT) return pe_float_border(0);
  if (t->kind == PE_KIND_FLOAT)
    return pe_float_border(t->memory.bits == 16 ? pe_f16_value(pe_f16_cut(pe_float_bits(value))) : value);
  if (pe_is_srgb(t, component)) {
    uint32_t byte = s->encoded_border[component];
    return (pe_border){pe_srgb[byte], pe_srgb_exponent[byte]};
  }
  float least = t->kind == PE_KIND_SNORM ? -1 : 0, within = value > least ? value : least; /* not NaN */
  within = within < 1 ? within : 1;
  double stored = pe_normalized_cut(__builtin_fabsf(within), (uint32_t)pe_kind_scale(t, false), t->memory.bits);
  return pe_float_border(within < 0 ? -stored : stored);
}

#endif
