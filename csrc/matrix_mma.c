/* matrix_mma.c: the multiplications of mma, mma.sp and wmma.mma.
 *
 * Elements are widened to binary64, in which all products but those of f64 are exact.  A sum starts with c and takes the
 * products in the order of k; it is rounded once, to the type of d.  (f64: fused multiply-adds in the same order.)
 * Integer sums are exact, and wrap or saturate at the end.
 */
#pragma GCC optimize("O3")
#include <fenv.h>
#include <math.h>
#include "half.h"
#include "matrix.h"

#define MAX_A 2048      /* elements: m16n8k128 */
#define MAX_B 1024
#define MAX_C 256
#define QUADS 4

/* ---- elements to binary64 --------------------------------------------------------------------------------------------- */

PE_INLINE float as_float(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

PE_INLINE uint32_t as_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* A float of fewer bits, moved to the place of an f32's: its exponent is rebiased by the multiplication, which is exact for
 * subnormal numbers too.  From `special` on are infinity and NaN. */
PE_INLINE double rebias(uint32_t sign, uint32_t magnitude, float scale, uint32_t special) {
  uint32_t bits = as_bits(as_float(magnitude) * scale) | (magnitude >= special ? 0x7f800000 : 0);
  return as_float(bits | sign);
}

PE_INLINE double from_f16(uint32_t x) { return rebias((x & 0x8000) << 16, (x & 0x7fff) << 13, 0x1p112f, 0x7c00 << 13); }
PE_INLINE double from_bf16(uint32_t x) { return as_float(x << 16); }
PE_INLINE double from_tf32(uint32_t x) { return as_float(x & 0xffffe000); }
PE_INLINE double from_e4m3(uint32_t x) { return rebias((x & 0x80) << 24, (x & 0x7f) << 20, 0x1p120f, 0x7f << 20); }
PE_INLINE double from_e5m2(uint32_t x) { return from_f16(x << 8); }
PE_INLINE double from_s8(uint32_t x) { return (int8_t)x; }
PE_INLINE double from_u8(uint32_t x) { return (uint8_t)x; }
PE_INLINE double from_u4(uint32_t x) { return x; }
PE_INLINE double from_s4(uint32_t x) { return (int32_t)(x ^ 8) - 8; }

/* A tile into rows of doubles that lie `step` apart. */
#define DEFINE_WIDEN(NAME, T, COUNT)                                              \
  PE_INLINE void widen_##NAME(const uint8_t *tile, double *to, uint32_t step) {   \
    for (int row = 0; row < TILE; row++) {                                        \
      T from[COUNT];                                                              \
      memcpy(from, tile + row * sizeof from, sizeof from);                        \
      for (int i = 0; i < COUNT; i++) to[row * step + i] = from_##NAME(from[i]);  \
    }                                                                             \
  }
#define DEFINE_WIDEN_NIBBLES(NAME)                                                \
  PE_INLINE void widen_##NAME(const uint8_t *tile, double *to, uint32_t step) {   \
    for (int row = 0; row < TILE; row++)                                          \
      for (int i = 0; i < 32; i++) to[row * step + i] = from_##NAME(tile[row * 16 + i / 2] >> i % 2 * 4 & 15); \
  }

DEFINE_WIDEN(f16, uint16_t, 8)
DEFINE_WIDEN(bf16, uint16_t, 8)
DEFINE_WIDEN(tf32, uint32_t, 4)
DEFINE_WIDEN(e4m3, uint8_t, 16)
DEFINE_WIDEN(e5m2, uint8_t, 16)
DEFINE_WIDEN(s8, uint8_t, 16)
DEFINE_WIDEN(u8, uint8_t, 16)
DEFINE_WIDEN_NIBBLES(s4)
DEFINE_WIDEN_NIBBLES(u4)

PE_INLINE void widen_f64(const uint8_t *tile, double *to, uint32_t step) {
  for (int row = 0; row < TILE; row++) memcpy(to + row * step, tile + row * 32, 32);
}

/* Elements in a tile's row. */
static uint32_t tile_columns(uint32_t type) {
  switch (type) {
    case PE_TYPE_F16: case PE_TYPE_BF16: return 8;
    case PE_TYPE_TF32: case PE_TYPE_F64: return 4;
    case PE_TYPE_S4: case PE_TYPE_U4: return 32;
    default: return 16;
  }
}

static uint32_t tile_bytes(uint32_t type) { return PE_WARP_LANES * (type == PE_TYPE_F64 ? 8 : 4); }

PE_INLINE void widen(uint32_t type, const uint8_t *tile, double *to, uint32_t step) {
  switch (type) {
    case PE_TYPE_F16: widen_f16(tile, to, step); break;
    case PE_TYPE_BF16: widen_bf16(tile, to, step); break;
    case PE_TYPE_TF32: widen_tf32(tile, to, step); break;
    case PE_TYPE_F64: widen_f64(tile, to, step); break;
    case PE_TYPE_E4M3: widen_e4m3(tile, to, step); break;
    case PE_TYPE_E5M2: widen_e5m2(tile, to, step); break;
    case PE_TYPE_S8: widen_s8(tile, to, step); break;
    case PE_TYPE_U8: widen_u8(tile, to, step); break;
    case PE_TYPE_S4: widen_s4(tile, to, step); break;
    default: widen_u4(tile, to, step);
  }
}

/* A as m rows of k elements. */
PE_FUSED static void read_a(uint32_t type, uint32_t m, uint32_t k, const uint8_t *fragment, double *to) {
  uint32_t columns = tile_columns(type), bytes = tile_bytes(type), down = m / TILE;
  for (uint32_t j = 0; j < k / columns; j++)
    for (uint32_t i = 0; i < down; i++)
      widen(type, fragment + pe_tile_a(i, j, down) * bytes, to + i * TILE * k + j * columns, k);
}

/* B as n / 8 blocks of k rows of 8 elements. */
PE_FUSED static void read_b(uint32_t type, uint32_t n, uint32_t k, const uint8_t *fragment, double *to) {
  uint32_t columns = tile_columns(type), bytes = tile_bytes(type), along = k / columns;
  double tile[TILE * 32];
  for (uint32_t i = 0; i < n / TILE; i++)
    for (uint32_t j = 0; j < along; j++) {
      widen(type, fragment + pe_tile_b(i, j, along) * bytes, tile, columns);
      double *block = to + (i * k + j * columns) * TILE;
      for (uint32_t x = 0; x < columns; x++)
        for (int y = 0; y < TILE; y++) block[x * TILE + y] = tile[y * columns + x];
    }
}

/* ---- sparse A ----------------------------------------------------------------------------------------------------------- */

/* The four bits about a chunk of a row (PTX ISA, "Sparse matrix storage"): 16-bit and wider elements have those of rows g
 * and g + 8 in the halves of one word, narrower ones in the words of two neighbouring lanes. */
static uint32_t metadata(const pe_mma_site *site, const uint32_t *e, uint32_t row, uint32_t chunk, uint32_t chunks, bool narrow) {
  uint32_t high = row / TILE, lane = narrow ? site->selector * 2 + chunk / 8 * 2 + high : site->selector * (chunks / 4) + chunk / 4;
  uint32_t shift = narrow ? chunk % 8 * 4 : high * 16 + chunk % 4 * 4;
  return e[row % TILE * 4 + lane % 4] >> shift & 15;
}

/* m rows of k / 2 elements to m rows of k, the others zero. */
static void expand(const pe_mma_site *site, const uint32_t *e, const double *from, double *to) {
  uint32_t columns = tile_columns(site->a), half = site->k / 2;
  uint32_t group = columns == 32 ? 2 : 1;           /* 4-bit elements come in pairs */
  uint32_t chunk_size = columns == 4 ? 2 : 4 * group, chunks = site->k / chunk_size;
  memset(to, 0, sizeof *to * site->m * site->k);
  for (uint32_t row = 0; row < site->m; row++)
    for (uint32_t chunk = 0; chunk < chunks; chunk++) {
      uint32_t bits = metadata(site, e, row, chunk, chunks, columns >= 16);
      double *out = to + row * site->k + chunk * chunk_size;
      const double *in = from + row * half + chunk * chunk_size / 2;
      if (columns == 4) {                            /* 1:2, of which each index names one half */
        out[bits >> 1 & 1] = in[0];
        continue;
      }
      for (uint32_t i = 0; i < 2; i++)
        for (uint32_t x = 0; x < group; x++) out[(bits >> 2 * i & 3) * group + x] += in[i * group + x];
    }
}

/* ---- products ----------------------------------------------------------------------------------------------------------- */

typedef double row8 __attribute__((vector_size(TILE * sizeof(double)), aligned(8)));

/* Add the products of m rows of A and one block of B to as many rows of 8 sums. */
PE_FUSED static void accumulate(uint32_t m, uint32_t k, const double *a, const double *b, double *sums) {
  for (uint32_t i = 0; i < m; i += 4, a += 4 * k) {
    row8 *s = (row8 *)(sums + i * TILE), s0 = s[0], s1 = s[1], s2 = s[2], s3 = s[3];
    for (uint32_t x = 0; x < k; x++) {
      row8 row = *(const row8 *)(b + x * TILE);
      s0 += a[x] * row;
      s1 += a[k + x] * row;
      s2 += a[2 * k + x] * row;
      s3 += a[3 * k + x] * row;
    }
    s[0] = s0, s[1] = s1, s[2] = s2, s[3] = s3;
  }
}

/* The same for f64, whose products are not exact. */
PE_FUSED static __attribute__((noinline)) void accumulate_fused(uint32_t m, uint32_t k, const double *a, const double *b,
                                                                double *sums) {
  for (uint32_t i = 0; i < m; i++, sums += TILE)
    for (uint32_t x = 0; x < k; x++) {
      double factor = a[i * k + x];
      for (int y = 0; y < TILE; y++) sums[y] = fma(factor, b[x * TILE + y], sums[y]);
    }
}

static void accumulate_rounded(const pe_mma_site *site, const double *a, const double *b, double *sums) {
  static const int MODES[] = {[PE_RN] = FE_TONEAREST, [PE_RZ] = FE_TOWARDZERO, [PE_RM] = FE_DOWNWARD, [PE_RP] = FE_UPWARD};
  int before = fegetround();
  fesetround(MODES[site->round & 3]);
  accumulate_fused(site->m, site->k, a, b, sums);
  fesetround(before);
}

/* ---- accumulators --------------------------------------------------------------------------------------------------------- */

/* Tiles of 8 by 8 in the order of their registers. */
PE_FUSED static void read_c(uint32_t type, uint32_t tiles, const uint8_t *fragment, double *to) {
  for (uint32_t tile = 0; tile < tiles; tile++, to += TILE * TILE) {
    if (type == PE_TYPE_F16) {
      uint16_t from[TILE * TILE];
      memcpy(from, fragment + tile * sizeof from, sizeof from);
      for (int i = 0; i < TILE * TILE; i++) to[i] = from_f16(from[i]);
    } else if (type == PE_TYPE_F32) {
      float from[2][PE_WARP_LANES];
      memcpy(from, fragment + tile * sizeof from, sizeof from);
      for (int i = 0; i < PE_WARP_LANES; i++) to[2 * i] = from[0][i], to[2 * i + 1] = from[1][i];
    } else {
      double from[2][PE_WARP_LANES];
      memcpy(from, fragment + tile * sizeof from, sizeof from);
      for (int i = 0; i < PE_WARP_LANES; i++) to[2 * i] = from[0][i], to[2 * i + 1] = from[1][i];
    }
  }
}

/* Round to nearest even as an f16: adding and taking away 1.5 * 2^52 times the f16's last place rounds the double. */
PE_INLINE uint16_t to_f16(double x) {
  uint64_t bits, exponent;
  memcpy(&bits, &x, sizeof bits);
  exponent = bits & 0x7ff0000000000000;
  uint64_t least = (uint64_t)(1023 - 14) << 52;
  exponent = exponent < least ? least : exponent;
  double magic;
  memcpy(&magic, &exponent, sizeof magic);
  magic *= 0x1.8p42;
  double rounded = x + magic - magic;
  uint32_t magnitude = as_bits((float)rounded * 0x1p-112f) & 0x7fffffff, sign = (uint32_t)(bits >> 48) & 0x8000;
  uint32_t result = magnitude >> 13 > 0x7c00 ? 0x7c00 : magnitude >> 13;
  return (uint16_t)(x != x ? 0x7fff : sign | result);
}

PE_FUSED static void write_d(uint32_t type, uint32_t tiles, const double *from, uint8_t *fragment) {
  for (uint32_t tile = 0; tile < tiles; tile++, from += TILE * TILE) {
    if (type == PE_TYPE_F16) {
      uint16_t to[TILE * TILE];
      for (int i = 0; i < TILE * TILE; i++) to[i] = to_f16(from[i]);
      memcpy(fragment + tile * sizeof to, to, sizeof to);
    } else if (type == PE_TYPE_F32) {
      uint32_t to[2][PE_WARP_LANES];
      for (int e = 0; e < 2; e++)
        for (int i = 0; i < PE_WARP_LANES; i++) {
          float value = (float)from[2 * i + e];
          to[e][i] = value != value ? 0x7fffffff : as_bits(value);
        }
      memcpy(fragment + tile * sizeof to, to, sizeof to);
    } else {
      double to[2][PE_WARP_LANES];
      for (int i = 0; i < PE_WARP_LANES; i++) to[0][i] = from[2 * i], to[1][i] = from[2 * i + 1];
      memcpy(fragment + tile * sizeof to, to, sizeof to);
    }
  }
}

/* d = c + sums for integers; the sums are small. */
static void write_integers(const pe_mma_site *site, uint32_t tiles, const double *sums, const uint8_t *c, uint8_t *d) {
  for (uint32_t i = 0; i < tiles * TILE * TILE; i++) {
    uint32_t at = (i / (TILE * TILE) * 2 * PE_WARP_LANES + i % 2 * PE_WARP_LANES + i % (TILE * TILE) / 2) * 4;
    int32_t start;
    memcpy(&start, c + at, sizeof start);
    int64_t exact = start + (int64_t)sums[i];
    if (site->flags & PE_MMA_SATURATE) exact = exact > INT32_MAX ? INT32_MAX : exact < INT32_MIN ? INT32_MIN : exact;
    uint32_t result = (uint32_t)exact;
    memcpy(d + at, &result, sizeof result);
  }
}

/* ---- forms ------------------------------------------------------------------------------------------------------------------ */

/* Sums of populations: of A and B, or of where they differ. */
static void count_bits(const pe_mma_site *site, const uint32_t *a, const uint32_t *b, double *sums) {
  uint32_t words = site->k / 32;
  for (uint32_t i = 0; i < site->m; i++)
    for (uint32_t j = 0; j < site->n; j++) {
      uint32_t count = 0;
      for (uint32_t x = 0; x < words; x++) {
        uint32_t tile = pe_tile_a(i / TILE, x / TILE_WORDS, site->m / TILE), word = x % TILE_WORDS;
        uint32_t left = a[tile * PE_WARP_LANES + i % TILE * TILE_WORDS + word];
        uint32_t right = b[x / TILE_WORDS * PE_WARP_LANES + j * TILE_WORDS + word];
        count += (uint32_t)__builtin_popcount(site->flags & PE_MMA_AND ? left & right : left ^ right);
      }
      sums[i * TILE + j] = count;
    }
}

static void multiply(const pe_mma_site *site, const void *a, const void *b, const void *c, const void *e, void *d) {
  double left[MAX_A], right[MAX_B], sums[MAX_C];
  uint32_t m = site->m, n = site->n, k = site->k, tiles = m / TILE * (n / TILE);
  bool integer = site->d == PE_TYPE_S32;
  if (integer)
    memset(sums, 0, sizeof sums);
  else
    read_c(site->c, tiles, c, sums);
  if (site->a == PE_TYPE_B1) {
    count_bits(site, a, b, sums);
  } else {
    if (site->flags & PE_MMA_SPARSE) {
      double packed[MAX_A / 2];
      read_a(site->a, m, k / 2, a, packed);
      expand(site, e, packed, left);
    } else {
      read_a(site->a, m, k, a, left);
    }
    read_b(site->b, n, k, b, right);
    for (uint32_t j = 0; j < n / TILE; j++) {
      if (site->d == PE_TYPE_F64)
        accumulate_rounded(site, left, right + j * k * TILE, sums + j * m * TILE);
      else
        accumulate(m, k, left, right + j * k * TILE, sums + j * m * TILE);
    }
  }
  if (integer)
    write_integers(site, tiles, sums, c, d);
  else
    write_d(site->d, tiles, sums, d);
}

/* m8n8k4 of f16: quad q of lanes and quad q + 4 multiply on their own.  Lane i of the eight is line i % 4 + 4 * (i / 4) of
 * each matrix, or gives one k of half of it; f32 accumulators lie in 2x2 blocks (PTX ISA, "Matrix Fragments for mma.m8n8k4"). */
static void quad_multiply(const pe_mma_site *site, uint32_t quad, const uint16_t *a, const uint16_t *b, const void *c, void *d) {
  double left[TILE * 4], right[4 * TILE], sums[TILE * TILE];
  uint32_t row[TILE][TILE], column[TILE][TILE], lane[TILE];
  bool wide[2] = {site->c == PE_TYPE_F32, site->d == PE_TYPE_F32};
  for (uint32_t i = 0; i < TILE; i++) {
    lane[i] = quad * 4 + i % 4 + i / 4 * 16;
    for (uint32_t x = 0; x < 4; x++) {
      uint32_t at = (x / 2 * PE_WARP_LANES + lane[i]) * 2 + x % 2, line = x + i / 4 * 4;
      left[site->flags & PE_MMA_A_COL ? line * 4 + i % 4 : i * 4 + x] = from_f16(a[at]);
      right[site->flags & PE_MMA_B_ROW ? i % 4 * TILE + line : x * TILE + i] = from_f16(b[at]);
    }
    for (uint32_t x = 0; x < TILE; x++) {
      row[i][x] = (i & 1) + (x & 2) + (i & 4);
      column[i][x] = (x & 4) + (i & 2) + (x & 1);
    }
  }
  for (uint32_t i = 0; i < TILE; i++)
    for (uint32_t x = 0; x < TILE; x++) {
      if (wide[0])
        sums[row[i][x] * TILE + column[i][x]] = ((const float *)c)[x * PE_WARP_LANES + lane[i]];
      else
        sums[i * TILE + x] = from_f16(((const uint16_t *)c)[(x / 2 * PE_WARP_LANES + lane[i]) * 2 + x % 2]);
    }
  accumulate(TILE, 4, left, right, sums);
  for (uint32_t i = 0; i < TILE; i++)
    for (uint32_t x = 0; x < TILE; x++) {
      if (wide[1]) {
        float value = (float)sums[row[i][x] * TILE + column[i][x]];
        ((uint32_t *)d)[x * PE_WARP_LANES + lane[i]] = value != value ? 0x7fffffff : as_bits(value);
      } else {
        ((uint16_t *)d)[(x / 2 * PE_WARP_LANES + lane[i]) * 2 + x % 2] = to_f16(sums[i * TILE + x]);
      }
    }
}

void pe_mma(pe_warp *w, const pe_mma_site *site, uint32_t mask, const void *a, const void *b, const void *c,
            const void *e, void *d) {
  if (!pe_whole_warp(w, site->pos, mask)) return;
  if (!(site->flags & PE_MMA_QUADS)) {
    multiply(site, a, b, c, e, d);
    return;
  }
  for (uint32_t quad = 0; quad < QUADS; quad++) quad_multiply(site, quad, a, b, c, d);
}
