/* matrix_warpgroup.c: wgmma.mma_async, of which each warp calculates its own 16 rows when it comes to it (docs/semantics.md). */
#include "matrix.h"
#include "matrix_shared.h"

#define WARPS 4 /* of a warpgroup */
#define A_TILES 4
#define MOST_TILES 32   /* of B that are multiplied at once */
#define MOST_COLUMNS 64 /* and columns */

/* A's four tiles, those of a column one after the other. */
static void read_rows(pe_warp *w, const pe_wgmma_site *site, uint64_t bits, pe_halves *to) {
  pe_shared_matrix m = pe_wgmma_matrix(bits);
  uint32_t first = w->warpid % WARPS * 2;
  for (uint32_t i = 0; i < A_TILES; i++)
    pe_read_tile(w, site->pos, &m, site->a_across ? 2 : 0, first + i % 2, i / 2, to + i);
}

/* Tiles of B, those of eight columns one after the other. */
static void read_columns(pe_warp *w, const pe_wgmma_site *site, const pe_shared_matrix *m, uint32_t first, uint32_t columns,
                         uint32_t along, pe_halves *to) {
  for (uint32_t i = first / TILE; i < (first + columns) / TILE; i++)
    for (uint32_t j = 0; j < along; j++) pe_read_tile(w, site->pos, m, site->b_across ? 2 : 0, i, j, to++);
}

static uint32_t columns_at_once(const pe_mma_site *mma) {
  uint32_t columns = MAX_B / mma->k;
  if (mma->a == PE_TYPE_B1) return TILE;
  return columns < MOST_COLUMNS ? columns : MOST_COLUMNS;
}

void pe_wgmma(pe_warp *w, const pe_wgmma_site *site, uint32_t mask, uint32_t scale, uint64_t a, uint64_t b, void *slots) {
  static const uint16_t IN_ORDER[MOST_TILES] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                                16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
  static const uint16_t SAME[PE_WGMMA_REGISTERS] = {0};
  uint32_t nothing[PE_WARP_LANES] = {0};
  if (!pe_whole_warp(w, site->pos, mask)) return;
  _Alignas(64) pe_halves left[A_TILES], right[MOST_TILES];
  pe_mma_site part = site->mma;
  pe_operands on = {.a = {slots, site->a}, .b = {(uint8_t *)right, IN_ORDER}};
  on.metadata = register_at((fragment){slots, &part.metadata}, 0);
  if (site->in_memory) {
    read_rows(w, site, a, left);
    on.a = (fragment){(uint8_t *)left, IN_ORDER};
  }
  pe_shared_matrix m = pe_wgmma_matrix(b);
  uint32_t registers = part.d == PE_TYPE_F16 ? 2 : 4; /* of eight columns */
  uint32_t along = part.flags & PE_MMA_SPARSE ? 4 : 2, columns = columns_at_once(&part);
  for (uint32_t x = 0; x < site->mma.n; x += columns) {
    uint32_t at = x / TILE * registers;
    part.n = (uint16_t)(site->mma.n - x < columns ? site->mma.n - x : columns);
    read_columns(w, site, &m, x, part.n, along, right);
    on.d = (fragment){slots, site->d + at};
    on.c = scale ? (fragment){slots, site->c + at} : (fragment){(uint8_t *)nothing, SAME};
    pe_multiply(&part, &on);
  }
}
