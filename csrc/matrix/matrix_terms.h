/* matrix_terms.h: elements of multiplicands with their exponents, as tensor cores add their products.
 *
 * An exponent is coded in a byte, so that the largest one of 32 sums of two is found at once.
 */
#ifndef PTXEMU_MATRIX_TERMS_H
#define PTXEMU_MATRIX_TERMS_H
#include "matrix.h"
#include "matrix_vector.h"

#define NOTHING (-10000) /* the exponent of zero */
#define TAME 30          /* of elements: exponents from -30 to 30 */
#define CODE 90          /* of the exponent 0: zero's code and any other have a sum that is not above those of two others */

#define BIAS 127 /* of the exponents that floats have */

#define MAX_TERMS 1024 /* of a multiplicand: m16n8k64 of 8 bits */

/* The elements of a multiplicand in the order in which they are added. What is not `tame` has elements whose products floats may
 * not hold. */
typedef struct terms {
  const float *values;
  uint8_t codes[MAX_TERMS]; /* their exponents and CODE, or 0 for zero */
  bool tame;
  float own[MAX_TERMS];         /* significands, */
  int32_t exponents[MAX_TERMS]; /* and their exponents, of what is not tame */
} terms;

PE_INLINE i32x8 choose(i32x8 mask, i32x8 yes, i32x8 no) { return (yes & mask) | (no & ~mask); }
PE_INLINE u8x32 larger_bytes(u8x32 x, u8x32 y) {
  for (int i = 0; i < 32; i++) x[i] = x[i] > y[i] ? x[i] : y[i];
  return x;
}
PE_INLINE u8x32 smaller_bytes(u8x32 x, u8x32 y) {
  for (int i = 0; i < 32; i++) x[i] = x[i] < y[i] ? x[i] : y[i];
  return x;
}
PE_INLINE i32x8 absolute(i32x8 x) { return larger(x, (i32x8)(0 - (u32x8)x)); }
PE_INLINE i32x8 splat(int32_t x) { return (i32x8){x, x, x, x, x, x, x, x}; }
PE_INLINE f32x8 blend(i32x8 mask, f32x8 yes, f32x8 no) { return (f32x8)choose(mask, (i32x8)yes, (i32x8)no); }
PE_INLINE f32x8 power(i32x8 exponent) { return (f32x8)((exponent + 127) << 23); }
PE_INLINE i32x8 whole(f32x8 x) { return __builtin_convertvector(x, i32x8); } /* toward zero */
PE_INLINE i32x8 special(f32x8 x) { return ((i32x8)x & 0x7f800000) == 0x7f800000; }

PE_INLINE i32x8 load_integers(const int32_t *from) {
  i32x8 x;
  memcpy(&x, from, sizeof x);
  return x;
}
/* Of floats; a subnormal number of the type that they came from has the type's least exponent. */
PE_INLINE i32x8 exponents_of(f32x8 x, int32_t least) {
  i32x8 magnitude = (i32x8)x & 0x7fffffff;
  return choose(magnitude == 0, splat(NOTHING), larger((magnitude >> 23) - 127, splat(least)));
}

PE_INLINE int32_t least_exponent(const pe_mma_site *site, uint32_t type) {
  switch (site->flags & PE_MMA_PAIRS ? PE_TYPE_F16 : type) { /* to which pairs are converted */
    case PE_TYPE_F16:
    case PE_TYPE_E5M2: return -14;
    case PE_TYPE_E4M3: return -6;
    case PE_TYPE_E3M2: return -2;
    case PE_TYPE_E2M3:
    case PE_TYPE_E2M1: return 0;
    default: return -126;
  }
}

/* The bounds of magnitudes that are tested: twice the largest, and twice the least that is not zero, less one. */
PE_INLINE u32x8 larger_magnitude(u32x8 most, f32x8 x) { return larger_words(most, (u32x8)x << 1); }
PE_INLINE u32x8 smaller_magnitude(u32x8 least, f32x8 x) {
  return smaller_words(least, ((u32x8)x << 1) - 1); /* zero is the largest */
}
PE_INLINE i32x8 is_below(u32x8 least, int32_t exponent) { return (i32x8)(least < ((uint32_t)(exponent + BIAS) << 24) - 1); }
PE_INLINE i32x8 is_above(u32x8 most, int32_t exponent) { return (i32x8)(most >= (uint32_t)(exponent + 1 + BIAS) << 24); }

/* The biased exponents of four rows of 8 floats, one byte each. */
PE_INLINE u8x32 exponent_bytes(const f32x8 *rows) {
  u32x8 first = (u32x8)rows[0] >> 23 & 0xff, second = (u32x8)rows[1] >> 15 & 0xff00;
  u32x8 third = (u32x8)rows[2] >> 7 & 0xff0000, fourth = (u32x8)rows[3] << 1 & 0xff000000;
  u8x32 bytes = (u8x32)(first | second | third | fourth);
  bytes = __builtin_shufflevector(bytes, bytes, 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15, /* halves of lines */
                                  16, 20, 24, 28, 17, 21, 25, 29, 18, 22, 26, 30, 19, 23, 27, 31);
  return (u8x32)__builtin_shufflevector((u32x8)bytes, (u32x8)bytes, 0, 4, 1, 5, 2, 6, 3, 7);
}

/* Whether all are tame; `wide`: they may be too small for that. */
PE_INLINE bool make_codes(const float *from, uint32_t count, int32_t least, bool wide, uint8_t *to) {
  u8x32 most = {0};
  u32x8 fewest = ~(u32x8){0};
  for (uint32_t i = 0; i < count; i += 4 * TILE) {
    f32x8 rows[4];
    for (uint32_t x = 0; x < 4; x++) rows[x] = load_floats(from + i + x * TILE);
    u8x32 exponents = exponent_bytes(rows);
    for (uint32_t x = 0; wide && x < 4; x++) fewest = smaller_magnitude(fewest, rows[x]);
    most = larger_bytes(most, exponents);
    u8x32 codes = larger_bytes(exponents, (u8x32){0} + (uint8_t)(least + BIAS)) - (uint8_t)(BIAS - CODE);
    codes &= ~(u8x32)(exponents == 0);
    memcpy(to + i, &codes, sizeof codes);
  }
  return !any((i32x8)(most > BIAS + TAME) | is_below(fewest, -TAME));
}

PE_INLINE void make_terms(int32_t least, uint32_t count, const float *from, terms *to) {
  to->values = from;
  to->tame = least < -TAME ? make_codes(to->values, count, least, true, to->codes)
                           : make_codes(to->values, count, least, false, to->codes);
}

/* x * 2^-exponent; infinity and NaN stay what they are. */
PE_INLINE f32x8 significands_of(f32x8 x, i32x8 exponent) {
  i32x8 shift = choose(exponent == NOTHING, splat(0), -exponent), half = shift >> 1;
  return x * power(half) * power(shift - half);
}

PE_INLINE void make_significands(int32_t least, uint32_t count, terms *of) {
  for (uint32_t i = 0; i < count; i += TILE) {
    i32x8 exponents = exponents_of(load_floats(of->values + i), least);
    f32x8 x = significands_of(load_floats(of->values + i), exponents);
    memcpy(of->exponents + i, &exponents, sizeof exponents);
    memcpy(of->own + i, &x, sizeof x);
  }
  of->values = of->own;
}

#endif
