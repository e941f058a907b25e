/* texture_texel.h: reading the texels of all lanes and what their components mean.
 *
 * A component has three forms: its register bits (pe_texel_bits), the number that filters add up (pe_texel_number, not
 * yet divided by the scale of its kind), and its value as f32.  Components that a format lacks read as zero.
 */
#ifndef PTXEMU_TEXTURE_TEXEL_H
#define PTXEMU_TEXTURE_TEXEL_H
#include <stdbool.h>
#include "format.h"
#include "texture.h"

#define PE_LANES 32

/* 32-bit words of a texel, of every lane. */
typedef struct pe_words {
  uint32_t word[4][PE_LANES];
} pe_words;

/* sRGB bytes as linear values: floats whose significands have 8 bits, and the exponents that they have in sums. */
extern const float pe_srgb[256];
extern const int8_t pe_srgb_exponent[256];

/* A word that is moved by itself: compilers make slow vectors of words from anywhere. */
PE_INLINE uint64_t pe_alone(uint64_t word) {
  __asm__("" : "+r"(word));
  return word;
}

/* Texels of one word or less. */
#define PE_READ(TYPE)                             \
  for (uint32_t i = 0; i < PE_LANES; i++) {       \
    TYPE item;                                    \
    memcpy(&item, base + offset[i], sizeof item); \
    words->word[0][i] = (uint32_t)pe_alone(item); \
  }

/* Texels of `count` words: each is moved as a whole first. */
#define PE_READ_WORDS(COUNT)                                                             \
  uint32_t texel[PE_LANES][COUNT];                                                       \
  for (uint32_t i = 0; i < PE_LANES; i++) memcpy(texel[i], base + offset[i], 4 * COUNT); \
  for (uint32_t k = 0; k < COUNT; k++)                                                   \
    for (uint32_t i = 0; i < PE_LANES; i++) words->word[k][i] = texel[i][k];

/* The texels at byte offsets of a surface's memory, which are valid in all lanes. */
PE_INLINE void pe_read_texels(pe_words *restrict words, const uint8_t *base, const uint64_t *restrict offset,
                              uint32_t bytes) {
  switch (bytes) {
    case 1: PE_READ(uint8_t) break;
    case 2: PE_READ(uint16_t) break;
    case 4: PE_READ(uint32_t) break;
    case 8: {
      PE_READ_WORDS(2)
      break;
    }
    default: {
      PE_READ_WORDS(4)
      break;
    }
  }
}

/* The place in memory of component 0 to 3 (R G B A), or -1 where the format lacks it. */
PE_INLINE int32_t pe_component_place(const pe_surface_desc *d, uint32_t component) {
  if (d->order == PE_ORDER_A) return component == 3 ? 0 : -1;
  if (d->order == PE_ORDER_BGRA && component < 3) return 2 - (int32_t)component;
  return component < d->components ? (int32_t)component : -1;
}

/* f16 bits as f32 bits: infinities and NaNs included, without a branch. */
PE_INLINE uint32_t pe_widen_half(uint32_t half) {
  uint32_t magnitude = (half & 0x7fff) << 13, special = 0u - (magnitude >= 0x0f800000);
  uint32_t bits = pe_float_bits(pe_float(magnitude) * 0x1p112f) | (special & 0x7f800000);
  return bits | (half & 0x8000) << 16;
}

#define PE_EACH(EXPRESSION) \
  for (uint32_t i = 0; i < PE_LANES; i++) bits[i] = (uint32_t)(EXPRESSION)

/* Register bits of the component at a place: integers extended to 32 bits, floats as f32. */
PE_INLINE void pe_texel_bits(uint32_t *restrict bits, const pe_words *restrict words, uint32_t place, uint32_t size,
                             uint32_t kind) {
  uint32_t shift = place * size & 31;
  const uint32_t *restrict word = words->word[place * size >> 5];
  bool negative = kind == PE_KIND_SNORM || kind == PE_KIND_SINT;
  if (size == 32) {
    PE_EACH(word[i]);
  } else if (kind == PE_KIND_FLOAT) {
    PE_EACH(pe_widen_half(word[i] >> shift & 0xffff));
  } else if (negative) {
    uint32_t up = 32 - size;
    PE_EACH((int32_t)(word[i] >> shift << up) >> up);
  } else {
    uint32_t mask = 0xffffffffu >> (32 - size);
    PE_EACH(word[i] >> shift & mask);
  }
}

/* The exponent that the bits of an f32 have. */
PE_INLINE int32_t pe_exponent(uint32_t bits) { return (int32_t)(bits >> 23 & 255) - 127; }

/* Encoded are R, G and B of four components, R of fewer. */
PE_INLINE bool pe_is_srgb(const pe_texture *t, uint32_t component) {
  return t->srgb && component < (t->memory.components == 4 ? 3 : 1);
}

/* What a number is divided by in the end. */
PE_INLINE double pe_kind_scale(const pe_texture *t, bool srgb) {
  uint32_t most = t->memory.bits == 8 ? 255 : 65535;
  if (t->kind == PE_KIND_UNORM && !srgb) return most;
  return t->kind == PE_KIND_SNORM ? most >> 1 : 1;
}

/* Bits as numbers. */
PE_INLINE void pe_texel_number(double *restrict number, const uint32_t *restrict bits, uint32_t kind, bool srgb) {
  if (srgb) {
    for (uint32_t i = 0; i < PE_LANES; i++) number[i] = pe_srgb[bits[i] & 255];
  } else if (kind == PE_KIND_FLOAT) {
    for (uint32_t i = 0; i < PE_LANES; i++) number[i] = pe_float(bits[i]);
  } else {
    for (uint32_t i = 0; i < PE_LANES; i++) number[i] = (int32_t)bits[i];
  }
}

/* Numbers as the bits of f32 values, at least -1 where they are scaled. */
PE_INLINE void pe_number_bits(uint32_t *restrict bits, const double *restrict number, double scale) {
  if (scale == 1)
    for (uint32_t i = 0; i < PE_LANES; i++) bits[i] = pe_float_bits((float)number[i]);
  else
    for (uint32_t i = 0; i < PE_LANES; i++)
      bits[i] = pe_float_bits((float)((number[i] < -scale ? -scale : number[i]) / scale));
}

#endif
