/* matrix_quads.c: m8n8k4 of f16, of which a warp executes four at once.
 *
 * Quad q of lanes and quad q + 4 multiply on their own (PTX ISA, "Matrix Fragments for mma.m8n8k4"). Each of the eight lanes holds a
 * line of a multiplicand: four elements along k, or, of a k, four in each quad.
 */
#ifdef __OPTIMIZE__
#pragma GCC optimize("O3")
#endif
#include "format.h"
#include "matrix_aligned.h"
#include "matrix_factors.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wanalyzer-shift-count-overflow" /* it takes the lanes of a vector for its bits */
#endif

#define QUADS 4
#define ALONG 4 /* k */

typedef struct quad {
  float a[ALONG * TILE], b[ALONG * TILE], sums[TILE * TILE];
} quad;

/* What the lanes of a quad hold in a register. */
PE_INLINE u32x8 read_lanes(fragment from, uint32_t i, uint32_t quad) {
  const uint32_t *lanes = (const uint32_t *)register_at(from, i) + quad * 4;
  u32x4 low, high;
  memcpy(&low, lanes, sizeof low);
  memcpy(&high, lanes + PE_WARP_LANES / 2, sizeof high);
  return JOINED(low, high);
}

PE_INLINE void write_lanes(u32x8 x, fragment to, uint32_t i, uint32_t quad) {
  uint32_t *lanes = (uint32_t *)register_at(to, i) + quad * 4;
  u32x4 low = LOW(x), high = HIGH(x);
  memcpy(lanes, &low, sizeof low);
  memcpy(lanes + PE_WARP_LANES / 2, &high, sizeof high);
}

PE_INLINE void read_pairs(fragment from, uint32_t registers, uint32_t quad, f32x8 *to) {
  for (uint32_t i = 0; i < registers; i++) {
    u32x8 pairs = read_lanes(from, i, quad);
    to[2 * i] = from_f16(pairs << 16), to[2 * i + 1] = from_f16(pairs);
  }
}

/* Swap elements so that a bit of their rows' numbers becomes one of their columns', and the other way round. */
PE_INLINE void exchange(uint32_t bit, uint32_t count, f32x8 *rows) {
  for (uint32_t i = 0; i < count; i++) {
    if (i & bit) continue;
    f32x8 x = rows[i], y = rows[i | bit];
    if (bit == 1) {
      rows[i] = __builtin_shufflevector(x, y, 0, 8, 2, 10, 4, 12, 6, 14);
      rows[i | bit] = __builtin_shufflevector(x, y, 1, 9, 3, 11, 5, 13, 7, 15);
    } else if (bit == 2) {
      rows[i] = __builtin_shufflevector(x, y, 0, 1, 8, 9, 4, 5, 12, 13);
      rows[i | bit] = __builtin_shufflevector(x, y, 2, 3, 10, 11, 6, 7, 14, 15);
    } else {
      rows[i] = __builtin_shufflevector(x, y, 0, 1, 2, 3, 8, 9, 10, 11);
      rows[i | bit] = __builtin_shufflevector(x, y, 4, 5, 6, 7, 12, 13, 14, 15);
    }
  }
}

/* A row of elements for each k. `across`: lanes hold those of one k. */
PE_INLINE void read_lines(bool across, fragment from, uint32_t quad, float *to) {
  f32x8 rows[ALONG];
  read_pairs(from, 2, quad, rows);
  if (across) exchange(1, ALONG, rows), exchange(2, ALONG, rows);
  memcpy(to, rows, sizeof rows);
}

/* Between sums in the order of registers, with the lanes of a quad in each, and rows of sums. A lane holds a row of f16, or of f32
 * pairs of two rows. */
PE_INLINE void arrange(uint32_t type, f32x8 *sums) {
  exchange(1, TILE, sums);
  if (type == PE_TYPE_F16) exchange(2, TILE, sums);
  exchange(4, TILE, sums);
}

PE_INLINE void read_c(uint32_t type, fragment from, uint32_t quad, float *to) {
  f32x8 sums[TILE];
  if (type == PE_TYPE_F16)
    read_pairs(from, TILE / 2, quad, sums);
  else
    for (uint32_t i = 0; i < TILE; i++) sums[i] = (f32x8)read_lanes(from, i, quad);
  arrange(type, sums);
  memcpy(to, sums, sizeof sums);
}

/* Sums that have the type. */
PE_INLINE void write_d(uint32_t type, const float *from, fragment to, uint32_t quad) {
  f32x8 sums[TILE];
  memcpy(sums, from, sizeof sums);
  arrange(type, sums);
  if (type == PE_TYPE_F16)
    for (uint32_t i = 0; i < TILE; i += 2) write_lanes(half_bits(sums[i]) | half_bits(sums[i + 1]) << 16, to, i / 2, quad);
  else
    for (uint32_t i = 0; i < TILE; i++) write_lanes(canonical(sums[i]), to, i, quad);
}

PE_INLINE f32x8 rounded_doubles(uint32_t type, f64x4 low, f64x4 high) {
  if (type == PE_TYPE_F16) return halves(low, high);
  f32x4 first = __builtin_convertvector(low, f32x4), second = __builtin_convertvector(high, f32x4);
  return JOINED(first, second);
}

/* Add the products in the order of k, and round once. */
PE_INLINE void add_exactly(uint32_t type, quad *q) {
  f64x4 low[ALONG], high[ALONG];
  for (uint32_t x = 0; x < ALONG; x++) {
    f32x8 row = load_floats(q->b + x * TILE);
    low[x] = __builtin_convertvector(LOW(row), f64x4), high[x] = __builtin_convertvector(HIGH(row), f64x4);
  }
  for (uint32_t i = 0; i < TILE; i++) {
    f32x8 row = load_floats(q->sums + i * TILE);
    f64x4 left = __builtin_convertvector(LOW(row), f64x4), right = __builtin_convertvector(HIGH(row), f64x4);
    for (uint32_t x = 0; x < ALONG; x++) {
      double a = q->a[x * TILE + i];
      left += a * low[x], right += a * high[x];
    }
    store_floats(q->sums + i * TILE, rounded_doubles(type, left, right));
  }
}

/* Sums of f16 are rounded already, except without tensor cores. */
PE_INLINE void add_as_tensor_cores(const pe_mma_site *site, quad *q) {
  pe_add_aligned(site, 1, 1, q->a, NULL, q->b, q->sums);
  if (site->d != PE_TYPE_F16 || (is_half(site) && !(site->flags & PE_MMA_CHAIN))) return;
  for (uint32_t i = 0; i < TILE; i++) store_floats(q->sums + i * TILE, to_nearest_half(load_floats(q->sums + i * TILE)));
}

PE_FUSED void pe_multiply_quads(const pe_mma_site *site, const pe_operands *on) {
  for (uint32_t i = 0; i < QUADS; i++) {
    quad q;
    read_lines(site->flags & PE_MMA_A_COL, on->a, i, q.a);
    read_lines(site->flags & PE_MMA_B_ROW, on->b, i, q.b);
    read_c(site->c, on->c, i, q.sums);
    if (site->fraction)
      add_as_tensor_cores(site, &q);
    else
      add_exactly(site->d, &q);
    write_d(site->d, q.sums, on->d, i);
  }
}
