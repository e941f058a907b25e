/* matrix_mma.c: the multiplications of mma, mma.sp and wmma.mma, and of a warp's rows of wgmma.
 *
 * Elements are widened to binary64, in which all products but those of f64 are exact.  Sums of floats are those of an
 * architecture's tensor cores (matrix_aligned.c), or start with c, take the products in the order of k and are rounded once, to
 * the type of d.  (f64: fused multiply-adds in the same order.)  Integer sums are exact, and wrap or saturate at the end.
 *
 * Both multiplicands become blocks of k rows of 8 doubles: for each k, 8 rows of A, or 8 columns of B.  B's columns, and with
 * them those of the sums, stand in the order 0 2 4 6 1 3 5 7, which is how accumulators are spread over registers.
 */
#ifdef __OPTIMIZE__
#pragma GCC optimize("O3")
#endif
#include <fenv.h>
#include <math.h>
#include "format.h"
#include "half.h"
#include "matrix_aligned.h"
#include "matrix_tiles.h"

/* ---- sparse A ----------------------------------------------------------------------------------------------------------- */

/* The four bits about a chunk of a row (PTX ISA, "Sparse matrix storage"): 16-bit and wider elements have those of rows g
 * and g + 8 in the halves of one word, narrower ones in the words of two neighbouring lanes. */
static uint32_t metadata(const pe_mma_site *site, const uint32_t *e, uint32_t row, uint32_t chunk, uint32_t chunks,
                         bool narrow) {
  uint32_t high = row / TILE;
  uint32_t lane = narrow ? site->selector * 2 + chunk / 8 * 2 + high : site->selector * (chunks / 4) + chunk / 4;
  uint32_t shift = narrow ? chunk % 8 * 4 : high * 16 + chunk % 4 * 4;
  return e[row % TILE * 4 + lane % 4] >> shift & 15;
}

/* The row of B that each element of A multiplies, in blocks of k / 2 rows as A's and in their order. */
static void choose_rows(const pe_mma_site *site, const uint32_t *e, uint8_t *to) {
  uint32_t columns = tile_columns(site->a);
  uint32_t group = columns == 32 ? 2 : 1; /* 4-bit elements come in pairs */
  uint32_t chunk_size = columns == 4 ? 2 : 4 * group, chunks = site->k / chunk_size;
  bool pairs = site->flags & PE_MMA_PAIRS;
  for (uint32_t row = 0; row < site->m; row++)
    for (uint32_t chunk = 0; chunk < chunks; chunk++) {
      uint32_t bits = metadata(site, e, row, chunk, chunks, columns >= 16), first = chunk * chunk_size;
      uint32_t place = pairs ? chunk / 2 * 2 + chunk % 2 * chunks : first / 2;
      uint8_t *out = to + (row / TILE * site->k / 2 + place) * TILE + row % TILE;
      if (columns == 4) { /* 1:2, of which each index names one half */
        *out = (uint8_t)(first + (bits >> 1 & 1));
        continue;
      }
      for (uint32_t i = 0; i < 2; i++, bits >>= 2)
        for (uint32_t x = 0; x < group; x++, out += TILE) *out = (uint8_t)(first + (bits & 3) * group + x);
    }
}

/* ---- products ----------------------------------------------------------------------------------------------------------- */

/* Add the products of a block of A and one of B to 8 rows of 8 sums, four rows at a time. */
PE_FUSED static void accumulate(uint32_t k, const double *a, const double *b, double *sums) {
  for (uint32_t half = 0; half < TILE; half += 4, a += 4) {
    row4 *s = (row4 *)(sums + half * TILE);
    f64x4 s0 = s[0], s1 = s[1], s2 = s[2], s3 = s[3], s4 = s[4], s5 = s[5], s6 = s[6], s7 = s[7];
    for (uint32_t x = 0; x < k * TILE; x += TILE) {
      f64x4 even = *(const row4 *)(b + x), odd = *(const row4 *)(b + x + 4);
      s0 += a[x] * even, s1 += a[x] * odd;
      s2 += a[x + 1] * even, s3 += a[x + 1] * odd;
      s4 += a[x + 2] * even, s5 += a[x + 2] * odd;
      s6 += a[x + 3] * even, s7 += a[x + 3] * odd;
    }
    s[0] = s0, s[1] = s1, s[2] = s2, s[3] = s3, s[4] = s4, s[5] = s5, s[6] = s6, s[7] = s7;
  }
}

/* The same of a sparse A, each of whose elements multiplies a row of B of its own. */
PE_FUSED static void accumulate_chosen(uint32_t count, const double *a, const uint8_t *chosen, const double *b,
                                       double *sums) {
  for (uint32_t half = 0; half < TILE; half += 4, a += 4, chosen += 4) {
    row4 *s = (row4 *)(sums + half * TILE);
    f64x4 s0 = s[0], s1 = s[1], s2 = s[2], s3 = s[3], s4 = s[4], s5 = s[5], s6 = s[6], s7 = s[7];
    for (uint32_t x = 0; x < count * TILE; x += TILE) {
      const row4 *b0 = (const row4 *)(b + chosen[x] * TILE), *b1 = (const row4 *)(b + chosen[x + 1] * TILE);
      const row4 *b2 = (const row4 *)(b + chosen[x + 2] * TILE), *b3 = (const row4 *)(b + chosen[x + 3] * TILE);
      s0 += a[x] * b0[0], s1 += a[x] * b0[1];
      s2 += a[x + 1] * b1[0], s3 += a[x + 1] * b1[1];
      s4 += a[x + 2] * b2[0], s5 += a[x + 2] * b2[1];
      s6 += a[x + 3] * b3[0], s7 += a[x + 3] * b3[1];
    }
    s[0] = s0, s[1] = s1, s[2] = s2, s[3] = s3, s[4] = s4, s[5] = s5, s[6] = s6, s[7] = s7;
  }
}

static double quiet(double nan) { return pe_double(pe_double_bits(nan) | 1ull << 51); }

/* The sum of a row and a column that is a NaN, with the sign and payload that GPUs give it: of several the one of B goes
 * before that of the sum so far, and that before A's; what is no number for the first time is negative. */
static double nan_of(uint32_t k, const double *a, const double *b, double sum) {
  for (uint32_t x = 0; x < k * TILE; x += TILE) {
    if (isnan(b[x]))
      sum = quiet(b[x]);
    else if (isnan(sum) || isnan(a[x]))
      sum = quiet(isnan(sum) ? sum : a[x]);
    else if (isnan(sum = __builtin_fma(a[x], b[x], sum)))
      sum = pe_double(0xfff8ull << 48);
  }
  return sum;
}

/* The same for f64, whose products are not exact. */
PE_FUSED static __attribute__((noinline)) void accumulate_fused(uint32_t k, const double *restrict a,
                                                                const double *restrict b, double *restrict sums) {
  for (int i = 0; i < TILE; i++, sums += TILE) {
    double row[TILE];
    memcpy(row, sums, sizeof row);
    for (uint32_t x = 0; x < k; x++)
      for (int y = 0; y < TILE; y++) row[y] = __builtin_fma(a[x * TILE + i], b[x * TILE + y], row[y]);
    bool any_nan = false;
    for (int y = 0; y < TILE; y++) any_nan |= isnan(row[y]);
    for (int y = 0; any_nan && y < TILE; y++)
      if (isnan(row[y])) row[y] = nan_of(k, a + i, b + y, sums[y]);
    memcpy(sums, row, sizeof row);
  }
}

static void accumulate_rounded(const pe_mma_site *site, const double *a, const double *b, double *sums) {
  static const int MODES[] = {[PE_RN] = FE_TONEAREST, [PE_RZ] = FE_TOWARDZERO, [PE_RM] = FE_DOWNWARD, [PE_RP] = FE_UPWARD};
  int before = fegetround();
  fesetround(MODES[site->round & 3]);
  accumulate_fused(site->k, a, b, sums);
  fesetround(before);
}

/* ---- accumulators --------------------------------------------------------------------------------------------------------- */

PE_INLINE void load_f16(double *to, const uint32_t *pairs) {
  u32x8 words = {pairs[0] << 16, pairs[1] << 16, pairs[2] << 16, pairs[3] << 16, pairs[0], pairs[1], pairs[2], pairs[3]};
  store_doubles(to, from_f16(words));
}

/* Tiles in the order of their registers: 8 rows of 8 sums each. */
PE_FUSED static void read_c(uint32_t type, uint32_t tiles, fragment from, double *to) {
  for (uint32_t i = 0; i < tiles * TILE; i++, to += TILE) {
    uint32_t tile = i / TILE, lane = i % TILE * 4;
    if (type == PE_TYPE_F16) {
      load_f16(to, (const uint32_t *)register_at(from, tile) + lane);
      continue;
    }
    for (uint32_t odd = 0; odd < 2; odd++) {
      const void *half = register_at(from, tile * 2 + odd);
      if (type == PE_TYPE_F32)
        *(row4 *)(to + 4 * odd) = __builtin_convertvector(*(const words4 *)((const float *)half + lane), f64x4);
      else
        memcpy(to + 4 * odd, (const double *)half + lane, sizeof(row4));
    }
  }
}

PE_FUSED static void write_d(uint32_t type, uint32_t tiles, const double *sums, fragment to) {
  for (uint32_t i = 0; i < tiles * TILE; i++, sums += TILE) {
    uint32_t tile = i / TILE, lane = i % TILE * 4;
    if (type == PE_TYPE_F16) {
      u32x4 pairs = to_f16(*(const row4 *)sums) | to_f16(*(const row4 *)(sums + 4)) << 16;
      memcpy((uint32_t *)register_at(to, tile) + lane, &pairs, sizeof pairs);
      continue;
    }
    for (uint32_t odd = 0; odd < 2; odd++) {
      void *half = register_at(to, tile * 2 + odd);
      if (type == PE_TYPE_F32) {
        u32x4 words = to_f32(*(const row4 *)(sums + 4 * odd));
        memcpy((uint32_t *)half + lane, &words, sizeof words);
      } else {
        memcpy((double *)half + lane, sums + 4 * odd, sizeof(row4));
      }
    }
  }
}

PE_INLINE u32x4 load_words(const void *from, uint32_t i) {
  u32x4 x;
  memcpy(&x, (const uint8_t *)from + i * sizeof x, sizeof x);
  return x;
}
PE_INLINE void store_words(void *to, uint32_t i, u32x4 x) { memcpy((uint8_t *)to + i * sizeof x, &x, sizeof x); }

/* Tiles of sums as floats, as they come from and go to pe_add_aligned. */
PE_FUSED static void read_sums(uint32_t type, uint32_t tiles, fragment from, float *to) {
  for (uint32_t tile = 0; tile < tiles; tile++) {
    bool half = type == PE_TYPE_F16;
    const void *even = register_at(from, half ? tile : tile * 2), *odd = half ? even : register_at(from, tile * 2 + 1);
    for (uint32_t i = 0; i < TILE; i++, to += TILE) {
      u32x4 first = load_words(even, i), second = load_words(odd, i);
      store_floats(to, half ? from_f16(JOINED(first << 16, second)) : (f32x8)JOINED(first, second));
    }
  }
}

/* `rounded`: sums have the type already. */
PE_FUSED static void write_sums(uint32_t type, bool rounded, uint32_t tiles, const float *sums, fragment to) {
  for (uint32_t tile = 0; tile < tiles; tile++, sums += TILE * TILE) {
    if (type == PE_TYPE_F16) {
      void *pairs = register_at(to, tile);
      for (uint32_t i = 0; i < TILE; i++) {
        f32x8 x = load_floats(sums + i * TILE);
        u32x8 bits = half_bits(rounded ? x : to_nearest_half(x));
        store_words(pairs, i, LOW(bits) | HIGH(bits) << 16);
      }
      continue;
    }
    void *even = register_at(to, tile * 2), *odd = register_at(to, tile * 2 + 1);
    for (uint32_t i = 0; i < TILE; i++) {
      u32x8 bits = canonical(load_floats(sums + i * TILE));
      store_words(even, i, LOW(bits));
      store_words(odd, i, HIGH(bits));
    }
  }
}

/* d = c + sums for integers; the sums are small. */
PE_FUSED static void write_integers(bool saturate, uint32_t tiles, const double *sums, fragment c, fragment d) {
  for (uint32_t i = 0; i < tiles * TILE; i++, sums += TILE)
    for (uint32_t odd = 0; odd < 2; odd++) {
      uint32_t half = i / TILE * 2 + odd, lane = i % TILE * 4;
      const int32_t *start = (const int32_t *)register_at(c, half) + lane;
      uint32_t *out = (uint32_t *)register_at(d, half) + lane;
      for (uint32_t x = 0; x < 4; x++) {
        int64_t exact = (int64_t)start[x] + (int32_t)sums[odd * 4 + x];
        if (saturate) exact = exact > INT32_MAX ? INT32_MAX : exact < INT32_MIN ? INT32_MIN : exact;
        out[x] = (uint32_t)exact;
      }
    }
}

/* ---- forms ------------------------------------------------------------------------------------------------------------------ */

/* Sums of populations: of A and B, or of where they differ. */
PE_FUSED static void count_bits(const pe_mma_site *site, const pe_operands *on, double *sums) {
  uint32_t words = site->k / 32;
  for (uint32_t i = 0; i < site->m; i++)
    for (uint32_t j = 0; j < TILE; j++) {
      uint32_t count = 0;
      for (uint32_t x = 0; x < words; x++) {
        uint32_t along = x / TILE_WORDS, word = x % TILE_WORDS, tile = pe_tile_a(i / TILE, along, site->m / TILE);
        uint32_t left = ((const uint32_t *)register_at(on->a, tile))[i % TILE * TILE_WORDS + word];
        uint32_t right = ((const uint32_t *)register_at(on->b, along))[j * TILE_WORDS + word];
        count += (uint32_t)__builtin_popcount(site->flags & PE_MMA_AND ? left & right : left ^ right);
      }
      sums[i * TILE + j / 2 + j % 2 * 4] = count;
    }
}

static void read_left(const pe_mma_site *site, const pe_operands *on, float *to) {
  uint32_t held = pe_held_along(site);
  if (site->flags & PE_MMA_PAIRS)
    read_pairs(site->a, site->m / TILE, held, false, on->a, to);
  else
    read_floats(site->a, site->m / TILE, held, false, on->a, to);
  for (uint32_t i = 0; site->flags & PE_MMA_NEGATE && i < site->m * held; i++) to[i] = -to[i];
}

PE_FUSED static void read_negated(const pe_mma_site *site, const pe_operands *on, double *to) {
  float left[MAX_A];
  read_left(site, on, left);
  for (uint32_t i = 0; i < site->m * pe_held_along(site); i++) to[i] = left[i];
}

/* Add all products to the sums. */
static void multiply_blocks(const pe_mma_site *site, const pe_operands *on, double *sums) {
  double left[MAX_A], right[MAX_B];
  uint8_t chosen[MAX_A / 2];
  uint32_t down = site->m / TILE, across = site->n / TILE, held = pe_held_along(site);
  if (site->flags & PE_MMA_NEGATE)
    read_negated(site, on, left);
  else
    read_doubles(site->a, down, held, false, on->a, left);
  read_doubles(site->b, across, site->k, true, on->b, right);
  if (site->flags & PE_MMA_SPARSE) choose_rows(site, on->metadata, chosen);
  for (uint32_t j = 0; j < across; j++)
    for (uint32_t i = 0; i < down; i++, sums += TILE * TILE) {
      const double *a = left + i * held * TILE, *b = right + j * site->k * TILE;
      if (site->flags & PE_MMA_SPARSE)
        accumulate_chosen(held, a, chosen + i * held * TILE, b, sums);
      else if (site->d == PE_TYPE_F64)
        accumulate_rounded(site, a, b, sums);
      else
        accumulate(held, a, b, sums);
    }
}

/* The same as tensor cores do it. */
static void multiply_aligned(const pe_mma_site *site, const pe_operands *on) {
  float left[MAX_A], right[MAX_B], sums[MAX_C];
  uint8_t chosen[MAX_A / 2];
  uint32_t down = site->m / TILE, across = site->n / TILE;
  bool sparse = site->flags & PE_MMA_SPARSE;
  read_left(site, on, left);
  if (sparse) choose_rows(site, on->metadata, chosen);
  if (site->flags & PE_MMA_PAIRS && !sparse)
    read_pairs(site->b, across, site->k, true, on->b, right);
  else
    read_floats(site->b, across, site->k, true, on->b, right);
  read_sums(site->c, down * across, on->c, sums);
  pe_add_aligned(site, down, across, left, sparse ? chosen : NULL, right, sums);
  write_sums(site->d, site->c == site->d, down * across, sums, on->d);
}

static void multiply(const pe_mma_site *site, const pe_operands *on) {
  double sums[MAX_C];
  uint32_t tiles = site->m / TILE * (site->n / TILE);
  if (site->d == PE_TYPE_S32) {
    memset(sums, 0, tiles * TILE * TILE * sizeof *sums);
    if (site->a == PE_TYPE_B1)
      count_bits(site, on, sums);
    else
      multiply_blocks(site, on, sums);
    write_integers(site->flags & PE_MMA_SATURATE, tiles, sums, on->c, on->d);
  } else {
    read_c(site->c, tiles, on->c, sums);
    multiply_blocks(site, on, sums);
    write_d(site->d, tiles, sums, on->d);
  }
}

void pe_multiply(const pe_mma_site *site, const pe_operands *on) {
  if (site->flags & PE_MMA_QUADS)
    pe_multiply_quads(site, on);
  else if (site->fraction)
    multiply_aligned(site, on);
  else
    multiply(site, on);
}

void pe_mma(pe_warp *w, const pe_mma_site *site, uint32_t mask, void *slots) {
  if (!pe_whole_warp(w, site->pos, mask)) return;
  pe_operands on = {.d = {slots, site->slots[0]},
                    .a = {slots, site->slots[1]},
                    .b = {slots, site->slots[2]},
                    .c = {slots, site->slots[3]},
                    .metadata = register_at((fragment){slots, &site->metadata}, 0)};
  pe_multiply(site, &on);
}
