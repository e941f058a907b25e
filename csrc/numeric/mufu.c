/* mufu.c: approximate functions with the bits of the hardware, from sm_70 on.
 *
 * An operand's fraction chooses an interval by its high bits; a quadratic in the low bits, in fixed point, gives the result.
 * Its square is made without the columns of partial products below the 19th.  The result is cut, after a constant was added
 * that centres the error.
 *
 * The model is that of bcarlet/ptx-math (MIT), which meets all results of sm_70 and sm_75; so do words from later hardware.
 */
#include <stdbool.h>
#include <string.h>
#include "internal.h"
#include "mufu.h"
#include "mufu_tables.h"

#define FRACTION_BITS 23
#define ONE (1u << FRACTION_BITS)
#define FRACTION (ONE - 1)
#define BIAS 127
#define SIGN 0x80000000u
#define INFINITE 0x7f800000u
#define NOT_A_NUMBER 0x7fffffffu
#define DROPPED 19 /* columns of the square that have no adders */

/* x^2 without the partial products in the dropped columns; x has up to 18 bits. */
static uint64_t squared(uint32_t x) {
  uint32_t missing = 0;
  for (uint32_t i = 0; 2 * i < DROPPED; i++) {
    uint32_t row = x & ~((2u << i) - 1); /* bits above i meet bit i twice */
    missing += (x >> i & 1) * (((row << (i + 1)) & ((1u << DROPPED) - 1)) + (1u << 2 * i));
  }
  return (uint64_t)x * x - missing;
}

/* How a function's quadratic is put together: the bits of an interval's number, the places of the terms of degree 0 and 1 before
 * that of degree 2, the place of the result's 1, and what is added to it before it is cut. */
typedef struct quadratic {
  uint32_t interval, shift0, shift1, one;
  int32_t sign1, sign2;
  uint64_t centre;
} quadratic;

static const quadratic EX2_SUM = {6, 32, 19, 57, 1, 1, 0x6fc4ull << 18};
static const quadratic LG2_SUM = {6, 30, 18, 56, 1, -1, 0x868bull << 17};
static const quadratic RCP_SUM = {7, 30, 17, 56, -1, 1, 0x67e7ull << 17};
static const quadratic RSQRT_SUM = {6, 31, 17, 57, -1, 1, 0x7fff8ull << 14};
static const quadratic SQRT_SUM = {6, 33, 18, 58, 1, -1, 0x7fff8ull << 15};
static const quadratic SINE_SUM = {6, 31, 19, 56, 1, -1, 0};

/* The sum for a fraction of 23 bits, with its 1 at bit q->one; `table` begins with the intervals of such fractions. */
static uint64_t evaluate(const quadratic *q, const coefficients *table, uint32_t fraction) {
  uint32_t low_bits = FRACTION_BITS - q->interval, low = fraction & ((1u << low_bits) - 1);
  const coefficients *c = &table[fraction >> low_bits];
  uint64_t square = q->interval == 7 ? squared(low << 1) >> 2 : squared(low); /* the squarer's width is that of six bits */
  uint64_t sum = ((uint64_t)c->c0 << q->shift0) + q->centre;
  sum += (uint64_t)q->sign1 * ((uint64_t)c->c1 * low << q->shift1);
  return sum + (uint64_t)q->sign2 * (c->c2 * square);
}

/* The fraction behind a 1 at bit `one`. */
static uint32_t fraction_of(uint64_t sum, uint32_t one) { return (uint32_t)(sum >> (one - FRACTION_BITS)) & FRACTION; }

/* A number from 1 on, times 2^exponent: flushed to zero or infinity beyond the normal ones. */
static uint32_t scaled(uint32_t sign, int32_t exponent, uint32_t fraction) {
  if (exponent > BIAS) return sign | INFINITE;
  if (exponent <= -BIAS) return sign;
  return sign | (uint32_t)(exponent + BIAS) << FRACTION_BITS | fraction;
}

static int32_t exponent_of(uint32_t x) { return (int32_t)(x >> FRACTION_BITS & 0xff) - BIAS; }

/* |x| with so many bits behind the point, cut; the bits that 64 do not hold are lost. */
static uint64_t fixed_point(uint32_t x, int32_t bits) {
  int32_t shift = exponent_of(x) - FRACTION_BITS + bits;
  uint64_t significand = (x & FRACTION) | ONE;
  if (shift < 0) return shift > -32 ? significand >> -shift : 0;
  return shift < 40 ? significand << shift : 0;
}

static uint32_t power_of_two(uint32_t x) {
  bool negative = x & SIGN;
  if (exponent_of(x) >= 8) return negative ? 0 : INFINITE;
  int32_t fixed = (int32_t)fixed_point(x, FRACTION_BITS);
  if (negative) fixed = fixed & (int32_t)FRACTION ? ~fixed : -fixed; /* in ones' complement, but for whole numbers */
  return scaled(0, fixed >> FRACTION_BITS, fraction_of(evaluate(&EX2_SUM, EX2, (uint32_t)fixed & FRACTION), EX2_SUM.one));
}

/* A sum with its 1 at bit `one`, or above or below it, as a float. */
static uint32_t normalized(uint32_t sign, uint64_t sum, int32_t one) {
  if (!sum) return sign;
  int32_t top = 63 - __builtin_clzll(sum);
  uint64_t aligned = top >= FRACTION_BITS ? sum >> (top - FRACTION_BITS) : sum << (FRACTION_BITS - top);
  return scaled(sign, top - one, (uint32_t)aligned & FRACTION);
}

static uint32_t logarithm(uint32_t x) {
  if (x & SIGN) return NOT_A_NUMBER;
  if (x == (uint32_t)BIAS << FRACTION_BITS) return 0;
  const uint64_t kept = ~((1ull << 20) - 1); /* bits of the sum */
  int64_t whole = (int64_t)exponent_of(x) * (1ll << LG2_SUM.one);
  int64_t sum = whole + (int64_t)evaluate(&LG2_SUM, LG2, x & FRACTION);
  return normalized(whole < 0 ? SIGN : 0, (uint64_t)(sum < 0 ? -sum : sum) & kept, (int32_t)LG2_SUM.one);
}

static uint32_t reciprocal(uint32_t x) {
  uint64_t sum = evaluate(&RCP_SUM, RCP, x & FRACTION);
  int32_t below = !(sum >> RCP_SUM.one); /* a half or more */
  return scaled(x & SIGN, -exponent_of(x) - below, fraction_of(sum << below, RCP_SUM.one));
}

/* The half of an even exponent; odd ones have intervals of their own. */
static uint32_t reciprocal_root(uint32_t x) {
  if (x & SIGN) return NOT_A_NUMBER;
  int32_t exponent = exponent_of(x), odd = exponent & 1, half = (exponent - odd) / 2;
  if (!odd && !(x & FRACTION)) return scaled(0, -half, 0);
  uint64_t sum = evaluate(&RSQRT_SUM, RSQRT + odd * 64, x & FRACTION);
  return scaled(0, -half - 1, fraction_of(sum << 1, RSQRT_SUM.one));
}

static uint32_t root(uint32_t x) {
  if (x & SIGN) return NOT_A_NUMBER;
  int32_t exponent = exponent_of(x), odd = exponent & 1, half = (exponent - odd) / 2;
  return scaled(0, half, fraction_of(evaluate(&SQRT_SUM, SQRT + odd * 64, x & FRACTION), SQRT_SUM.one));
}

/* Of so much of a quarter of a turn. */
static uint32_t sine_of(uint32_t sign, uint32_t fraction) {
  return normalized(sign, evaluate(&SINE_SUM, SIN, fraction), (int32_t)SINE_SUM.one);
}

static uint32_t sine(uint32_t x) {
  uint32_t turns = (uint32_t)fixed_point(x, FRACTION_BITS + 2), quarter = turns >> FRACTION_BITS;
  return sine_of((x & SIGN) ^ (quarter & 2 ? SIGN : 0), (quarter & 1 ? ~turns : turns) & FRACTION);
}

static uint32_t cosine(uint32_t x) {
  uint32_t turns = (uint32_t)fixed_point(x, FRACTION_BITS + 2), quarter = turns >> FRACTION_BITS;
  return sine_of((quarter + 1) & 2 ? SIGN : 0, (quarter & 1 ? turns : ~turns) & FRACTION);
}

/* ---- zeros, infinities and NaNs ---- */

static uint32_t of_zero(uint32_t function, uint32_t sign) {
  switch (function) {
    case PE_MUFU_EX2: return (uint32_t)BIAS << FRACTION_BITS;
    case PE_MUFU_LG2: return SIGN | INFINITE;
    case PE_MUFU_RCP:
    case PE_MUFU_RSQRT: return sign | INFINITE;
    case PE_MUFU_COS: return cosine(0);
    default: return sign;
  }
}

static uint32_t of_infinity(uint32_t function, uint32_t sign) {
  switch (function) {
    case PE_MUFU_EX2: return sign ? 0 : INFINITE;
    case PE_MUFU_RCP: return sign;
    case PE_MUFU_RSQRT: return sign ? NOT_A_NUMBER : 0;
    case PE_MUFU_LG2:
    case PE_MUFU_SQRT: return sign ? NOT_A_NUMBER : INFINITE;
    default: return NOT_A_NUMBER;
  }
}

void pe_mufu(uint32_t function, uint32_t n, void *to, const void *from) {
  static uint32_t (*const FUNCTIONS[])(uint32_t) = {
    [PE_MUFU_EX2] = power_of_two, [PE_MUFU_LG2] = logarithm, [PE_MUFU_RCP] = reciprocal, [PE_MUFU_RSQRT] = reciprocal_root,
    [PE_MUFU_SQRT] = root,        [PE_MUFU_SIN] = sine,      [PE_MUFU_COS] = cosine,
  };
  uint32_t *results = to;
  const uint32_t *operands = from;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t x = operands[i], magnitude = x & ~SIGN;
    if (magnitude < ONE)
      results[i] = of_zero(function, x & SIGN);
    else if (magnitude >= INFINITE)
      results[i] = magnitude > INFINITE ? NOT_A_NUMBER : of_infinity(function, x & SIGN);
    else
      results[i] = FUNCTIONS[function](x);
  }
}
