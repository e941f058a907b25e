/* matrix_scaled.h: multiplications with scale factors, of tiles (matrix.h). */
#ifndef PTXEMU_MATRIX_SCALED_H
#define PTXEMU_MATRIX_SCALED_H
#include "matrix.h"

/* A side of a multiplication: its tiles, of which two are along k, or three of k 96, and a word for each line, or two, whose
 * bytes are factors from one on. */
typedef struct pe_scaled_side {
  const pe_halves *tiles;
  const uint64_t *factors;
  uint32_t byte;
} pe_scaled_side;

/* 16 rows of A, whose tiles go down first, and columns of B, whose tiles go along k first, are added to sums: a register has every second
 * column of eight rows. Of `site` registers do not count. `metadata` of a sparse A as mma.sp has them, or NULL; then B has twice as many
 * tiles along k, and factors are those of the elements that A holds. */
void pe_scaled_tiles(const pe_scaled_site *site, const pe_scaled_side *a, const pe_scaled_side *b, const uint32_t *metadata,
                     uint32_t columns, bool negated, uint32_t (*sums)[PE_WARP_LANES]);

#endif
