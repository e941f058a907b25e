/* matrix_scaled.c: mma with scale factors for blocks of elements (PTX ISA, "Block Scaling for mma.sync").
 *
 * Sums are those of microsoft/MMA-Sim (MIT). Of k 32, products are aligned as those of other multiplications, to the exponents
 * that the factors give them. Of k 64 and 96, 16 products are added exactly, and the sums of those and C are aligned. Nothing is
 * rounded but the result, toward zero, to f32.
 */
#include <math.h>
#include "matrix_scaled.h"
#include "format.h"
#include "internal.h"

enum { ROWS = 16, COLUMNS = 8, BYTES_K = 32, MOST = 96, GROUP = 16, MOST_FACTORS = MOST / GROUP, WORDS = 4 };
enum { FRACTION = 25, GROUP_FRACTION = 35, LEAST = -133, F32_FRACTION = 23, F32_BIAS = 127 };
enum { FACTOR_FRACTION = 3, FACTOR_BIAS = 127, E4M3_BIAS = 7, ZERO_TOP = -126 };
enum { NOWHERE = -4096 /* the exponent of a zero */, FARTHEST = 63 /* that a term is shifted */ };

/* Elements of a row of A or a column of B: integers, and the exponents of a one, with the bits that integers have behind the point;
 * factors alike. Lines with NaNs or infinities have values, too. */
typedef struct line {
  int32_t significand[MOST], top[MOST], factor[MOST_FACTORS], factor_top[MOST_FACTORS];
  float value[MOST];
  bool special, wild; /* whether an element is none that is finite, and whether a factor is a NaN */
} line;

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

/* NaN or infinity, if the element is either; or else 0. */
PE_INLINE float special(uint32_t type, uint32_t bits) {
  uint32_t magnitude = bits & 0x7f;
  if (type == PE_TYPE_E4M3 && magnitude == 0x7f) return NAN;
  if (type != PE_TYPE_E5M2 || magnitude < 0x7c) return 0;
  return magnitude > 0x7c ? NAN : bits & 0x80 ? -INFINITY : INFINITY;
}

PE_INLINE int32_t significand_of(format f, uint32_t bits) {
  uint32_t fraction = bits >> f.first & ((1u << f.fraction) - 1);
  uint32_t exponent = bits >> (f.first + f.fraction) & ((1u << f.exponent) - 1);
  int32_t significand = (int32_t)(fraction | (uint32_t)(exponent != 0) << f.fraction);
  return bits >> (f.first + f.exponent + f.fraction) & 1 ? -significand : significand;
}

PE_INLINE int32_t top_of(format f, uint32_t bits) {
  uint32_t exponent = bits >> (f.first + f.fraction) & ((1u << f.exponent) - 1);
  return (int32_t)(exponent ? exponent : 1) - f.bias;
}

PE_INLINE void decode(uint32_t type, uint32_t count, const uint32_t *bits, line *to) {
  format f = format_of(type);
  to->special = false;
  for (uint32_t k = 0; k < count; k++) {
    to->significand[k] = significand_of(f, bits[k]);
    to->top[k] = to->significand[k] ? top_of(f, bits[k]) : NOWHERE;
  }
  for (uint32_t k = 0; k < count; k++) to->special |= special(type, bits[k]) != 0;
  for (uint32_t k = 0; to->special && k < count; k++) {
    float other = special(type, bits[k]);
    to->value[k] = other != 0 ? other : (float)to->significand[k];
  }
}

/* ---- operands: element i of a register's lane, and factors ---- */

PE_INLINE bool in_bytes(const pe_scaled_site *site) { return site->k == BYTES_K; }

PE_INLINE uint32_t element(const pe_scaled_site *site, uint32_t word, uint32_t i) {
  return in_bytes(site) ? word >> 8 * i & 255 : (word >> 4 * i & 15) << 2;
}

/* `count` elements of a row of A, or a column of B; `rows` of eight there are. */
PE_INLINE void read_elements(const pe_scaled_site *site, void *slots, uint32_t operand, uint32_t number, uint32_t rows,
                             uint32_t count, uint32_t *bits) {
  uint32_t per_word = in_bytes(site) ? 4 : 8, words = count / per_word;
  fragment registers = {slots, site->slots[operand]};
  for (uint32_t i = 0; i < words; i++) {
    const uint32_t *lanes = register_at(registers, number / TILE + i / WORDS * rows);
    for (uint32_t j = 0; j < per_word; j++)
      bits[i * per_word + j] = element(site, lanes[number % TILE * WORDS + i % WORDS], j);
  }
}

PE_FUSED static void read_lines(const pe_scaled_site *site, void *slots, line *a, line *b, uint32_t (*columns)[2 * MOST]) {
  uint32_t bits[MOST];
  for (uint32_t i = 0; i < ROWS; i++) {
    read_elements(site, slots, 1, i, ROWS / TILE, site->k, bits);
    decode(site->a, site->k, bits, &a[i]);
  }
  for (uint32_t i = 0; i < COLUMNS; i++) {
    read_elements(site, slots, 2, i, 1, site->k << site->sparse, columns[i]);
    if (!site->sparse) decode(site->b, site->k, columns[i], &b[i]);
  }
}

static void decode_factor(const pe_scaled_site *site, uint32_t bits, uint32_t i, line *to) {
  enum { ONE = 1 << FACTOR_FRACTION, FRACTIONS = ONE - 1, E4M3_NAN = 127, POWER_NAN = 255 };
  uint32_t exponent = bits >> FACTOR_FRACTION & 15;
  to->wild |= site->e4m3 ? (bits & E4M3_NAN) == E4M3_NAN : bits == POWER_NAN;
  to->factor[i] = site->e4m3 ? (int32_t)(bits & FRACTIONS) | (exponent ? ONE : 0) : ONE;
  to->factor_top[i] = site->e4m3 ? (int32_t)(exponent ? exponent : 1) - E4M3_BIAS : (int32_t)bits - FACTOR_BIAS;
  if (!to->factor[i]) to->factor_top[i] = ZERO_TOP;
}

/* The factors of a line, from a byte of a word on, or of two of k 96. */
static void decode_factors(const pe_scaled_site *site, uint64_t words, uint32_t byte, line *to) {
  uint32_t bytes = site->k == MOST ? 8 : 4;
  to->wild = false;
  for (uint32_t i = 0; i < (uint32_t)site->k / site->each; i++)
    decode_factor(site, words >> (byte + i) % bytes * 8 & 255, i, to);
}

static void read_factors(const pe_scaled_site *site, void *slots, uint32_t operand, uint32_t lane, uint32_t byte, line *to) {
  const uint32_t *words = register_at((fragment){slots, &site->factors[operand]}, 0);
  decode_factors(site, words[lane], byte, to);
}

/* ---- sums ---- */

/* A term as an integer, of which one is 2^(most - fraction): significand * 2^(top - bits behind the point), without what is behind the
 * fraction. `left`: the fraction less these bits. */
PE_INLINE int64_t aligned(int64_t significand, int32_t left, int32_t top, int32_t most) {
  int32_t far = most - top;
  int64_t magnitude = (significand < 0 ? -significand : significand) << left >> (far < FARTHEST ? far : FARTHEST);
  return significand < 0 ? -magnitude : magnitude;
}

PE_INLINE float f32_toward_zero(double x) {
  float near = (float)x;
  if (fabs(x) >= 0x1p128) return near;
  return fabs((double)near) > fabs(x) ? pe_float(pe_float_bits(near) - 1) : near;
}

/* An integer of which one is 2^exponent. */
PE_INLINE float result_of(int64_t total, int32_t exponent) {
  enum { F64_BIAS = 1023, F64_FRACTION = 52 };
  union {
    uint64_t bits;
    double value;
  } unit = {(uint64_t)(exponent + F64_BIAS) << F64_FRACTION};
  return f32_toward_zero((double)total * unit.value);
}

/* C as an integer, with the exponent of a one. */
PE_INLINE int32_t parts_of_c(uint32_t bits, int32_t *top) {
  int32_t exponent = (int32_t)(bits >> F32_FRACTION & 255);
  int32_t significand = (int32_t)(bits & ((1u << F32_FRACTION) - 1)) | (exponent ? 1 << F32_FRACTION : 0);
  *top = significand ? (exponent ? exponent : 1) - F32_BIAS : NOWHERE;
  return bits >> 31 ? -significand : significand;
}

PE_INLINE int32_t larger(int32_t a, int32_t b) { return a > b ? a : b; }

/* Of k 32: C and products. */
PE_INLINE float sum_of_products(const line *a, const line *b, uint32_t fractions, uint32_t c) {
  enum { K = 32 };
  int32_t c_top, top[K], scale = a->factor_top[0] + b->factor_top[0], c_significand = parts_of_c(c, &c_top);
  int32_t most = larger(LEAST, c_top);
  for (uint32_t k = 0; k < K; k++) top[k] = a->top[k] + b->top[k] + scale, most = larger(most, top[k]);
  int64_t total = aligned(c_significand, FRACTION - F32_FRACTION, c_top, most);
  for (uint32_t k = 0; k < K; k++)
    total += aligned(a->significand[k] * b->significand[k], (int32_t)(FRACTION - fractions), top[k], most);
  return result_of(total, most - FRACTION);
}

/* The sum of 16 products, in quarters. */
PE_INLINE int32_t quarters(const int32_t *a, const int32_t *a_top, const int32_t *b, const int32_t *b_top) {
  int32_t total = 0;
  for (uint32_t i = 0; i < GROUP; i++) total += a[i] * b[i] * (1 << ((a_top[i] + b_top[i]) & 7));
  return total;
}

/* Of k 64 and 96: C and sums of 16 products with their factors. */
PE_INLINE float sum_of_groups(const line *a, const line *b, uint32_t groups, uint32_t each, uint32_t c) {
  enum { BEHIND = 2 + 2 * FACTOR_FRACTION };
  int64_t group[MOST_FACTORS];
  int32_t c_top, top[MOST_FACTORS], c_significand = parts_of_c(c, &c_top), most = larger(LEAST, c_top);
  for (uint32_t i = 0; i < groups; i++) {
    uint32_t at = i * GROUP, factor = at / each;
    int32_t by = a->factor[factor] * b->factor[factor];
    group[i] = (int64_t)by * quarters(a->significand + at, a->top + at, b->significand + at, b->top + at);
    top[i] = a->factor_top[factor] + b->factor_top[factor]; /* that of a sum of zero, too */
    most = larger(most, top[i]);
  }
  int64_t total = aligned(c_significand, GROUP_FRACTION - F32_FRACTION, c_top, most);
  for (uint32_t i = 0; i < groups; i++) total += aligned(group[i], GROUP_FRACTION - BEHIND, top[i], most);
  return result_of(total, most - GROUP_FRACTION);
}

/* What NaNs and infinities make of a sum; 0 if there are none. */
PE_INLINE float unusual(const pe_scaled_site *site, const line *a, const line *b, float c) {
  float total = isfinite(c) ? 0 : c;
  if (a->wild || b->wild) return NAN;
  for (uint32_t k = 0; (a->special || b->special) && k < site->k; k++) {
    float x = a->special ? a->value[k] : (float)a->significand[k], y = b->special ? b->value[k] : (float)b->significand[k];
    if (!isfinite(x) || !isfinite(y)) total += x * y;
  }
  return total;
}

PE_INLINE uint32_t element_of_d(const pe_scaled_site *site, const line *a, const line *b, uint32_t fractions, uint32_t c) {
  enum { CANONICAL_NAN = 0x7fffffff };
  float other = unusual(site, a, b, pe_float(c));
  if (isnan(other)) return CANONICAL_NAN;
  if (other != 0) return pe_float_bits(other);
  return pe_float_bits(in_bytes(site) ? sum_of_products(a, b, fractions, c)
                                      : sum_of_groups(a, b, site->k / GROUP, site->each, c));
}

/* Of a column of B those elements that a row of a sparse A meets: two of four, or of four pairs. */
PE_INLINE void choose_bits(const pe_scaled_site *site, const uint32_t *metadata, uint32_t row, const uint32_t *from,
                           uint32_t *to) {
  enum { CHUNKS = 16, IN_WORD = 8 };
  uint32_t group = in_bytes(site) ? 1 : 2;
  for (uint32_t chunk = 0; chunk < CHUNKS; chunk++, from += 4 * group) {
    uint32_t word = metadata[row % TILE * WORDS + chunk / IN_WORD * 2 + row / TILE], indices = word >> chunk % IN_WORD * 4;
    for (uint32_t i = 0; i < 2; i++)
      for (uint32_t x = 0; x < group; x++) *to++ = from[(indices >> 2 * i & 3) * group + x];
  }
}

/* Those elements of a column, decoded. */
PE_INLINE void meet(const pe_scaled_site *site, const uint32_t *metadata, uint32_t row, const uint32_t *column, line *to) {
  uint32_t chosen[MOST];
  choose_bits(site, metadata, row, column, chosen);
  decode(site->b, site->k, chosen, to);
}

PE_FUSED static void multiply(const pe_scaled_site *site, void *slots, const line *a, line *b,
                              uint32_t (*columns)[2 * MOST]) {
  uint32_t fractions = format_of(site->a).fraction + format_of(site->b).fraction;
  const uint32_t *metadata = site->sparse ? register_at((fragment){slots, &site->metadata}, 0) : NULL;
  for (uint32_t i = 0; i < WORDS; i++) {
    const uint32_t *c = register_at((fragment){slots, site->slots[3]}, i);
    uint32_t result[PE_WARP_LANES];
    for (uint32_t lane = 0; lane < PE_WARP_LANES; lane++) {
      uint32_t row = lane / 4 + i / 2 * TILE, column = lane % 4 * 2 + i % 2;
      if (metadata) meet(site, metadata, row, columns[column], &b[column]);
      result[lane] = element_of_d(site, &a[row], &b[column], fractions, c[lane]);
    }
    memcpy(register_at((fragment){slots, site->slots[0]}, i), result, sizeof result);
  }
}

void pe_mma_scaled(pe_warp *w, const pe_scaled_site *site, uint32_t mask, void *slots, uint32_t a_byte, uint32_t a_pair,
                   uint32_t b_byte, uint32_t b_lane) {
  if (!pe_whole_warp(w, site->pos, mask)) return;
  line a[ROWS], b[COLUMNS] = {0};
  uint32_t columns[COLUMNS][2 * MOST];
  read_lines(site, slots, a, b, columns);
  for (uint32_t i = 0; i < ROWS; i++)
    read_factors(site, slots, 0, i % TILE * WORDS + a_pair % 2 * 2 + i / TILE, a_byte, &a[i]);
  for (uint32_t i = 0; i < COLUMNS; i++) read_factors(site, slots, 1, i * WORDS + b_lane % 4, b_byte, &b[i]);
  multiply(site, slots, a, b, columns);
}

/* ---- tiles ---- */

/* The elements of a row of so many tiles, `step` tiles apart. */
PE_INLINE void read_bits(const pe_scaled_site *site, const pe_halves *tiles, uint32_t along, uint32_t step, uint32_t row,
                         uint32_t *bits) {
  uint32_t words[WORDS], per_word = in_bytes(site) ? 4 : 8;
  for (uint32_t tile = 0; tile < along; tile++) {
    memcpy(words, tiles[tile * step].at[row], sizeof words);
    for (uint32_t i = 0; i < WORDS; i++)
      for (uint32_t j = 0; j < per_word; j++) *bits++ = element(site, words[i], j);
  }
}

static void negate(uint32_t count, line *to) {
  for (uint32_t k = 0; k < count; k++) to->significand[k] = -to->significand[k], to->value[k] = -to->value[k];
}

PE_FUSED void pe_scaled_tiles(const pe_scaled_site *site, const pe_scaled_side *a, const pe_scaled_side *b,
                              const uint32_t *metadata, uint32_t columns, bool negated, uint32_t (*sums)[PE_WARP_LANES]) {
  uint32_t fractions = format_of(site->a).fraction + format_of(site->b).fraction, held = site->k == MOST ? 3 : 2;
  uint32_t along = metadata ? 2 * held : held, bits[2 * MOST];
  line left[ROWS], right = {0};
  memset(left, 0, sizeof left);
  for (uint32_t i = 0; i < ROWS; i++) {
    read_bits(site, &a->tiles[i / TILE], held, ROWS / TILE, i % TILE, bits);
    decode(site->a, site->k, bits, &left[i]);
    decode_factors(site, a->factors[i], a->byte, &left[i]);
    if (negated) negate(site->k, &left[i]);
  }
  for (uint32_t x = 0; x < columns; x++) {
    read_bits(site, &b->tiles[x / TILE * along], along, 1, x % TILE, bits);
    if (!metadata) decode(site->b, site->k, bits, &right);
    decode_factors(site, b->factors[x], b->byte, &right);
    for (uint32_t i = 0; i < ROWS; i++) {
      uint32_t *sum = &sums[x / TILE * 4 + i / TILE * 2 + x % 2][i % TILE * WORDS + x % TILE / 2];
      if (metadata) meet(site, metadata, i, bits, &right);
      *sum = element_of_d(site, &left[i], &right, fractions, *sum);
    }
  }
}
