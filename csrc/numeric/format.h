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

static inline uint32_t pe_shift_right_rne(uint32_t value, uint32_t shift) {
  uint32_t half = 1u << (shift - 1), odd = value >> shift & 1;
  return (value + half - 1 + odd) >> shift;
}

/* Subnormals kept; overflow to infinity; NaN becomes 0x7fff. */
static inline uint16_t pe_f16_bits(uint32_t f32) {
  uint32_t sign = f32 >> 16 & 0x8000, magnitude = f32 & 0x7fffffff;
  if (magnitude > 0x7f800000) return 0x7fff;
  if (magnitude >= 0x477ff000) return (uint16_t)(sign | 0x7c00); /* 65520, halfway to 2^16 */
  if (magnitude >= 0x38800000) return (uint16_t)(sign | pe_shift_right_rne(magnitude - 0x38000000, 13));
  if (magnitude <= 0x33000000) return (uint16_t)sign; /* 2^-25, halfway to the least subnormal */
  uint32_t exponent = magnitude >> 23, significand = (magnitude & 0x7fffff) | 0x800000;
  return (uint16_t)(sign | pe_shift_right_rne(significand, 126 - exponent));
}

/* The leading bits alone: overflow to the largest number; a NaN keeps its sign and what it can. */
static inline uint16_t pe_f16_cut(uint32_t f32) {
  uint32_t sign = f32 >> 16 & 0x8000, magnitude = f32 & 0x7fffffff, payload = magnitude >> 13 & 0x3ff;
  if (magnitude > 0x7f800000) return (uint16_t)(sign | 0x7c00 | (payload ? payload : 1));
  if (magnitude == 0x7f800000) return (uint16_t)(sign | 0x7c00);
  if (magnitude >= 0x47800000) return (uint16_t)(sign | 0x7bff); /* 2^16 */
  if (magnitude >= 0x38800000) return (uint16_t)(sign | (magnitude - 0x38000000) >> 13);
  uint32_t exponent = magnitude >> 23, significand = (magnitude & 0x7fffff) | 0x800000;
  return (uint16_t)(sign | (exponent > 102 ? significand >> (126 - exponent) : 0));
}

/* A fraction of `most`, which has `bits` bits: a float from 0 to 1, of which 16 or 22 fraction bits count, is rounded to nearest, halves
 * down. */
static inline uint32_t pe_normalized_cut(float fraction, uint32_t most, uint32_t bits) {
  double grain = bits == 8 ? 0x1p16 : 0x1p22, kept = (double)(uint32_t)(fraction * grain) / grain;
  double exact = kept * most, whole = (double)(uint32_t)exact;
  return (uint32_t)whole + (exact - whole > 0.5);
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
