/* format.c: formatted stores. */
#if defined(__GNUC__) && !defined(__clang__)
#ifdef __OPTIMIZE__
#pragma GCC optimize("O3", "no-trapping-math") /* the loops over components become vectors */
#endif
#endif
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

#define CONVERT(EXPRESSION) \
  for (uint32_t i = 0; i < n; i++) v[i] = (uint32_t)(EXPRESSION) & mask

PE_WIDEST static void convert(uint32_t kind, uint32_t bits, uint32_t *v, uint32_t n) {
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
PE_INLINE uint32_t normalized_cut(uint32_t reg, uint32_t most, uint32_t bits) {
  uint32_t magnitude = reg & 0x7fffffff;
  magnitude &= 0u - (magnitude <= 0x7f800000);
  return pe_normalized_cut(pe_float(magnitude < 0x3f800000 ? magnitude : 0x3f800000), most, bits);
}

/* Floats as hardware stores them (docs/semantics.md, "Formatted stores"). */
PE_WIDEST static void convert_as_measured(uint32_t kind, uint32_t bits, uint32_t *v, uint32_t n) {
  uint32_t mask = low_bits(bits), most = mask >> 1;
  if (kind == PE_KIND_UNORM)
    CONVERT(if_negative(v[i], 0, normalized_cut(v[i], mask, bits)));
  else if (kind == PE_KIND_SNORM)
    CONVERT(if_negative(v[i], 0u - normalized_cut(v[i], most, bits), normalized_cut(v[i], most, bits)));
  else if (kind == PE_KIND_FLOAT && bits == 16)
    CONVERT(pe_f16_cut(v[i]));
  else
    convert(kind, bits, v, n);
}

/* A float register as the unsigned integer it holds: rounded, saturated; NaN gives 0. */
static uint32_t rounded_uint(float value, uint32_t most) {
  if (!(value > 0)) return 0;
  return value < (double)most ? (uint32_t)round_even(value) : most;
}

static void convert_floats_to_uint(uint32_t bits, uint32_t *v, uint32_t n) {
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

/* What components hold that no register gives. */
static uint32_t missing_value(const pe_su_policy *policy) {
  return policy->missing_component == PE_MISSING_POISON ? 0xcdcdcdcd : 0;
}

/* The usual case: four 8-bit components, all given. */
PE_INLINE void pack_rgba8(uint32_t order, uint8_t *texel, const uint32_t *v) {
  uint32_t first = order == PE_ORDER_BGRA ? v[2] : v[0], third = order == PE_ORDER_BGRA ? v[0] : v[2];
  uint32_t value = first | v[1] << 8 | third << 16 | v[3] << 24;
  memcpy(texel, &value, sizeof value);
}

static bool is_rgba8(const pe_surface_desc *desc, uint32_t channels) {
  return channels == 15 && desc->components == 4 && desc->bits == 8;
}

static __attribute__((noinline)) void pack_components(const pe_su_policy *policy, const pe_surface_desc *desc,
                                                      uint8_t *texel, const uint32_t *v, uint32_t channels) {
  uint32_t bytes = desc->bits / 8, missing = missing_value(policy);
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
  if (is_rgba8(desc, channels))
    pack_rgba8(desc->order, texel, v);
  else
    pack_components(policy, desc, texel, v, channels);
}

bool pe_format_fills(const pe_su_policy *policy, const pe_surface_desc *desc, uint32_t count) {
  bool reordered = desc->order == PE_ORDER_A || desc->order == PE_ORDER_BGRA;
  return policy->missing_component != PE_MISSING_PRESERVE || count >= (reordered ? 4 : desc->components);
}

/* One component of all lanes, side by side for `step` lanes that have as many. */
#define PLACE(bytes) \
  for (uint32_t i = 0; i < 32; i++) memcpy(texels + (size_t)i * step, &value[i], bytes)

static void place_component(uint8_t *restrict texels, uint32_t step, uint32_t bits, const uint32_t *restrict value) {
  switch (bits) {
    case 8: PLACE(1); break;
    case 16: PLACE(2); break;
    default: PLACE(4); break;
  }
}

PE_WIDE void pe_format_pack_lanes(const pe_su_policy *policy, const pe_surface_desc *desc, uint8_t *texels,
                                  const uint32_t *v, uint32_t count) {
  if (is_rgba8(desc, (1u << count) - 1)) {
    for (uint32_t i = 0; i < 32; i++) pack_rgba8(desc->order, texels + 4 * i, v + 4 * i);
    return;
  }
  uint32_t missing = missing_value(policy), bytes = desc->bits / 8;
  for (uint32_t k = 0; k < desc->components; k++) {
    uint32_t value[32], element = element_of(desc->order, k);
    for (uint32_t i = 0; i < 32; i++) value[i] = element < count ? v[i * count + element] : missing;
    place_component(texels + k * bytes, desc->elem_bytes, desc->bits, value);
  }
}
