/* format.c: formatted stores. */
#include "format.h"
#include "surface_access.h"

uint16_t pe_f16_from_f32(float value) { return pe_f16_bits(pe_float_bits(value)); }
uint16_t pe_bf16_from_f32(float value) { return pe_bf16_bits(pe_float_bits(value)); }
float pe_f32_from_f16(uint16_t bits) { return pe_f16_value(bits); }

static uint32_t low_bits(uint32_t bits) { return 0xffffffffu >> (32 - bits); }

/* 0 <= value < 2^51 rounded to nearest even: the sum's unit in the last place is 1. */
PE_INLINE double round_even(double value) { return (value + 0x1p52) - 0x1p52; }

/* min(|value|, 1) * scale, rounded; NaN gives 0.  Compares bits, so that compilers make vectors of it. */
PE_INLINE uint32_t normalized(uint32_t reg, double scale) {
  uint32_t magnitude = reg & 0x7fffffff;
  magnitude &= 0u - (magnitude <= 0x7f800000);
  magnitude = magnitude < 0x3f800000 ? magnitude : 0x3f800000;
  return (uint32_t)(int32_t)round_even(pe_float(magnitude) * scale);
}

PE_INLINE uint32_t if_negative(uint32_t reg, uint32_t negative, uint32_t positive) {
  uint32_t select = 0u - (reg >> 31);
  return (negative & select) | (positive & ~select);
}

PE_INLINE uint32_t signed_int(int32_t value, int32_t most) {
  int32_t low = -most - 1;
  return (uint32_t)(value > most ? most : value < low ? low : value);
}

/* n is a multiple of 4. */
#define CONVERT(EXPRESSION)                                                  \
  do {                                                                       \
    for (uint32_t *v = values; v != values + n; v += 4)                      \
      for (uint32_t i = 0; i < 4; i++) v[i] = (uint32_t)(EXPRESSION) & mask; \
  } while (0)

PE_WIDE static void convert(uint32_t kind, uint32_t bits, uint32_t *values, uint32_t n) {
  uint32_t mask = low_bits(bits), most = mask >> 1;
  switch (kind) {
    case PE_KIND_UNORM: CONVERT(if_negative(v[i], 0, normalized(v[i], mask))); break;
    case PE_KIND_SNORM: CONVERT(if_negative(v[i], 0u - normalized(v[i], most), normalized(v[i], most))); break;
    case PE_KIND_UINT: CONVERT(v[i] > mask ? mask : v[i]); break;
    case PE_KIND_SINT: CONVERT(signed_int((int32_t)v[i], (int32_t)most)); break;
    default:
      if (bits == 16) CONVERT(pe_f16_bits(v[i]));
      break;
  }
}

/* min(|value|, 1) as hardware stores it; NaN gives 0. */
static uint32_t normalized_cut(uint32_t reg, uint32_t most, uint32_t bits) {
  uint32_t magnitude = reg & 0x7fffffff;
  if (magnitude > 0x7f800000) return 0;
  return pe_normalized_cut(magnitude < 0x3f800000 ? pe_float(magnitude) : 1, most, bits);
}

/* Floats as hardware stores them (docs/semantics.md, "Formatted stores"). */
static void convert_as_measured(uint32_t kind, uint32_t bits, uint32_t *values, uint32_t n) {
  uint32_t mask = low_bits(bits), most = mask >> 1;
  if (kind == PE_KIND_UNORM)
    CONVERT(if_negative(v[i], 0, normalized_cut(v[i], mask, bits)));
  else if (kind == PE_KIND_SNORM)
    CONVERT(if_negative(v[i], 0u - normalized_cut(v[i], most, bits), normalized_cut(v[i], most, bits)));
  else if (kind == PE_KIND_FLOAT && bits == 16)
    CONVERT(pe_f16_cut(v[i]));
  else
    convert(kind, bits, values, n);
}

/* A float register as the unsigned integer it holds: rounded, saturated; NaN gives 0. */
static uint32_t rounded_uint(float value, uint32_t most) {
  if (!(value > 0)) return 0;
  return value < (double)most ? (uint32_t)round_even(value) : most;
}

static void convert_floats_to_uint(uint32_t bits, uint32_t *values, uint32_t n) {
  uint32_t mask = low_bits(bits);
  CONVERT(rounded_uint(pe_float(v[i]), mask));
}

void pe_format_convert(const pe_su_policy *policy, const pe_surface_desc *desc, bool measured, uint32_t *v, uint32_t n) {
  if (policy->float_to_uint && desc->kind == PE_KIND_UINT)
    convert_floats_to_uint(desc->bits, v, n);
  else if (measured)
    convert_as_measured(desc->kind, desc->bits, v, n);
  else
    convert(desc->kind, desc->bits, v, n);
}

/* The register element (R 0, G 1, B 2, A 3) of the component at a memory position. */
static uint32_t element_of(uint32_t order, uint32_t position) {
  if (order == PE_ORDER_A) return 3;
  return order == PE_ORDER_BGRA && position < 3 ? 2 - position : position;
}

/* The usual case: four 8-bit components, all given. */
static void pack_rgba8(uint32_t order, uint8_t *texel, const uint32_t *v) {
  uint32_t first = order == PE_ORDER_BGRA ? v[2] : v[0], third = order == PE_ORDER_BGRA ? v[0] : v[2];
  uint32_t value = first | v[1] << 8 | third << 16 | v[3] << 24;
  memcpy(texel, &value, sizeof value);
}

static __attribute__((noinline)) void pack_components(const pe_su_policy *policy, const pe_surface_desc *desc,
                                                      uint8_t *texel, const uint32_t *v, uint32_t channels) {
  uint32_t bytes = desc->bits / 8, missing = policy->missing_component == PE_MISSING_POISON ? 0xcdcdcdcd : 0;
  bool preserve = policy->missing_component == PE_MISSING_PRESERVE;
  uint8_t image[16];
  for (uint32_t i = 0; i < desc->components; i++) {
    uint32_t element = element_of(desc->order, i);
    bool given = channels >> element & 1;
    uint32_t value = given ? v[element] : missing;
    memcpy(image + i * bytes, &value, bytes);
    if (preserve && given) pe_move(texel + i * bytes, image + i * bytes, bytes);
  }
  if (!preserve) pe_move(texel, image, desc->elem_bytes);
}

void pe_format_pack(const pe_su_policy *policy, const pe_surface_desc *desc, uint8_t *texel, const uint32_t *v,
                    uint32_t channels) {
  if (channels == 15 && desc->components == 4 && desc->bits == 8)
    pack_rgba8(desc->order, texel, v);
  else
    pack_components(policy, desc, texel, v, channels);
}
