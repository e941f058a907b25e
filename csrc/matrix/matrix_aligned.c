/* matrix_aligned.c: sums of products as tensor cores make them (docs/semantics.md, "Sums of floats").
 *
 * Some products and what came before are aligned to the largest exponent among them and cut to so many bits behind its point; the sum
 * of these integers is exact, and is cut or rounded to the type of the result.  The exponent of a product is the sum of those of
 * its factors, so that its significand is up to 4.
 *
 * A float holds the product of two significands of 11 bits exactly.  Multiplied by a power of two, which makes the last bit
 * that is kept 1, and converted to an integer, it is aligned and cut.
 */
#ifdef __OPTIMIZE__
#pragma GCC optimize("O3")
#endif
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wanalyzer-shift-count-overflow"       /* it takes the lanes of a vector for its bits */
#pragma GCC diagnostic ignored "-Wanalyzer-use-of-uninitialized-value" /* it loses sight of arrays that loops fill */
#endif
#include "matrix_aligned.h"
#include "matrix_terms.h"

#define TAME_LEAST (-2 * TAME)
#define TAME_MOST 100      /* of C */
#define LEAST_SCALED (-96) /* whose scale a float holds */
#define CHUNK 16           /* aligned products whose sum 32 bits hold: each is below 2^(25 + 2) */

typedef struct doubles {
  f64x4 half[2];
} doubles;

/* What a block of A and one of B are multiplied from: elements, and codes of their exponents.  `chosen`: the row of B for each
 * element of a sparse A; NULL: the row of its own number. */
typedef struct factors {
  const float *a, *b;
  const uint8_t *ca, *cb, *chosen;
} factors;

/* Those from the product x on, of the rows of A from `row` on. */
PE_INLINE factors factors_from(factors f, uint32_t x, uint32_t row) {
  uint32_t at = x * TILE + row, shared = f.chosen ? 0 : x * TILE;
  return (factors){f.a + at, f.b + shared, f.ca + at, f.cb + shared, f.chosen ? f.chosen + at : NULL};
}

/* Where the row of B is that element x of a row of A multiplies. */
PE_INLINE uint32_t row_of_b(const uint8_t *chosen, uint32_t x, uint32_t row) {
  return (chosen ? chosen[x * TILE + row] : x) * TILE;
}

PE_INLINE doubles doubles_of(i32x8 x) {
  return (doubles){{__builtin_convertvector(LOW(x), f64x4), __builtin_convertvector(HIGH(x), f64x4)}};
}

/* ---- results ------------------------------------------------------------------------------------------------------------ */

PE_INLINE bool is_half(const pe_mma_site *site) { return site->c == PE_TYPE_F16 && site->d == PE_TYPE_F16; }

/* Sums that are rounded to zero have lost their sign. */
PE_INLINE f32x8 positive_zero(f32x8 x) { return (f32x8)((i32x8)x & (((i32x8)x & 0x7fffffff) != 0)); }

PE_INLINE f32x8 halves(f64x4 low, f64x4 high) {
  u32x4 first = to_f16(low), second = to_f16(high);
  return from_f16(JOINED(first, second) << 16);
}

/* Toward zero to so many bits behind the point, of subnormal numbers to multiples of 2^-149. */
PE_INLINE f64x4 cut(f64x4 x, uint32_t bits, bool wild) {
  f64x4 kept = (f64x4)((u64x4)x & ~((1ull << (52 - bits)) - 1));
  if (!wild) return kept;
  u64x4 small = (u64x4)((u64x4)x << 1 < ((uint64_t)(1023 - 126) << 53));
  u64x4 subnormal =
      (u64x4)(__builtin_convertvector(__builtin_convertvector((f64x4)((u64x4)x & small) * 0x1p149, i32x4), f64x4) *
              0x1p-149);
  return (f64x4)(((u64x4)kept & ~small) | (subnormal & small));
}

/* total * 2^exponent as the type of the sum. */
PE_INLINE f32x8 rounded(const pe_mma_site *site, doubles total, i32x8 exponent, bool wild) {
  f64x4 low = total.half[0] * (f64x4)((__builtin_convertvector(LOW(exponent), i64x4) + 1023) << 52);
  f64x4 high = total.half[1] * (f64x4)((__builtin_convertvector(HIGH(exponent), i64x4) + 1023) << 52);
  if (is_half(site)) return positive_zero(halves(low, high));
  f32x4 first = __builtin_convertvector(cut(low, site->result, wild), f32x4);
  f32x4 second = __builtin_convertvector(cut(high, site->result, wild), f32x4);
  return positive_zero(JOINED(first, second));
}

/* ---- sums --------------------------------------------------------------------------------------------------------------- */

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

/* The largest codes of the products of 8 rows of 8. */
PE_INLINE void find_tops(uint32_t count, factors f, int32_t least, uint8_t *tops) {
  u8x32 upper = (u8x32){0} + (uint8_t)(least + 2 * CODE), lower = upper;
  for (uint32_t x = 0; x < count; x++) {
    upper = larger_bytes(upper, eight_each(f.ca + x * TILE) + codes_of_columns(f, x, 0));
    lower = larger_bytes(lower, eight_each(f.ca + x * TILE + 4) + codes_of_columns(f, x, 4));
  }
  memcpy(tops, &upper, sizeof upper);
  memcpy(tops + sizeof upper, &lower, sizeof lower);
}

PE_INLINE i32x8 exponents_of_codes(const uint8_t *row) {
  u8x32 x = four_times(row);
  x = __builtin_shufflevector(x, x, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, /* one in a word */
                              20, 20, 20, 20, 21, 21, 21, 21, 22, 22, 22, 22, 23, 23, 23, 23);
  return ((i32x8)x & 0xff) - 2 * CODE;
}

/* Of C, zero with the least one. */
PE_INLINE i32x8 exponents_of_sums(const pe_mma_site *site, f32x8 c) {
  if (is_half(site)) return exponents_of(c, -14);
  return ((i32x8)c >> 23 & 0xff) - 127;
}

/* The integer times 2^exponent, both as they are in a sum that 32 bits hold, as the type of the sum. */
PE_INLINE f32x8 rounded_integer(const pe_mma_site *site, i32x8 sum, i32x8 exponent) {
  i32x8 magnitude = absolute(sum), sign = sum & INT32_MIN;
  f32x8 nearest = __builtin_convertvector(magnitude, f32x8);
  i32x8 back = whole(nearest), bits = (i32x8)nearest + (back > magnitude); /* toward zero */
  if (!is_half(site)) {
    f32x8 cut_off = (f32x8)(bits & ~((1 << (23 - site->result)) - 1));
    return (f32x8)((i32x8)(cut_off * power(exponent)) | sign);
  }
  f32x8 x = (f32x8)(bits | ((back != magnitude) & 1)) * power(exponent); /* the last bit says whether anything follows it */
  i32x8 half = (i32x8)nearest_half(x);
  return (f32x8)(half | (sign & (half != 0)));
}

#define FEW_BITS 17 /* behind the point, of 17 terms below 4: 24 bits */

/* The same of one that a float holds, as f32. */
PE_INLINE f32x8 cut_few(const pe_mma_site *site, i32x8 sum, i32x8 exponent) {
  i32x8 bits = (i32x8) __builtin_convertvector(sum, f32x8) & ~((1 << (23 - site->result)) - 1);
  return (f32x8)bits * power(exponent);
}

/* The sums of `count` products of 4 rows, aligned and cut. */
PE_INLINE void add_products(uint32_t count, factors f, const f32x8 *scale, i32x8 *sum) {
  i32x8 s0 = sum[0], s1 = sum[1], s2 = sum[2], s3 = sum[3];
  for (uint32_t x = 0; x < count; x++) {
    const float *a = f.a + x * TILE;
    s0 += whole(a[0] * load_floats(f.b + row_of_b(f.chosen, x, 0)) * scale[0]);
    s1 += whole(a[1] * load_floats(f.b + row_of_b(f.chosen, x, 1)) * scale[1]);
    s2 += whole(a[2] * load_floats(f.b + row_of_b(f.chosen, x, 2)) * scale[2]);
    s3 += whole(a[3] * load_floats(f.b + row_of_b(f.chosen, x, 3)) * scale[3]);
  }
  sum[0] = s0, sum[1] = s1, sum[2] = s2, sum[3] = s3;
}

/* Four rows of sums, where 32 bits do not hold them. */
static __attribute__((noinline)) void add_long_rows(const pe_mma_site *site, uint32_t count, const factors *f,
                                                    const i32x8 *exponents, f32x8 *c) {
  for (uint32_t i = 0; i < 4; i++) {
    f32x8 scale = power(site->fraction - exponents[i]);
    doubles total = doubles_of(whole(c[i] * scale));
    for (uint32_t x = 0; x < count; x++) {
      doubles more = doubles_of(whole(f->a[x * TILE + i] * load_floats(f->b + row_of_b(f->chosen, x, i)) * scale));
      for (int j = 0; j < 2; j++) total.half[j] += more.half[j];
    }
    c[i] = rounded(site, total, exponents[i] - site->fraction, false);
  }
}

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

/* Four rows of sums of `count` products more. */
PE_INLINE void add_rows(const pe_mma_site *site, int size, uint32_t count, factors f, const uint8_t *tops, f32x8 *c) {
  i32x8 exponents[4], total[4], over = {0};
  f32x8 scale[4];
  for (int i = 0; i < 4; i++) {
    exponents[i] = larger(exponents_of_codes(tops + i * TILE), exponents_of_sums(site, c[i]));
    scale[i] = power(site->fraction - exponents[i]);
    total[i] = whole(c[i] * scale[i]);
  }
  if (size != LONG) add_products(count, f, scale, total);
  for (uint32_t x = 0; size == LONG && x < count; x += CHUNK) {
    i32x8 sum[4] = {{0}};
    add_products(count - x < CHUNK ? count - x : CHUNK, factors_from(f, x, 0), scale, sum);
    for (int i = 0; i < 4; i++) {
      i32x8 more = (i32x8)((u32x8)total[i] + (u32x8)sum[i]);
      over |= (total[i] ^ more) & (sum[i] ^ more);
      total[i] = more;
    }
  }
  if (size == LONG && any(over & INT32_MIN)) {
    add_long_rows(site, count, &f, exponents, c);
    return;
  }
  for (int i = 0; i < 4; i++) {
    i32x8 exponent = exponents[i] - site->fraction;
    c[i] = size == FEW ? cut_few(site, total[i], exponent) : rounded_integer(site, total[i], exponent);
  }
}

PE_INLINE bool any_special(const f32x8 *rows) {
  i32x8 found = {0};
  for (int i = 0; i < TILE; i++) found |= special(rows[i]);
  return any(found);
}

/* Eight rows of sums of k products, of values that are tame: all exponents are far from the ends of a float's.  A sum of f16
 * that is infinite after some of them stays so. */
PE_INLINE void add_tame(const pe_mma_site *site, int size, uint32_t k, factors f, f32x8 *c) {
  int32_t least = site->least > LEAST_SCALED ? site->least : LEAST_SCALED;
  for (uint32_t x = 0; x < k; x += site->block) {
    uint32_t count = k - x < site->block ? k - x : site->block;
    uint8_t tops[TILE * TILE];
    bool infinite = x && is_half(site) && any_special(c);
    f32x8 before[TILE];
    for (int i = 0; infinite && i < TILE; i++) before[i] = c[i], c[i] = blend(special(c[i]), (f32x8){0}, c[i]);
    find_tops(count, factors_from(f, x, 0), least, tops);
    for (uint32_t i = 0; i < TILE; i += 4) add_rows(site, size, count, factors_from(f, x, i), tops + i * TILE, c + i);
    for (int i = 0; infinite && i < TILE; i++) c[i] = blend(special(before[i]), before[i], c[i]);
  }
}

/* One row of the same, of significands with any exponents, infinities and NaNs. */
PE_INLINE f32x8 add_wild(const pe_mma_site *site, uint32_t k, factors f, const int32_t *ea, const int32_t *eb, f32x8 c) {
  int32_t least = is_half(site) ? -14 : -126, fraction = site->fraction;
  for (uint32_t x = 0; x < k; x += site->block) {
    uint32_t end = k - x < site->block ? k : x + site->block;
    i32x8 own = exponents_of(c, least);
    i32x8 top = larger(own, splat(site->least));
    for (uint32_t z = x; z < end; z++) top = larger(top, ea[z * TILE] + load_integers(eb + row_of_b(f.chosen, z, 0)));
    f32x8 sum = significands_of(c, own); /* not a number of interest, but infinite or NaN if the sum is */
    f32x8 first = blend(special(sum), (f32x8){0}, sum);
    doubles total = doubles_of(whole(first * power(larger(own - top + fraction, splat(-127)))));
    for (uint32_t z = x; z < end; z++) {
      uint32_t at = row_of_b(f.chosen, z, 0);
      f32x8 product = f.a[z * TILE] * load_floats(f.b + at), finite = blend(special(product), (f32x8){0}, product);
      i32x8 shift = ea[z * TILE] + load_integers(eb + at) - top + fraction;
      doubles more = doubles_of(whole(finite * power(larger(shift, splat(-127)))));
      for (int i = 0; i < 2; i++) total.half[i] += more.half[i];
      sum += product;
    }
    c = blend(special(sum), sum, rounded(site, total, top - fraction, true));
  }
  return c;
}

/* Without tensor cores: f32 multiplications, whose results are exact, and additions.  For f16 two products at a time; for f32
 * from zero on, so that no sum is -0. */
PE_INLINE f32x8 add_chain(const pe_mma_site *site, const float *a, const float *b, f32x8 c) {
  f32x8 products[4];
  for (uint32_t x = 0; x < 4; x++) products[x] = a[x * TILE] * load_floats(b + x * TILE);
  if (site->d == PE_TYPE_F16) return c + (products[0] + products[1]) + (products[2] + products[3]);
  return c + (((0.0f + products[0] + products[1]) + products[2]) + products[3]);
}

/* The addition of C at the end. A sum of two f16, rounded to f32, has the f16 that it has exactly. */
PE_INLINE f32x8 added(const pe_mma_site *site, f32x8 c, f32x8 sum) {
  f32x8 x = c + sum;
  if (!is_half(site)) return x;
  i32x8 sign = (i32x8)x & INT32_MIN;
  return (f32x8)((i32x8)nearest_half((f32x8)((i32x8)x ^ sign)) | sign);
}

PE_INLINE void add_tame_of_size(const pe_mma_site *site, uint32_t k, factors f, f32x8 *c) {
  switch (size_of_sums(site)) {
    case FEW: add_tame(site, FEW, k, f, c); break;
    case WORDS: add_tame(site, WORDS, k, f, c); break;
    default: add_tame(site, LONG, k, f, c);
  }
}

/* The eight rows of a block of A with a block of B. */
PE_INLINE void add_block(const pe_mma_site *site, bool tame, const terms *left, const uint8_t *chosen, uint32_t i,
                         const terms *right, uint32_t j, float *sums) {
  uint32_t held = pe_held_along(site), first = i * held * TILE, column = j * site->k * TILE;
  factors f = {left->values + first, right->values + column, left->codes + first, right->codes + column, NULL};
  const int32_t *ea = left->exponents + first, *eb = right->exponents + column;
  f32x8 c[TILE], sum[TILE];
  for (uint32_t row = 0; row < TILE; row++) {
    c[row] = load_floats(sums + row * TILE);
    sum[row] = site->flags & PE_MMA_PAIRS ? (f32x8){0} : c[row];
  }
  if (tame && chosen)
    add_tame_of_size(site, held, (factors){f.a, f.b, f.ca, f.cb, chosen + first}, sum);
  else if (tame)
    add_tame_of_size(site, held, f, sum);
  if (chosen) f.chosen = chosen + first;
  for (uint32_t row = 0; row < TILE; row++) {
    if (site->flags & PE_MMA_CHAIN)
      sum[row] = add_chain(site, f.a + row, f.b, c[row]);
    else if (!tame)
      sum[row] = add_wild(site, held, factors_from(f, 0, row), ea + row, eb, sum[row]);
    f32x8 result = site->flags & PE_MMA_PAIRS ? added(site, c[row], sum[row]) : sum[row];
    memcpy(sums + row * TILE, &result, sizeof result);
  }
}

PE_INLINE bool are_tame(const float *sums, uint32_t count) {
  i32x8 wild = {0};
  for (uint32_t i = 0; i < count; i += TILE) {
    i32x8 exponents = exponents_of(load_floats(sums + i), -126);
    wild |= (exponents > TAME_MOST) | ((exponents < TAME_LEAST) & (exponents != NOTHING));
  }
  return !any(wild);
}

PE_FUSED void pe_add_aligned(const pe_mma_site *site, uint32_t down, uint32_t across, const float *a, const uint8_t *chosen,
                             const float *b, float *sums) {
  terms left, right;
  bool chain = site->flags & PE_MMA_CHAIN, from_zero = site->flags & PE_MMA_PAIRS;
  uint32_t held = pe_held_along(site);
  int32_t least_left = least_exponent(site, site->a), least_right = least_exponent(site, site->b);
  make_terms(least_left, down * held * TILE, a, &left);
  make_terms(least_right, across * site->k * TILE, b, &right);
  bool tame = !chain && left.tame && right.tame && (from_zero || are_tame(sums, down * across * TILE * TILE));
  if (!tame && !chain) {
    make_significands(least_left, down * held * TILE, &left);
    make_significands(least_right, across * site->k * TILE, &right);
  }
  for (uint32_t j = 0; j < across; j++)
    for (uint32_t i = 0; i < down; i++, sums += TILE * TILE) add_block(site, tame, &left, chosen, i, &right, j, sums);
}
