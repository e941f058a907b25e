/* matrix_tiles.h: the elements of multiplicands, from the registers that hold them.
 */
#ifndef PTXEMU_MATRIX_TILES_H
#define PTXEMU_MATRIX_TILES_H
#include "matrix.h"
#include "matrix_vector.h"

typedef struct columns {
  u32x8 word[TILE_WORDS];
} columns;

/* The words of the 8 rows of a tile, with `halves` in the order 0 2 4 6 1 3 5 7 of rows. */
PE_INLINE columns tile_columns_of(const uint32_t *tile, bool halves) {
  u32x4 row[TILE];
  u32x8 rows[TILE_WORDS];
  for (uint32_t i = 0; i < TILE; i++) memcpy(row + i, tile + i * TILE_WORDS, sizeof *row);
  for (uint32_t i = 0; i < 4; i++) rows[i] = halves ? JOINED(row[2 * i], row[2 * i + 1]) : JOINED(row[i], row[i + 4]);
#define UPPER(X, Y) __builtin_shufflevector(X, Y, 2, 10, 3, 11, 6, 14, 7, 15)
#define LOWER(X, Y) __builtin_shufflevector(X, Y, 0, 8, 1, 9, 4, 12, 5, 13)
  u32x8 even = LOWER(rows[0], rows[2]), odd = LOWER(rows[1], rows[3]);
  u32x8 upper_even = UPPER(rows[0], rows[2]), upper_odd = UPPER(rows[1], rows[3]);
  return (columns){{LOWER(even, odd), UPPER(even, odd), LOWER(upper_even, upper_odd), UPPER(upper_even, upper_odd)}};
#undef LOWER
#undef UPPER
}

PE_INLINE size_t size_of_row(bool floats) { return TILE * (floats ? sizeof(float) : sizeof(double)); }

PE_INLINE void store_row(void *to, uint32_t row, f32x8 x, bool floats) {
  uint8_t *at = (uint8_t *)to + row * size_of_row(floats);
  if (!floats)
    store_doubles((double *)at, x);
  else
    memcpy(at, &x, sizeof x);
}

/* Whether elements of a float type are infinite or NaN. */
PE_INLINE bool has_specials(uint32_t type, columns columns) {
  u8x32 bytes = {0};
  u16x16 halves = {0};
  for (uint32_t w = 0; w < TILE_WORDS; w++) {
    u32x8 word = columns.word[w];
    if (type == PE_TYPE_F16)
      halves |= (u16x16)(((u16x16)word & 0x7c00) == 0x7c00);
    else if (type == PE_TYPE_E4M3)
      bytes |= (u8x32)(((u8x32)word & 0x7f) == 0x7f);
    else
      bytes |= (u8x32)(((u8x32)word & 0x7c) == 0x7c);
  }
  return any((i32x8)bytes | (i32x8)halves);
}

/* Where the next elements of a tile's rows go: all of them to the first place, or with `pairs` the elements 2 and 3 of every four
 * to the second one. */
typedef struct places {
  void *first, *second;
} places;

#define WIDEN(NAME, BITS)                                                                       \
  do {                                                                                          \
    const uint32_t each = 32 / BITS, rows = TILE_WORDS * (pairs ? each / 2 : each);             \
    for (uint32_t w = 0; w < TILE_WORDS; w++)                                                   \
      for (uint32_t e = 0; e < each; e++) {                                                     \
        f32x8 row = from_##NAME(columns.word[w] << (32 - BITS * (e + 1)));                      \
        if (pairs)                                                                              \
          store_row(e < 2 ? places->first : places->second, w * each / 2 + e % 2, row, floats); \
        else                                                                                    \
          store_row(places->first, w * each + e, row, floats);                                  \
      }                                                                                         \
    places->first = (uint8_t *)places->first + rows * size_of_row(floats);                      \
    places->second = (uint8_t *)places->second + rows * size_of_row(floats);                    \
  } while (0)

#define WIDEN_FLOATS(TYPE, NAME, BITS) \
  if (has_specials(TYPE, columns))     \
    WIDEN(NAME, BITS);                 \
  else                                 \
    WIDEN(finite_##NAME, BITS)

/* A tile as rows of 8 floats or doubles, one for each k. */
PE_INLINE void widen(uint32_t type, columns columns, bool floats, bool pairs, places *places) {
  switch (type) {
    case PE_TYPE_F16: WIDEN_FLOATS(PE_TYPE_F16, f16, 16); break;
    case PE_TYPE_BF16: WIDEN(bf16, 16); break;
    case PE_TYPE_TF32: WIDEN(tf32, 32); break;
    case PE_TYPE_E4M3: WIDEN_FLOATS(PE_TYPE_E4M3, e4m3, 8); break;
    case PE_TYPE_E5M2: WIDEN_FLOATS(PE_TYPE_E5M2, e5m2, 8); break;
    case PE_TYPE_E3M2: WIDEN(e3m2, 8); break;
    case PE_TYPE_E2M3: WIDEN(e2m3, 8); break;
    case PE_TYPE_E2M1: WIDEN(e2m1, 8); break;
    case PE_TYPE_S8: WIDEN(s8, 8); break;
    case PE_TYPE_U8: WIDEN(u8, 8); break;
    case PE_TYPE_S4: WIDEN(s4, 4); break;
    default: WIDEN(u4, 4);
  }
}

PE_INLINE void widen_f64(const double *tile, bool halves, places *places) {
  double *to = places->first;
  for (uint32_t i = 0; i < TILE; i++)
    for (uint32_t w = 0; w < TILE_WORDS; w++) to[w * TILE + (halves ? i / 2 + i % 2 * 4 : i)] = tile[i * TILE_WORDS + w];
  places->first = to + TILE * TILE_WORDS;
}

/* Elements in a tile's row. */
static uint32_t tile_columns(uint32_t type) {
  switch (type) {
    case PE_TYPE_F16:
    case PE_TYPE_BF16: return 8;
    case PE_TYPE_TF32:
    case PE_TYPE_F64: return 4;
    case PE_TYPE_S4:
    case PE_TYPE_U4: return 32;
    default: return 16;
  }
}

/* A, or B with `halves`, as blocks of k rows, with `pairs` those of the elements 0 and 1 of every four before all others.  `rows`
 * counts tiles. */
PE_INLINE void read_tiles(uint32_t type, uint32_t rows, uint32_t k, bool halves, bool floats, bool pairs, fragment from,
                          void *to) {
  uint32_t along = k / tile_columns(type);
  size_t size = k * TILE * (floats ? sizeof(float) : sizeof(double));
  for (uint32_t i = 0; i < rows; i++, to = (uint8_t *)to + size) {
    places places = {to, (uint8_t *)to + size / 2};
    for (uint32_t j = 0; j < along; j++) {
      const void *tile = register_at(from, halves ? pe_tile_b(i, j, along) : pe_tile_a(i, j, rows));
      if (!floats && type == PE_TYPE_F64)
        widen_f64(tile, halves, &places);
      else
        widen(type, tile_columns_of(tile, halves), floats, pairs, &places);
    }
  }
}

PE_FUSED static void read_doubles(uint32_t type, uint32_t rows, uint32_t k, bool halves, fragment from, double *to) {
  read_tiles(type, rows, k, halves, false, false, from, to);
}

PE_FUSED static void read_floats(uint32_t type, uint32_t rows, uint32_t k, bool halves, fragment from, float *to) {
  read_tiles(type, rows, k, halves, true, false, from, to);
}

/* For PE_MMA_PAIRS, which those have that are multiplied as f16. */
PE_FUSED static void read_pairs(uint32_t type, uint32_t rows, uint32_t k, bool halves, fragment from, float *to) {
  read_tiles(type == PE_TYPE_E5M2 ? PE_TYPE_E5M2 : PE_TYPE_E4M3, rows, k, halves, true, true, from, to);
}

#endif
