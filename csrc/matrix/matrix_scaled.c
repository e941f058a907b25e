/* matrix_scaled.c: mma with scale factors for blocks of elements (PTX ISA, "Block Scaling for mma.sync").
 *
 * Sums are those of microsoft/MMA-Sim (MIT). Of k 32, products are aligned as those of other multiplications, to the exponents that the
 * factors give them. Of k 64, 16 products are added exactly, and the sums of those and C are aligned. Nothing is rounded but the
 * result, toward zero, to f32.
 */
#include <math.h>
#include "matrix.h"
#include "format.h"
#include "internal.h"

enum { ROWS = 16, COLUMNS = 8, MOST = 64, GROUP = 16, WORDS = 4 };
enum { FRACTION = 25, GROUP_FRACTION = 35, LEAST = -133, F32_LEAST = -126, F32_FRACTION = 23 };
enum { FACTOR_FRACTION = 3, FACTOR_BIAS = 127, E4M3_BIAS = 7, SPECIAL = INT32_MIN };

/* A number: significand * 2^exponent; of a NaN or an infinity the significand is SPECIAL, and `value` tells which it is. */
typedef struct number {
  int32_t significand, exponent;
  float value;
} number;

typedef struct format {
  uint32_t first, exponent, fraction; /* bits: below, and of its fields */
  int32_t bias;
} format;

static format format_of(uint32_t type) {
  switch (type) {
    case PE_TYPE_E4M3: return (format){0, 4, 3, 7};
    case PE_TYPE_E5M2: return (format){0, 5, 2, 15};
    case PE_TYPE_E3M2: return (format){0, 3, 2, 3};
    case PE_TYPE_E2M3: return (format){0, 2, 3, 1};
    default: return (format){2, 2, 1, 1};
  }
}

/* NaN or infinity, if the element is either. */
static float special(uint32_t type, uint32_t bits) {
  uint32_t magnitude = bits & 0x7f;
  if (type == PE_TYPE_E4M3 && magnitude == 0x7f) return NAN;
  if (type != PE_TYPE_E5M2 || magnitude < 0x7c) return 0;
  return magnitude > 0x7c ? NAN : bits & 0x80 ? -INFINITY : INFINITY;
}

static number decoded(uint32_t type, uint32_t bits) {
  format f = format_of(type);
  float other = special(type, bits);
  bits >>= f.first;
  uint32_t exponent = bits >> f.fraction & ((1u << f.exponent) - 1);
  int32_t significand = (int32_t)(bits & ((1u << f.fraction) - 1)) | (exponent ? 1 << f.fraction : 0);
  bool negative = bits >> (f.exponent + f.fraction) & 1;
  if (other != 0) return (number){SPECIAL, 0, other};
  return (number){negative ? -significand : significand, (int32_t)(exponent ? exponent : 1) - f.bias - (int32_t)f.fraction,
                  0};
}

/* ---- operands: element i of a register's lane, and factors ---- */

static uint32_t element(const pe_scaled_site *site, const uint32_t *registers, uint32_t lane, uint32_t i) {
  if (site->k == MOST) return (registers[lane] >> 4 * i & 15) << 2;
  return registers[lane] >> 8 * i & 255;
}

/* A row of A, or a column of B; `rows` of eight there are. */
static void read_line(const pe_scaled_site *site, void *slots, uint32_t operand, uint32_t type, uint32_t line, uint32_t rows,
                      number to[MOST]) {
  uint32_t per_word = site->k == MOST ? 8 : 4, per_register = WORDS * per_word;
  for (uint32_t k = 0; k < site->k; k++) {
    fragment f = {slots, site->slots[operand]};
    const uint32_t *registers = register_at(f, line / TILE + k / per_register * rows);
    uint32_t lane = line % TILE * WORDS + k % per_register / per_word;
    to[k] = decoded(type, element(site, registers, lane, k % per_word));
  }
}

static number factor_of(const pe_scaled_site *site, uint32_t bits) {
  if (!site->e4m3)
    return bits == 255 ? (number){SPECIAL, 0, NAN} : (number){1 << FACTOR_FRACTION, (int32_t)bits - FACTOR_BIAS, 0};
  uint32_t exponent = bits >> FACTOR_FRACTION & 15, fraction = bits & 7;
  if ((bits & 127) == 127) return (number){SPECIAL, 0, NAN};
  return (number){(int32_t)(fraction | (exponent ? 8 : 0)), (int32_t)(exponent ? exponent : 1) - E4M3_BIAS, 0};
}

/* The factors of a line, which a lane has from one of its bytes on. */
static void read_factors(const pe_scaled_site *site, void *slots, uint32_t operand, uint32_t lane, uint32_t byte,
                         number to[4]) {
  const uint32_t *words = register_at((fragment){slots, &site->factors[operand]}, 0);
  for (uint32_t i = 0; i < (uint32_t)site->k / site->each; i++)
    to[i] = factor_of(site, words[lane] >> (byte + i) % 4 * 8 & 255);
}

/* ---- sums ---- */

typedef struct line {
  number of[MOST], factor[4];
} line;

/* The terms of a sum: significand * 2^exponent, aligned by an exponent that is that of a one. */
typedef struct terms {
  int64_t significand[MOST + 1];
  int32_t exponent[MOST + 1], top[MOST + 1];
  uint32_t count;
} terms;

static void add_term(terms *t, int64_t significand, int32_t exponent, int32_t top) {
  t->significand[t->count] = significand, t->exponent[t->count] = exponent, t->top[t->count++] = top;
}

static float f32_toward_zero(double x) {
  float near = (float)x;
  if (fabs(x) >= 0x1p128) return near;
  return fabs((double)near) > fabs(x) ? nextafterf(near, 0) : near;
}

static float sum_of(const terms *t, int32_t fraction) {
  int32_t most = LEAST;
  int64_t total = 0;
  for (uint32_t i = 0; i < t->count; i++)
    if (t->significand[i] && t->top[i] > most) most = t->top[i];
  for (uint32_t i = 0; i < t->count; i++) {
    int32_t shift = fraction + t->exponent[i] - most;
    int64_t s = t->significand[i];
    total += shift >= 0 ? s * (1ll << shift) : shift < -62 ? 0 : s / (1ll << -shift);
  }
  return f32_toward_zero(ldexp((double)total, most - fraction));
}

static void add_c(terms *t, float c) {
  int exponent;
  double significand = frexp(c, &exponent);
  int32_t top = exponent - 1 < F32_LEAST ? F32_LEAST : exponent - 1;
  add_term(t, (int64_t)ldexp(significand, exponent + F32_FRACTION - top), top - F32_FRACTION, top);
}

/* What NaNs and infinities make of a sum; 0 if there are none. */
static float unusual(const pe_scaled_site *site, const line *a, const line *b, float c) {
  float total = isfinite(c) ? 0 : c;
  for (uint32_t i = 0; i < (uint32_t)site->k / site->each; i++)
    if (a->factor[i].significand == SPECIAL || b->factor[i].significand == SPECIAL) return NAN;
  for (uint32_t k = 0; k < site->k; k++) {
    const number *x = &a->of[k], *y = &b->of[k];
    if (x->significand != SPECIAL && y->significand != SPECIAL) continue;
    total += (x->significand == SPECIAL ? x->value : (float)x->significand) *
             (y->significand == SPECIAL ? y->value : (float)y->significand);
  }
  return total;
}

static void add_products(const pe_scaled_site *site, const line *a, const line *b, terms *t) {
  int32_t fractions = (int32_t)(format_of(site->a).fraction + format_of(site->b).fraction);
  int32_t scale = a->factor[0].exponent + b->factor[0].exponent;
  for (uint32_t k = 0; k < site->k; k++) {
    int32_t exponent = a->of[k].exponent + b->of[k].exponent + scale;
    add_term(t, (int64_t)a->of[k].significand * b->of[k].significand, exponent, exponent + fractions);
  }
}

/* Sums of 16 products, which are multiples of a quarter, with their factors. */
static void add_groups(const pe_scaled_site *site, const line *a, const line *b, terms *t) {
  for (uint32_t k = 0; k < site->k; k += GROUP) {
    const number *x = &a->factor[k / site->each], *y = &b->factor[k / site->each];
    int64_t quarters = 0;
    for (uint32_t i = k; i < k + GROUP; i++)
      quarters += (int64_t)a->of[i].significand * b->of[i].significand << (a->of[i].exponent + b->of[i].exponent + 2);
    int32_t top = x->exponent + y->exponent;
    add_term(t, quarters * x->significand * y->significand, top - 2 - 2 * FACTOR_FRACTION, top);
  }
}

static uint32_t element_of_d(const pe_scaled_site *site, const line *a, const line *b, float c) {
  enum { CANONICAL_NAN = 0x7fffffff };
  float other = unusual(site, a, b, c);
  if (isnan(other)) return CANONICAL_NAN;
  if (other != 0) return pe_float_bits(other);
  terms t = {.count = 0};
  add_c(&t, c);
  if (site->k == MOST)
    add_groups(site, a, b, &t);
  else
    add_products(site, a, b, &t);
  return pe_float_bits(sum_of(&t, site->k == MOST ? GROUP_FRACTION : FRACTION));
}

void pe_mma_scaled(pe_warp *w, const pe_scaled_site *site, uint32_t mask, void *slots, uint32_t a_byte, uint32_t a_pair,
                   uint32_t b_byte, uint32_t b_lane) {
  if (!pe_whole_warp(w, site->pos, mask)) return;
  line a[ROWS], b[COLUMNS];
  for (uint32_t i = 0; i < ROWS; i++) {
    read_line(site, slots, 1, site->a, i, 2, a[i].of);
    read_factors(site, slots, 0, i % TILE * 4 + a_pair % 2 * 2 + i / TILE, a_byte, a[i].factor);
  }
  for (uint32_t i = 0; i < COLUMNS; i++) {
    read_line(site, slots, 2, site->b, i, 1, b[i].of);
    read_factors(site, slots, 1, i * 4 + b_lane % 4, b_byte, b[i].factor);
  }
  uint32_t result[4][PE_WARP_LANES];
  for (uint32_t i = 0; i < 4; i++)
    for (uint32_t lane = 0; lane < PE_WARP_LANES; lane++) {
      const uint32_t *c = register_at((fragment){slots, site->slots[3]}, i);
      result[i][lane] = element_of_d(site, &a[lane / 4 + i / 2 * TILE], &b[lane % 4 * 2 + i % 2], pe_float(c[lane]));
    }
  for (uint32_t i = 0; i < 4; i++) memcpy(register_at((fragment){slots, site->slots[0]}, i), result[i], sizeof result[i]);
}
