/* matrix_aligned.c: sums of products as tensor cores make them (docs/semantics.md, "Sums of floats").
 *
 * Some products and what came before are aligned to the largest exponent among them and cut to so many bits behind its point; the sum
 * of these integers is exact, and is cut or rounded to the type of the result.  The exponent of a product is the sum of those of
 * its factors, so that its significand is up to 4.
 *
 * A float holds the product of two significands of 11 bits exactly.  Multiplied by a power of two, which makes the last bit
 * that is kept 1, and converted to an integer, it is aligned and cut.
 */
#pragma GCC optimize("O3")
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wanalyzer-shift-count-overflow" /* it takes the lanes of a vector for its bits */
#endif
#include "matrix_aligned.h"
#include "matrix.h"
#include "matrix_vector.h"

#define NOTHING (-10000) /* the exponent of zero */
#define TAME 30          /* of elements: exponents from -30 to 30 */
#define TAME_LEAST (-2 * TAME)
#define TAME_MOST 100      /* of C */
#define LEAST_SCALED (-96) /* whose scale a float holds */
#define CHUNK 16           /* aligned products whose sum 32 bits hold: each is below 2^(25 + 2) */

#define MAX_TERMS 1024 /* of a multiplicand: m16n8k64 of 8 bits */

/* The elements of a multiplicand in the order in which they are added. What is not `tame` has elements whose products floats may
 * not hold. */
typedef struct terms {
  float values[MAX_TERMS];
  uint32_t packed[MAX_TERMS];   /* exponents in halves of words: of A two rows in one, of B each twice */
  int32_t exponents[MAX_TERMS]; /* the same, of what is not tame */
  bool tame;
} terms;

typedef struct f64x8 {
  f64x4 half[2];
} f64x8;

typedef int16_t i16x8 __attribute__((vector_size(16)));
typedef int16_t i16x16 __attribute__((vector_size(32)));

PE_INLINE i32x8 choose(i32x8 mask, i32x8 yes, i32x8 no) { return (yes & mask) | (no & ~mask); }
/* As loops, which compilers know to be one instruction. */
PE_INLINE i32x8 larger(i32x8 x, i32x8 y) {
  for (int i = 0; i < 8; i++) x[i] = x[i] > y[i] ? x[i] : y[i];
  return x;
}
PE_INLINE i16x16 larger_halves(i16x16 x, i16x16 y) {
  for (int i = 0; i < 16; i++) x[i] = x[i] > y[i] ? x[i] : y[i];
  return x;
}
PE_INLINE i32x8 absolute(i32x8 x) {
  for (int i = 0; i < 8; i++) x[i] = x[i] < 0 ? -x[i] : x[i];
  return x;
}
PE_INLINE i32x8 splat(int32_t x) { return (i32x8){x, x, x, x, x, x, x, x}; }
PE_INLINE f32x8 blend(i32x8 mask, f32x8 yes, f32x8 no) { return (f32x8)choose(mask, (i32x8)yes, (i32x8)no); }
PE_INLINE f32x8 power(i32x8 exponent) { return (f32x8)((exponent + 127) << 23); }
PE_INLINE i32x8 whole(f32x8 x) { return __builtin_convertvector(x, i32x8); } /* toward zero */
PE_INLINE i32x8 special(f32x8 x) { return ((i32x8)x & 0x7f800000) == 0x7f800000; }
PE_INLINE bool any(i32x8 mask) {
  u64x4 words = (u64x4)mask;
  return (words[0] | words[1] | words[2] | words[3]) != 0;
}

PE_INLINE f32x8 load_floats(const float *from) {
  f32x8 x;
  memcpy(&x, from, sizeof x);
  return x;
}
PE_INLINE i32x8 load_integers(const int32_t *from) {
  i32x8 x;
  memcpy(&x, from, sizeof x);
  return x;
}
PE_INLINE f64x8 doubles_of(i32x8 x) {
  return (f64x8){{__builtin_convertvector(LOW(x), f64x4), __builtin_convertvector(HIGH(x), f64x4)}};
}

/* ---- terms -------------------------------------------------------------------------------------------------------------- */

/* Of floats; a subnormal number of the type that they came from has the type's least exponent. */
PE_INLINE i32x8 exponents_of(f32x8 x, int32_t least) {
  i32x8 magnitude = (i32x8)x & 0x7fffffff;
  return choose(magnitude == 0, splat(NOTHING), larger((magnitude >> 23) - 127, splat(least)));
}

static int32_t least_exponent(const pe_mma_site *site, uint32_t type) {
  switch (site->flags & PE_MMA_PAIRS ? PE_TYPE_F16 : type) { /* to which pairs are converted */
    case PE_TYPE_F16:
    case PE_TYPE_E5M2: return -14;
    case PE_TYPE_E4M3: return -6;
    default: return -126;
  }
}

/* Which of k comes at a place: with PE_MMA_PAIRS the first pair of every four of those that A holds come first, then the others. */
static uint32_t element_at(const pe_mma_site *site, uint32_t place) {
  uint32_t pair = site->flags & PE_MMA_SPARSE ? 4 : 2, half = site->k / 2;
  return place % half / pair * 2 * pair + place % pair + place / half * pair;
}

/* Of so many blocks of rows; `twice`: of B. */
PE_INLINE void make_terms(const pe_mma_site *site, uint32_t type, uint32_t blocks, bool twice, const float *from,
                          terms *to) {
  bool pairs = site->flags & PE_MMA_PAIRS;
  int32_t least = least_exponent(site, type);
  uint32_t k = site->k, i = 0;
  i32x8 wild = {0};
  for (uint32_t block = 0; block < blocks; block++, from += k * TILE)
    for (uint32_t x = 0; x < k; x++, i += TILE) {
      f32x8 values = load_floats(from + (pairs ? element_at(site, x) : x) * TILE);
      i32x8 exponents = exponents_of(values, least);
      wild |= (absolute(exponents) > TAME) & (exponents != NOTHING);
      memcpy(to->values + i, &values, sizeof values);
      if (twice) {
        i32x8 doubled = (exponents & 0xffff) | (i32x8)((u32x8)exponents << 16);
        memcpy(to->packed + i, &doubled, sizeof doubled);
      } else {
        i16x8 halves = __builtin_convertvector(exponents, i16x8);
        memcpy(to->packed + i / 2, &halves, sizeof halves);
      }
    }
  to->tame = !any(wild);
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
    memcpy(of->values + i, &x, sizeof x);
  }
}

/* ---- results ------------------------------------------------------------------------------------------------------------ */

PE_INLINE bool is_half(const pe_mma_site *site) { return site->c == PE_TYPE_F16 && site->d == PE_TYPE_F16; }

PE_INLINE f32x8 halves(f64x4 low, f64x4 high) {
  u32x4 first = to_f16(low), second = to_f16(high);
  return from_f16(JOINED(first, second));
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
PE_INLINE f32x8 rounded(const pe_mma_site *site, f64x8 total, i32x8 exponent, bool wild) {
  f64x4 low = total.half[0] * (f64x4)((__builtin_convertvector(LOW(exponent), i64x4) + 1023) << 52);
  f64x4 high = total.half[1] * (f64x4)((__builtin_convertvector(HIGH(exponent), i64x4) + 1023) << 52);
  if (is_half(site)) return halves(low, high);
  f32x4 first = __builtin_convertvector(cut(low, site->result, wild), f32x4);
  f32x4 second = __builtin_convertvector(cut(high, site->result, wild), f32x4);
  return JOINED(first, second);
}

/* ---- sums --------------------------------------------------------------------------------------------------------------- */

/* The largest exponents of 8 rows, two in the halves of words: the sum of a word of A and of those of B are two rows of
 * exponents. */
typedef struct tops {
  i16x16 pair[TILE / 2];
} tops;

PE_INLINE tops largest_of_block(uint32_t count, const uint32_t *a, const uint32_t *b, int32_t least) {
  i16x16 first = (i16x16)splat((int32_t)((uint32_t)least << 16 | (least & 0xffff)));
  tops top = {{first, first, first, first}};
  for (uint32_t x = 0; x < count; x++, a += TILE / 2, b += TILE) {
    i16x16 exponents = (i16x16)load_integers((const int32_t *)b);
    for (int i = 0; i < TILE / 2; i++) top.pair[i] = larger_halves(top.pair[i], (i16x16)splat((int32_t)a[i]) + exponents);
  }
  return top;
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
  return (f32x8)((i32x8)nearest_half(x) | sign);
}

/* The sums of `count` products of 4 rows, aligned and cut. */
PE_INLINE void add_products(uint32_t count, const float *a, const float *b, const f32x8 *scale, i32x8 *sum) {
  i32x8 s0 = sum[0], s1 = sum[1], s2 = sum[2], s3 = sum[3];
  for (uint32_t x = 0; x < count * TILE; x += TILE) {
    f32x8 column = load_floats(b + x);
    s0 += whole(a[x] * column * scale[0]), s1 += whole(a[x + 1] * column * scale[1]);
    s2 += whole(a[x + 2] * column * scale[2]), s3 += whole(a[x + 3] * column * scale[3]);
  }
  sum[0] = s0, sum[1] = s1, sum[2] = s2, sum[3] = s3;
}

/* Four rows of sums, where 32 bits do not hold them. */
static __attribute__((noinline)) void add_long_rows(const pe_mma_site *site, uint32_t count, const float *a, const float *b,
                                                    const i32x8 *exponents, f32x8 *c) {
  for (int i = 0; i < 4; i++) {
    f32x8 scale = power(site->fraction - exponents[i]);
    f64x8 total = doubles_of(whole(c[i] * scale));
    for (uint32_t x = 0; x < count * TILE; x += TILE) {
      f64x8 more = doubles_of(whole(a[x + i] * load_floats(b + x) * scale));
      for (int j = 0; j < 2; j++) total.half[j] += more.half[j];
    }
    c[i] = rounded(site, total, exponents[i] - site->fraction, false);
  }
}

/* Four rows of sums of `count` products more; `top` are the largest exponents of two pairs of rows. */
PE_INLINE void add_rows(const pe_mma_site *site, uint32_t count, const float *a, const float *b, const i16x16 *top,
                        f32x8 *c) {
  i32x8 exponents[4], total[4], over = {0};
  f32x8 scale[4];
  for (int i = 0; i < 4; i++) {
    i32x8 pair = (i32x8)top[i / 2], own = exponents_of_sums(site, c[i]);
    exponents[i] = larger(i % 2 ? pair >> 16 : (i32x8)((u32x8)pair << 16) >> 16, own);
    scale[i] = power(site->fraction - exponents[i]);
    total[i] = whole(c[i] * scale[i]);
  }
  for (uint32_t x = 0; x < count; x += CHUNK) {
    i32x8 sum[4] = {{0}};
    add_products(count - x < CHUNK ? count - x : CHUNK, a + x * TILE, b + x * TILE, scale, sum);
    for (int i = 0; i < 4; i++) {
      i32x8 more = (i32x8)((u32x8)total[i] + (u32x8)sum[i]);
      over |= (total[i] ^ more) & (sum[i] ^ more);
      total[i] = more;
    }
  }
  if (any(over & INT32_MIN)) {
    add_long_rows(site, count, a, b, exponents, c);
    return;
  }
  for (int i = 0; i < 4; i++) c[i] = rounded_integer(site, total[i], exponents[i] - site->fraction);
}

/* Eight rows of sums, of values that are tame: all exponents are far from the ends of a float's. */
PE_INLINE void add_tame(const pe_mma_site *site, const float *a, const uint32_t *ea, const float *b, const uint32_t *eb,
                        f32x8 *c) {
  int32_t least = site->least > LEAST_SCALED ? site->least : LEAST_SCALED;
  for (uint32_t x = 0; x < site->k; x += site->block) {
    uint32_t count = site->k - x < site->block ? site->k - x : site->block;
    tops top = largest_of_block(count, ea + x * (TILE / 2), eb + x * TILE, least);
    for (int i = 0; i < TILE; i += 4) add_rows(site, count, a + x * TILE + i, b + x * TILE, top.pair + i / 2, c + i);
  }
}

/* The same of significands with any exponents, infinities and NaNs. */
PE_INLINE f32x8 add_wild(const pe_mma_site *site, const float *a, const int32_t *ea, const float *b, const int32_t *eb,
                         f32x8 c) {
  int32_t least = is_half(site) ? -14 : -126, fraction = site->fraction;
  for (uint32_t x = 0; x < site->k; x += site->block) {
    uint32_t end = site->k - x < site->block ? site->k : x + site->block;
    i32x8 own = exponents_of(c, least);
    i32x8 top = larger(own, splat(site->least));
    for (uint32_t z = x; z < end; z++) top = larger(top, ea[z * TILE] + load_integers(eb + z * TILE));
    f32x8 sum = significands_of(c, own); /* not a number of interest, but infinite or NaN if the sum is */
    f32x8 first = blend(special(sum), (f32x8){0}, sum);
    f64x8 total = doubles_of(whole(first * power(larger(own - top + fraction, splat(-127)))));
    for (uint32_t z = x; z < end; z++) {
      f32x8 product = a[z * TILE] * load_floats(b + z * TILE), finite = blend(special(product), (f32x8){0}, product);
      i32x8 shift = ea[z * TILE] + load_integers(eb + z * TILE) - top + fraction;
      f64x8 more = doubles_of(whole(finite * power(larger(shift, splat(-127)))));
      for (int i = 0; i < 2; i++) total.half[i] += more.half[i];
      sum += product;
    }
    c = blend(special(sum), sum, rounded(site, total, top - fraction, true));
  }
  return c;
}

/* Without tensor cores: f32 multiplications, whose results are exact, and additions.  For f16 two products at a time. */
PE_INLINE f32x8 add_chain(const pe_mma_site *site, const float *a, const float *b, f32x8 c) {
  f32x8 products[4];
  for (uint32_t x = 0; x < 4; x++) products[x] = a[x * TILE] * load_floats(b + x * TILE);
  if (site->d == PE_TYPE_F16) return c + (products[0] + products[1]) + (products[2] + products[3]);
  return c + (((products[0] + products[1]) + products[2]) + products[3]);
}

PE_INLINE bool is_tame(f32x8 c) {
  i32x8 exponents = exponents_of(c, -126);
  return !any((exponents > TAME_MOST) | ((exponents < TAME_LEAST) & (exponents != NOTHING)));
}

/* The addition of C at the end. */
PE_INLINE f32x8 added(const pe_mma_site *site, f32x8 c, f32x8 sum) {
  if (!is_half(site)) return c + sum;
  return halves(__builtin_convertvector(LOW(c), f64x4) + __builtin_convertvector(LOW(sum), f64x4),
                __builtin_convertvector(HIGH(c), f64x4) + __builtin_convertvector(HIGH(sum), f64x4));
}

/* The eight rows of a block of A with a block of B. */
PE_INLINE void add_block(const pe_mma_site *site, bool tame, const terms *left, uint32_t i, const terms *right, uint32_t j,
                         float *sums) {
  uint32_t size = site->k * TILE;
  const float *a = left->values + i * size, *b = right->values + j * size;
  const int32_t *ea = left->exponents + i * size, *eb = right->exponents + j * size;
  f32x8 c[TILE], sum[TILE];
  for (uint32_t row = 0; row < TILE; row++) {
    c[row] = load_floats(sums + row * TILE);
    sum[row] = site->flags & PE_MMA_PAIRS ? (f32x8){0} : c[row];
  }
  if (tame) add_tame(site, a, left->packed + i * size / 2, b, right->packed + j * size, sum);
  for (uint32_t row = 0; row < TILE; row++) {
    if (site->flags & PE_MMA_CHAIN)
      sum[row] = add_chain(site, a + row, b, c[row]);
    else if (!tame)
      sum[row] = add_wild(site, a + row, ea + row, b, eb, sum[row]);
    f32x8 result = site->flags & PE_MMA_PAIRS ? added(site, c[row], sum[row]) : sum[row];
    memcpy(sums + row * TILE, &result, sizeof result);
  }
}

PE_INLINE bool are_tame(const float *sums, uint32_t count) {
  bool tame = true;
  for (uint32_t i = 0; i < count; i += TILE) tame = tame && is_tame(load_floats(sums + i));
  return tame;
}

PE_FUSED void pe_add_aligned(const pe_mma_site *site, uint32_t down, uint32_t across, const float *a, const float *b,
                             float *sums) {
  terms left, right;
  bool chain = site->flags & PE_MMA_CHAIN, pairs = site->flags & PE_MMA_PAIRS;
  make_terms(site, site->a, down, false, a, &left);
  make_terms(site, site->b, across, true, b, &right);
  bool tame = !chain && left.tame && right.tame && (pairs || are_tame(sums, down * across * TILE * TILE));
  if (!tame && !chain) {
    make_significands(least_exponent(site, site->a), down * site->k * TILE, &left);
    make_significands(least_exponent(site, site->b), across * site->k * TILE, &right);
  }
  for (uint32_t j = 0; j < across; j++)
    for (uint32_t i = 0; i < down; i++, sums += TILE * TILE) add_block(site, tame, &left, i, &right, j, sums);
}
