/* matrix_aligned.c: sums of products as tensor cores make them (docs/semantics.md, "Sums of floats").
 *
 * Some products and what came before are aligned to the largest exponent among them and cut to so many bits behind its point; the sum
 * of these integers is exact, and is cut or rounded to the type of the result.  The exponent of a product is the sum of those of
 * its factors, so that its significand is up to 4.
 *
 * Values whose exponents are far from the ends of a float's are added quickly (matrix_strip.h), all others here, by their significands
 * and exponents.
 */
#ifdef __OPTIMIZE__
#pragma GCC optimize("O3")
#endif
#include "matrix_aligned.h"
#include "matrix_strip.h"

#define TAME_LEAST (-2 * TAME)
#define TAME_MOST 100 /* of C */

/* A row of sums of the products of significands with any exponents, infinities and NaNs. */
PE_INLINE f32x8 add_wild(const pe_mma_site *site, factors f, const int32_t *ea, const int32_t *eb, f32x8 c) {
  int32_t least = is_half(site) ? -14 : -126, fraction = site->fraction;
  for (uint32_t x = 0; x < f.k; x += site->block) {
    uint32_t end = f.k - x < site->block ? f.k : x + site->block;
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
  return is_half(site) ? to_nearest_half(x) : x;
}

/* Those of any values, or without tensor cores. */
PE_INLINE void add_each_row(const pe_mma_site *site, uint32_t rows, factors f, const int32_t *ea, const int32_t *eb,
                            float *sums) {
  for (uint32_t row = 0; row < rows; row++) {
    factors one = factors_from(f, 0, row);
    f32x8 c = load_floats(sums + row * TILE);
    store_floats(sums + row * TILE, site->flags & PE_MMA_CHAIN ? add_chain(site, one.a, one.b, c)
                                                               : add_wild(site, one, ea + (one.a - f.a), eb, c));
  }
}

/* The rows of A from the block i on with a block of B. */
PE_INLINE void add_rows(const pe_mma_site *site, bool tame, const terms *left, const uint8_t *chosen, uint32_t i,
                        uint32_t rows, const terms *right, uint32_t j, float *sums) {
  uint32_t held = pe_held_along(site), first = i * held * TILE, column = j * site->k * TILE;
  factors f = {held, left->values + first, right->values + column, left->codes + first, right->codes + column, NULL};
  if (tame && !chosen) {
    add_tame(site, rows, f, sums);
    return;
  }
  if (chosen) f.chosen = chosen + first;
  if (tame)
    add_tame(site, rows, f, sums);
  else
    add_each_row(site, rows, f, left->exponents + first, right->exponents + column, sums);
}

/* Rows of sums whose products were added from zero on. */
PE_INLINE void add_sums(const pe_mma_site *site, uint32_t rows, const float *from_zero, float *sums) {
  for (uint32_t x = 0; x < rows * TILE; x += TILE)
    store_floats(sums + x, added(site, load_floats(sums + x), load_floats(from_zero + x)));
}

/* Whether all are zero or have exponents from TAME_LEAST to TAME_MOST. */
PE_INLINE bool are_tame(const float *sums, uint32_t count) {
  u32x8 most = {0}, least = ~most;
  for (uint32_t i = 0; i < count; i += TILE * TILE)
    for (uint32_t x = 0; x < TILE; x++) {
      f32x8 row = load_floats(sums + i + x * TILE);
      most = larger_magnitude(most, row), least = smaller_magnitude(least, row);
    }
  return !any(is_above(most, TAME_MOST) | is_below(least, TAME_LEAST));
}

/* `quickly`: there are vectors of 32 bytes, without which it takes compilers long to make much code that is not quick. */
PE_INLINE void add_aligned(bool quickly, const pe_mma_site *site, uint32_t down, uint32_t across, const float *a,
                           const uint8_t *chosen, const float *b, float *sums) {
  terms left, right;
  bool chain = site->flags & PE_MMA_CHAIN, pairs = site->flags & PE_MMA_PAIRS;
  uint32_t held = pe_held_along(site);
  int32_t least_left = least_exponent(site, site->a), least_right = least_exponent(site, site->b);
  make_terms(least_left, down * held * TILE, a, &left);
  make_terms(least_right, across * site->k * TILE, b, &right);
  bool tame = quickly && !chain && left.tame && right.tame && (pairs || are_tame(sums, down * across * TILE * TILE));
  if (!tame && !chain) {
    make_significands(least_left, down * held * TILE, &left);
    make_significands(least_right, across * site->k * TILE, &right);
  }
  for (uint32_t j = 0; j < across; j++)
    for (uint32_t i = 0; i < down; i += STRIP / TILE) {
      uint32_t rows = down - i < STRIP / TILE ? (down - i) * TILE : STRIP;
      float from_zero[STRIP * TILE];
      if (pairs) memset(from_zero, 0, rows * TILE * sizeof *from_zero);
      add_rows(site, tame, &left, chosen, i, rows, &right, j, pairs ? from_zero : sums);
      if (pairs) add_sums(site, rows, from_zero, sums);
      sums += rows * TILE;
    }
}

#ifdef PE_LEVELS
#define ADD_ALIGNED(name, quickly)                                                                                 \
  static void name(const pe_mma_site *site, uint32_t down, uint32_t across, const float *a, const uint8_t *chosen, \
                   const float *b, float *sums) {                                                                  \
    add_aligned(quickly, site, down, across, a, chosen, b, sums);                                                  \
  }
__attribute__((target("arch=x86-64-v4"))) ADD_ALIGNED(add_v4, true) __attribute__((target("arch=x86-64-v3")))
ADD_ALIGNED(add_v3, true) ADD_ALIGNED(add_slowly, false)

    void pe_add_aligned(const pe_mma_site *site, uint32_t down, uint32_t across, const float *a, const uint8_t *chosen,
                        const float *b, float *sums) {
  bool v4 = __builtin_cpu_supports("x86-64-v4"), v3 = __builtin_cpu_supports("x86-64-v3");
  (v4 ? add_v4 : v3 ? add_v3 : add_slowly)(site, down, across, a, chosen, b, sums);
}
#else
void pe_add_aligned(const pe_mma_site *site, uint32_t down, uint32_t across, const float *a, const uint8_t *chosen,
                    const float *b, float *sums) {
  add_aligned(true, site, down, across, a, chosen, b, sums);
}
#endif
