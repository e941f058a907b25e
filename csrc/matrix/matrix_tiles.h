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
  u32x8 rows[4];
  for (uint32_t i = 0; i < 4; i++) memcpy(rows + i, tile + i * TILE, sizeof *rows); /* all at once would go through memory */
#define PAIR(X, Y, W) __builtin_shufflevector(X, Y, W, 8 + W, 4 + W, 12 + W, W, 8 + W, 4 + W, 12 + W)
#define COLUMN(W)                                                                                                  \
  halves ? __builtin_shufflevector(PAIR(rows[0], rows[1], W), PAIR(rows[2], rows[3], W), 0, 1, 8, 9, 2, 3, 10, 11) \
         : __builtin_shufflevector(PAIR(rows[0], rows[1], W), PAIR(rows[2], rows[3], W), 0, 2, 1, 3, 8, 10, 9, 11)
  return (columns){{COLUMN(0), COLUMN(1), COLUMN(2), COLUMN(3)}};
#undef COLUMN
#undef PAIR
}

PE_INLINE void *store_row(void *to, f32x8 x, bool floats) {
  if (!floats)
    store_doubles(to, x);
  else
    memcpy(to, &x, sizeof x);
  return (uint8_t *)to + TILE * (floats ? sizeof(float) : sizeof(double));
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

#define WIDEN(NAME, BITS)                                                                                                  \
  do                                                                                                                       \
    for (uint32_t w = 0; w < TILE_WORDS; w++)                                                                              \
      for (uint32_t e = 0; e < 32; e += BITS) to = store_row(to, from_##NAME(columns.word[w] << (32 - BITS - e)), floats); \
  while (0)

#define WIDEN_FLOATS(TYPE, NAME, BITS) \
  if (has_specials(TYPE, columns))     \
    WIDEN(NAME, BITS);                 \
  else                                 \
    WIDEN(finite_##NAME, BITS)

/* A tile as rows of 8 floats or doubles, one for each k. */
PE_INLINE void widen(uint32_t type, columns columns, bool floats, void *to) {
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

PE_INLINE void widen_f64(const double *tile, bool halves, double *to) {
  for (uint32_t i = 0; i < TILE; i++)
    for (uint32_t w = 0; w < TILE_WORDS; w++) to[w * TILE + (halves ? i / 2 + i % 2 * 4 : i)] = tile[i * TILE_WORDS + w];
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

/* A, or B with `halves`, as blocks of k rows.  `rows` counts tiles. */
PE_INLINE void read_tiles(uint32_t type, uint32_t rows, uint32_t k, bool halves, bool floats, fragment from, void *to) {
  uint32_t columns = tile_columns(type), along = k / columns;
  size_t size = columns * TILE * (floats ? sizeof(float) : sizeof(double));
  for (uint32_t i = 0; i < rows; i++)
    for (uint32_t j = 0; j < along; j++, to = (uint8_t *)to + size) {
      const void *tile = register_at(from, halves ? pe_tile_b(i, j, along) : pe_tile_a(i, j, rows));
      if (type == PE_TYPE_F64)
        widen_f64(tile, halves, to);
      else
        widen(type, tile_columns_of(tile, halves), floats, to);
    }
}

PE_FUSED static void read_doubles(uint32_t type, uint32_t rows, uint32_t k, bool halves, fragment from, double *to) {
  read_tiles(type, rows, k, halves, false, from, to);
}

PE_FUSED static void read_floats(uint32_t type, uint32_t rows, uint32_t k, bool halves, fragment from, float *to) {
  read_tiles(type, rows, k, halves, true, from, to);
}

#endif
