/* texture_border.h: the border colour, as a formatted store would write it. */
#ifndef PTXEMU_TEXTURE_BORDER_H
#define PTXEMU_TEXTURE_BORDER_H
#include <math.h>
#include "texture_texel.h"

/* A component as a number that filters add up, and its exponent in sums of floats. */
typedef struct pe_border {
  double number;
  int32_t exponent;
} pe_border;

/* The sRGB byte that is nearest to a linear number. */
PE_INLINE uint32_t pe_srgb_byte(double linear) {
  double encoded = linear <= 0.0031308 ? 12.92 * linear : 1.055 * pow(linear, 1 / 2.4) - 0.055;
  return (uint32_t)(255 * encoded + 0.5);
}

PE_INLINE pe_border pe_float_border(double value) { return (pe_border){value, pe_exponent(pe_float_bits((float)value))}; }

PE_INLINE pe_border pe_border_of(const pe_texture *t, const pe_sampler *s, uint32_t component) {
  float value = s->border[component];
  if (t->kind == PE_KIND_UINT || t->kind == PE_KIND_SINT) return pe_float_border(0);
  if (t->kind == PE_KIND_FLOAT)
    return pe_float_border(t->memory.bits == 16 ? pe_f16_value(pe_f16_cut(pe_float_bits(value))) : value);
  float least = t->kind == PE_KIND_SNORM ? -1 : 0, within = value > least ? value : least; /* not NaN */
  within = within < 1 ? within : 1;
  if (pe_is_srgb(t, component)) {
    uint32_t byte = pe_srgb_byte(within);
    return (pe_border){pe_srgb[byte], pe_srgb_exponent[byte]};
  }
  double stored = pe_normalized_cut(__builtin_fabsf(within), (uint32_t)pe_kind_scale(t, false), t->memory.bits);
  return pe_float_border(within < 0 ? -stored : stored);
}

#endif
