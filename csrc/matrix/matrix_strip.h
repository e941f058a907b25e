/* matrix_strip.h: sums of products of values that are tame: all exponents are far from the ends of a float's.
 *
 * A float holds the product of two significands of 11 bits exactly.  Multiplied by a power of two, which makes the last bit
 * that is kept 1, and converted to an integer, it is aligned and cut.
 */
#ifndef PTXEMU_MATRIX_STRIP_H
#define PTXEMU_MATRIX_STRIP_H
#include "matrix_factors.h"

#define LEAST_SCALED (-96) /* whose scale a float holds */
#define STRIP (4 * TILE)   /* rows that are added at once */
#define UNROLLED 4         /* products */
#define CHUNK 16           /* aligned products whose sum 32 bits hold: each is below 2^(25 + 2) */

/* Each of four bytes eight times. */
PE_INLINE u8x32 eight_each(const uint8_t *from) {
  int32_t bytes;
  memcpy(&bytes, from, sizeof bytes);
  u8x32 x = (u8x32)(splat(0) + bytes);
  return __builtin_shufflevector(x, x, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, /* four lines */
                                 18, 18, 18, 18, 18, 18, 18, 18, 19, 19, 19, 19, 19, 19, 19, 19);
}

/* Eight bytes in every quarter. */
PE_INLINE u8x32 four_times(const uint8_t *from) {
  uint64_t bytes;
  memcpy(&bytes, from, sizeof bytes);
  return (u8x32)((u64x4){0} + bytes);
}

/* The codes of the columns that element x of each of four rows of A multiplies. */
PE_INLINE u8x32 codes_of_columns(factors f, uint32_t x, uint32_t row) {
  if (!f.chosen) return four_times(f.cb + x * TILE);
  uint64_t rows[4];
  for (uint32_t i = 0; i < 4; i++) memcpy(rows + i, f.cb + row_of_b(f.chosen, x, row + i), sizeof *rows);
  return (u8x32)(u64x4){rows[0], rows[1], rows[2], rows[3]};
}

#define LEAST_HALF (BIAS - 14)
#define FEW_BITS 17 /* behind the point, of 17 terms below 4: 24 bits */

/* What holds the sums of a block: floats, 32 bits, or mostly 32 bits. */
enum { FEW, WORDS, LONG };

/* Of two significands, in 64ths: those of 8 bits and fewer are 1.875 at most. */
PE_INLINE uint32_t most_of_product(uint32_t type) {
  return type == PE_TYPE_F16 || type == PE_TYPE_BF16 || type == PE_TYPE_TF32 ? 4 * 64 : 15 * 15;
}

PE_INLINE int size_of_sums(const pe_mma_site *site) {
  if (site->fraction <= FEW_BITS && site->block <= CHUNK && !is_half(site)) return FEW;
  uint32_t most = site->block * most_of_product(site->a) + 2 * 64; /* C is below 2 */
  return (uint64_t)most << site->fraction <= 64ull << 31 ? WORDS : LONG;
}

/* Eight of them where floats have theirs, with other bits below. */
PE_INLINE i32x8 exponents_of_bytes(const uint8_t *row) {
  u8x32 x = four_times(row);
  x = __builtin_shufflevector(x, x, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, /* one in a word */
                              20, 20, 20, 20, 21, 21, 21, 21, 22, 22, 22, 22, 23, 23, 23, 23);
  return (i32x8)((u32x8)x >> 1);
}

/* How a site's sums are made, of floats' bits. */
typedef struct rules {
  int size; /* FEW, WORDS, LONG */
  uint32_t block;
  bool half;
  int32_t least;
  uint32_t fraction; /* to add to an exponent */
  int32_t kept;      /* of a sum */
} rules;

PE_INLINE rules rules_of(const pe_mma_site *site, int size, bool half) {
  return (rules){.size = size,
                 .block = site->block,
                 .half = half,
                 .least = site->least > LEAST_SCALED ? site->least : LEAST_SCALED,
                 .fraction = (uint32_t)site->fraction << 23,
                 .kept = (int32_t)(UINT32_MAX << (23 - site->result))};
}

/* How many products of the block that begins with x are added at once. */
PE_INLINE uint32_t products_from(rules r, factors f, uint32_t x) { return f.k - x < r.block ? f.k - x : r.block; }

/* The exponents of C, zero with one that is below all. Subnormal numbers of f16 have the least one, if that is of interest. */
PE_INLINE i32x8 exponents_of_c(rules r, bool small, i32x8 magnitude) {
  return r.half && small ? larger(magnitude, splat(LEAST_HALF << 23)) & (magnitude != 0) : magnitude;
}

/* A sum of a type, or of f16 with any exponent. */
typedef struct signed_sum {
  f32x8 value;
  i32x8 magnitude; /* the same without its sign */
} signed_sum;

/* One that 32 bits hold, in units of a power of two. */
PE_INLINE signed_sum rounded_integer(rules r, i32x8 sum, f32x8 unit) {
  i32x8 magnitude = absolute(sum), sign = sum & INT32_MIN;
  /* The conversion rounds down what has a 0 next to the last bit of 24 that a float holds. */
  f32x8 down = __builtin_convertvector(magnitude & ~(i32x8)((u32x8)magnitude >> 24), f32x8);
  if (!r.half) {
    i32x8 kept = (i32x8)((f32x8)((i32x8)down & r.kept) * unit);
    return (signed_sum){(f32x8)(kept | sign), kept};
  }
  i32x8 more = whole(down) ^ magnitude; /* if anything follows, bits that are not zero, far behind the last one of an f16 */
  i32x8 x = (i32x8)to_half_places((f32x8)((i32x8)down | more) * unit);
  return (signed_sum){(f32x8)(x | sign) + 0.0f, x}; /* no sum is -0 */
}

/* One that a float holds, as f32. */
PE_INLINE signed_sum cut_few(rules r, i32x8 sum, f32x8 unit) {
  f32x8 x = (f32x8)((i32x8) __builtin_convertvector(sum, f32x8) & r.kept) * unit;
  return (signed_sum){x, (i32x8)x & INT32_MAX};
}

/* A product of each of 4 rows more, aligned and cut. */
PE_INLINE void add_product(uint32_t x, factors f, const f32x8 *scale, i32x8 *sum) {
  for (uint32_t i = 0; i < 4; i++)
    sum[i] += whole(f.a[x * TILE + i] * load_floats(f.b + row_of_b(f.chosen, x, i)) * scale[i]);
}

/* The sums of `count` products of 4 rows. */
PE_INLINE void add_products(uint32_t count, factors f, const f32x8 *scale, i32x8 *sum) {
  i32x8 added[4];
  f32x8 by[4];
  for (int i = 0; i < 4; i++) added[i] = sum[i], by[i] = scale[i];
  for (; !f.chosen && count >= UNROLLED; count -= UNROLLED, f = factors_from(f, UNROLLED, 0))
    for (uint32_t x = 0; x < UNROLLED; x++) add_product(x, f, by, added);
  for (uint32_t x = 0; x < count; x++) add_product(x, f, by, added);
  for (int i = 0; i < 4; i++) sum[i] = added[i];
}

/* Sums of CHUNK products at a time are added; totals that do not fit are found in `over`. */
PE_INLINE void add_chunks(uint32_t count, factors f, const f32x8 *scale, i32x8 *total, i32x8 *over) {
  for (uint32_t x = 0; x < count; x += CHUNK) {
    i32x8 sum[4] = {{0}};
    add_products(count - x < CHUNK ? count - x : CHUNK, factors_from(f, x, 0), scale, sum);
    for (int i = 0; i < 4; i++) {
      i32x8 more = (i32x8)((u32x8)total[i] + (u32x8)sum[i]);
      *over |= (total[i] ^ more) & (sum[i] ^ more);
      total[i] = more;
    }
  }
}

/* Sums while products are added: totals are integers, in units of 1 / scale. */
typedef struct strip {
  f32x8 scale[STRIP];
  i32x8 total[STRIP];
  uint8_t tops[STRIP * TILE]; /* the largest exponents of the products that come next */
  bool small;                 /* some of these are below those of f16 */
  bool infinite;              /* sums may be, which f16 are that overflow */
} strip;

PE_INLINE void find_tops_of_product(uint32_t x, factors f, u8x32 *upper, u8x32 *lower) {
  *upper = larger_bytes(*upper, eight_each(f.ca + x * TILE) + codes_of_columns(f, x, 0));
  *lower = larger_bytes(*lower, eight_each(f.ca + x * TILE + 4) + codes_of_columns(f, x, 4));
}

/* The largest exponents of the block of products from x on. */
PE_INLINE void find_tops(rules r, uint32_t x, uint32_t rows, factors from, strip *s) {
  u8x32 least = (u8x32){0} + UINT8_MAX;
  for (uint32_t i = 0; i < rows; i += TILE) {
    uint32_t count = products_from(r, from, x);
    factors f = factors_from(from, x, i);
    u8x32 upper = (u8x32){0} + (uint8_t)(r.least + 2 * CODE), lower = upper;
    for (; !f.chosen && count >= UNROLLED; count -= UNROLLED, f = factors_from(f, UNROLLED, 0))
      for (uint32_t z = 0; z < UNROLLED; z++) find_tops_of_product(z, f, &upper, &lower);
    for (uint32_t z = 0; z < count; z++) find_tops_of_product(z, f, &upper, &lower);
    upper -= (uint8_t)(2 * CODE - BIAS), lower -= (uint8_t)(2 * CODE - BIAS); /* as floats have them */
    memcpy(s->tops + i * TILE, &upper, sizeof upper);
    memcpy(s->tops + (i + 4) * TILE, &lower, sizeof lower);
    if (r.half) least = smaller_bytes(least, smaller_bytes(upper, lower));
  }
  s->small = r.half && any((i32x8)(least < LEAST_HALF));
}

/* Align a sum for products whose largest exponents are these. */
PE_INLINE void align_sum(rules r, bool small, const uint8_t *tops, signed_sum c, f32x8 *scale, i32x8 *total) {
  u32x8 top = (u32x8)larger(exponents_of_bytes(tops), exponents_of_c(r, small, c.magnitude)) & 0x7f800000;
  *scale = (f32x8)((2u * BIAS << 23) + r.fraction - top);
  *total = whole(c.value * *scale);
}

PE_INLINE f32x8 inverse_of_power(f32x8 power) { return (f32x8)((2 * BIAS << 23) - (i32x8)power); }

PE_INLINE signed_sum rounded_sum(rules r, f32x8 scale, i32x8 total) {
  f32x8 unit = inverse_of_power(scale);
  return r.size == FEW ? cut_few(r, total, unit) : rounded_integer(r, total, unit);
}

/* An infinite sum of f16 is not aligned, but kept. */
PE_INLINE f32x8 finite_or_zero(f32x8 x) { return blend(special(x), (f32x8){0}, x); }

/* Rows of sums of a block of products, where 32 bits do not hold them. */
static __attribute__((noinline)) void add_long_rows(const pe_mma_site *site, uint32_t x, uint32_t count, uint32_t rows,
                                                    const factors *from, const f32x8 *scale, float *sums) {
  for (uint32_t i = 0; i < rows; i++) {
    factors f = factors_from(*from, x, i);
    f32x8 c = load_floats(sums + i * TILE);
    doubles total = doubles_of(whole(finite_or_zero(c) * scale[i]));
    for (uint32_t z = 0; z < count; z++) {
      doubles more = doubles_of(whole(f.a[z * TILE] * load_floats(f.b + row_of_b(f.chosen, z, 0)) * scale[i]));
      for (int j = 0; j < 2; j++) total.half[j] += more.half[j];
    }
    f32x8 sum = rounded(site, total, BIAS - ((i32x8)scale[i] >> 23), false);
    store_floats(sums + i * TILE, blend(special(c), c, sum));
  }
}

PE_INLINE void align_rows(rules r, bool small, uint32_t rows, strip *s, const float *sums) {
  for (uint32_t i = 0; i < rows; i++) {
    f32x8 before = load_floats(sums + i * TILE), c = r.half ? finite_or_zero(before) : before;
    align_sum(r, small, s->tops + i * TILE, (signed_sum){c, (i32x8)c & INT32_MAX}, s->scale + i, s->total + i);
  }
}

PE_INLINE void align_sums(rules r, uint32_t rows, strip *s, const float *sums) {
  if (r.half && s->small)
    align_rows(r, true, rows, s, sums);
  else
    align_rows(r, false, rows, s, sums);
}

/* The sums after products were added, aligned again if there are `more`, which may be `small`. */
PE_INLINE void take_totals(rules r, uint32_t rows, strip *s, bool more, bool small, float *sums) {
  i32x8 most = {0};
  for (uint32_t i = 0; i < rows; i++) {
    signed_sum sum = rounded_sum(r, s->scale[i], s->total[i]);
    store_floats(sums + i * TILE, sum.value);
    if (more) align_sum(r, small, s->tops + i * TILE, sum, s->scale + i, s->total + i);
    if (r.half) most = larger(most, sum.magnitude);
  }
  if (!r.half || !any((f32x8)most >= INFINITE_HALF)) return;
  s->infinite = true;
  for (uint32_t i = 0; i < rows * TILE; i += TILE) store_floats(sums + i, or_infinite_half(load_floats(sums + i)));
  if (more) align_sums(r, rows, s, sums);
}

/* The same, where some may be infinite. */
PE_INLINE void take_other_totals(rules r, uint32_t rows, strip *s, bool more, float *sums) {
  for (uint32_t i = 0; i < rows; i++) {
    f32x8 before = load_floats(sums + i * TILE), sum = rounded_sum(r, s->scale[i], s->total[i]).value;
    store_floats(sums + i * TILE, blend(special(before), before, or_infinite_half(sum)));
  }
  if (more) align_sums(r, rows, s, sums);
}

/* Add a block of products, from x on, to rows of sums. */
PE_INLINE void add_to_strip(const pe_mma_site *site, rules r, uint32_t x, uint32_t rows, factors f, strip *s, float *sums) {
  uint32_t count = products_from(r, f, x), next = x + count;
  bool more = next < f.k;
  i32x8 over = {0};
  for (uint32_t i = 0; i < rows; i += 4) {
    if (r.size == LONG)
      add_chunks(count, factors_from(f, x, i), s->scale + i, s->total + i, &over);
    else
      add_products(count, factors_from(f, x, i), s->scale + i, s->total + i);
  }
  if (more) find_tops(r, next, rows, f, s);
  if (r.size == LONG && any(over & INT32_MIN)) {
    add_long_rows(site, x, count, rows, &f, s->scale, sums);
    s->infinite = r.half;
    if (more) align_sums(r, rows, s, sums);
  } else if (r.half && s->infinite) {
    take_other_totals(r, rows, s, more, sums);
  } else if (!more) {
    take_totals(r, rows, s, false, false, sums);
  } else if (r.half && s->small) {
    take_totals(r, rows, s, true, true, sums);
  } else {
    take_totals(r, rows, s, true, false, sums);
  }
}

/* Sums of products of `rows` rows. What is added to a row waits for what was before, so all rows take each step before the next. */
PE_INLINE void add_strip(const pe_mma_site *site, int size, bool half, uint32_t rows, factors f, float *sums) {
  const rules r = rules_of(site, size, half);
  strip s;
  s.infinite = false;
  find_tops(r, 0, rows, f, &s);
  align_sums(r, rows, &s, sums);
  for (uint32_t x = 0; x < f.k; x += r.block) add_to_strip(site, r, x, rows, f, &s, sums);
}

/* Add all products to at most STRIP rows of 8 sums. */
PE_INLINE void add_tame(const pe_mma_site *site, uint32_t rows, factors f, float *sums) {
  int size = size_of_sums(site);
  if (size == FEW)
    add_strip(site, FEW, false, rows, f, sums);
  else if (size == WORDS && is_half(site))
    add_strip(site, WORDS, true, rows, f, sums);
  else if (size == WORDS)
    add_strip(site, WORDS, false, rows, f, sums);
  else if (is_half(site))
    add_strip(site, LONG, true, rows, f, sums);
  else
    add_strip(site, LONG, false, rows, f, sums);
}

#endif
