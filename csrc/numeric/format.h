/* format.h: 16-bit floats as bits; no hardware help needed, so every host gives the same result. */
#ifndef PTXEMU_FORMAT_H
#define PTXEMU_FORMAT_H
#include <stdint.h>
#include <string.h>

#define PE_INLINE static inline __attribute__((always_inline))

static inline float pe_float(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static inline uint32_t pe_float_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

PE_INLINE double pe_double(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

PE_INLINE uint64_t pe_double_bits(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* 2^-14, the least normal f16, as the bits of f32: magnitudes below are whole numbers of 2^-24, which f32 has room to add up. */
#define PE_LEAST_HALF 0x38800000u

/* Subnormals kept; overflow to infinity; NaN becomes 0x7fff.  Without branches, for loops that compilers make vectors of. */
PE_INLINE uint16_t pe_f16_bits(uint32_t f32) {
  uint32_t sign = f32 >> 16 & 0x8000, magnitude = f32 & 0x7fffffff;
  uint32_t least = magnitude < PE_LEAST_HALF ? magnitude : PE_LEAST_HALF;
  uint32_t subnormal = pe_float_bits(pe_float(least) + 0.5f) - 0x3f000000; /* to nearest even, as additions are */
  uint32_t normal = (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13;
  uint32_t finite = magnitude < PE_LEAST_HALF ? subnormal : normal;
  uint32_t bounded = magnitude >= 0x477ff000 ? 0x7c00 : finite; /* 65520, halfway to 2^16 */
  return (uint16_t)(magnitude > 0x7f800000 ? 0x7fff : sign | bounded);
}

/* The leading bits alone: overflow to the largest number; a NaN keeps its sign and what it can. */
PE_INLINE uint16_t pe_f16_cut(uint32_t f32) {
  uint32_t sign = f32 >> 16 & 0x8000, magnitude = f32 & 0x7fffffff, payload = magnitude >> 13 & 0x3ff;
  uint32_t least = magnitude < PE_LEAST_HALF ? magnitude : PE_LEAST_HALF;
  uint32_t subnormal = (uint32_t)(int32_t)(pe_float(least) * 0x1p24f), normal = (magnitude - 0x38000000) >> 13;
  uint32_t finite = magnitude < PE_LEAST_HALF ? subnormal : normal;
  uint32_t bounded = magnitude >= 0x47800000 ? 0x7bff : finite; /* 2^16 */
  uint32_t special = magnitude == 0x7f800000 ? 0x7c00 : 0x7c00 | payload | !payload;
  return (uint16_t)(sign | (magnitude >= 0x7f800000 ? special : bounded));
}

/* A fraction of `most`, which has `bits` bits: a float from 0 to 1, of which 16 or 22 fraction bits count, is rounded to nearest, halves
 * down. */
PE_INLINE uint32_t pe_normalized_cut(float fraction, uint32_t most, uint32_t bits) {
  double grain = bits == 8 ? 0x1p16 : 0x1p22, exact = (double)(int32_t)(fraction * grain) * most / grain;
  int32_t whole = (int32_t)exact;
  return (uint32_t)(whole + (exact - whole > 0.5));
}

static inline uint16_t pe_bf16_bits(uint32_t f32) {
  if ((f32 & 0x7fffffff) > 0x7f800000) return 0x7fff;
  return (uint16_t)((f32 + 0x7fff + (f32 >> 16 & 1)) >> 16);
}

static inline float pe_f16_value(uint16_t bits) {
  uint32_t sign = (uint32_t)(bits & 0x8000) << 16, magnitude = bits & 0x7fff;
  if (magnitude >= 0x7c00) return pe_float(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  if (magnitude >= 0x400) return pe_float(sign | ((magnitude << 13) + 0x38000000));
  float value = (float)magnitude * 0x1p-24f;
  return sign ? -value : value;
}

static inline float pe_bf16_value(uint16_t bits) { return pe_float((uint32_t)bits << 16); }

#endif
