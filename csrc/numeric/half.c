/* half.c: binary16 and bfloat16 in integer arithmetic, for hosts and compilers that lack them. */
#include "half.h"
#include <math.h>
#include <stdbool.h>
#include <string.h>

#define DOUBLE_MANTISSA 52
#define DOUBLE_BIAS 1023

typedef struct format {
  int exponent_bits, mantissa_bits;
} format;

static const format HALF = {5, 10}, BFLOAT = {8, 7};

static bool rounds_up(uint32_t mode, bool negative, uint64_t kept, uint64_t rest, uint64_t half) {
  switch (mode) {
    case PE_RN: return rest > half || (rest == half && (kept & 1));
    case PE_RM: return negative && rest;
    case PE_RP: return !negative && rest;
    default: return false;
  }
}

static uint16_t overflow(format f, uint32_t mode, bool negative) {
  uint16_t infinity = (uint16_t)(((1u << f.exponent_bits) - 1) << f.mantissa_bits);
  bool to_infinity = mode == PE_RN || (mode == PE_RM && negative) || (mode == PE_RP && !negative);
  return (uint16_t)(infinity - !to_infinity); /* one below infinity is the largest finite value */
}

/* Round significand * 2^exponent; the significand is not 0. */
static uint16_t encode(format f, uint32_t mode, bool negative, uint64_t significand, int exponent) {
  int bias = (1 << (f.exponent_bits - 1)) - 1, lowest = 1 - bias - f.mantissa_bits;
  int unit = exponent + 63 - __builtin_clzll(significand) - f.mantissa_bits; /* exponent of the last place */
  if (unit < lowest) unit = lowest;
  int shift = unit - exponent;
  uint64_t kept = shift >= 64 ? 0 : shift > 0 ? significand >> shift : significand << -shift;
  if (shift >= 64)
    kept = rounds_up(mode, negative, 0, 1, 2);
  else if (shift > 0)
    kept += rounds_up(mode, negative, kept, significand & ((1ull << shift) - 1), 1ull << (shift - 1));
  uint64_t biased = kept + ((uint64_t)(unit - lowest) << f.mantissa_bits); /* a carry moves into the exponent */
  uint64_t infinity = ((1ull << f.exponent_bits) - 1) << f.mantissa_bits;
  return biased >= infinity ? overflow(f, mode, negative) : (uint16_t)biased;
}

static uint16_t from_double(format f, double value, uint32_t mode) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  bool negative = bits >> 63;
  uint64_t mantissa = bits & ((1ull << DOUBLE_MANTISSA) - 1);
  int exponent = (int)(bits >> DOUBLE_MANTISSA & 0x7ff);
  uint16_t sign = (uint16_t)(negative << 15);
  uint16_t infinity = (uint16_t)(((1u << f.exponent_bits) - 1) << f.mantissa_bits);
  if (exponent == 0x7ff && mantissa)
    return (uint16_t)(sign | infinity | 1u << (f.mantissa_bits - 1) | mantissa >> (DOUBLE_MANTISSA - f.mantissa_bits));
  if (exponent == 0x7ff) return sign | infinity;
  if (exponent)
    mantissa |= 1ull << DOUBLE_MANTISSA;
  else
    exponent = 1;
  if (mantissa == 0) return sign;
  return sign | encode(f, mode, negative, mantissa, exponent - DOUBLE_BIAS - DOUBLE_MANTISSA);
}

uint16_t pe_half_from_double(double value, uint32_t mode) { return from_double(HALF, value, mode); }

uint16_t pe_bfloat_from_double(double value, uint32_t mode) { return from_double(BFLOAT, value, mode); }

static double to_double(format f, uint16_t bits) {
  int exponent = bits >> f.mantissa_bits & ((1 << f.exponent_bits) - 1);
  uint64_t mantissa = bits & ((1u << f.mantissa_bits) - 1);
  uint64_t sign = (uint64_t)(bits >> 15) << 63, wide;
  int bias = (1 << (f.exponent_bits - 1)) - 1;
  double value;
  if (exponent == 0) {
    value = ldexp((double)mantissa, 1 - bias - f.mantissa_bits);
    return sign ? -value : value;
  }
  if (exponent == (1 << f.exponent_bits) - 1)
    exponent = 0x7ff;
  else
    exponent += DOUBLE_BIAS - bias;
  wide = sign | (uint64_t)exponent << DOUBLE_MANTISSA | mantissa << (DOUBLE_MANTISSA - f.mantissa_bits);
  memcpy(&value, &wide, sizeof value);
  return value;
}

double pe_double_from_half(uint16_t bits) { return to_double(HALF, bits); }

double pe_double_from_bfloat(uint16_t bits) { return to_double(BFLOAT, bits); }

static float carry(uint16_t bits) {
  uint32_t wide = bits;
  float value;
  memcpy(&value, &wide, sizeof value);
  return value;
}

float pe_truncsfhf2(float value) { return carry(pe_half_from_double((double)value, PE_RN)); }

float pe_truncdfhf2(double value) { return carry(pe_half_from_double(value, PE_RN)); }

float pe_truncsfbf2(float value) { return carry(pe_bfloat_from_double((double)value, PE_RN)); }

float pe_truncdfbf2(double value) { return carry(pe_bfloat_from_double(value, PE_RN)); }

float pe_extendhfsf2(float half) {
  uint32_t bits;
  memcpy(&bits, &half, sizeof bits);
  return (float)pe_double_from_half((uint16_t)bits);
}
