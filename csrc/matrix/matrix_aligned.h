/* matrix_aligned.h: sums of products as tensor cores make them. */
#ifndef PTXEMU_MATRIX_ALIGNED_H
#define PTXEMU_MATRIX_ALIGNED_H
#include "internal.h"

/* Add products to sums, 8 rows of 8 for each pair of a block of A and one of B: `down` blocks of A with k rows of 8, and
 * `across` such blocks of B, in the order in which they are added.  The sums of a block of B with all of A lie together.  `chosen`:
 * of a sparse A, whose blocks have k / 2 rows, the row of B that each element multiplies; else NULL. */
void pe_add_aligned(const pe_mma_site *site, uint32_t down, uint32_t across, const float *a, const uint8_t *chosen,
                    const float *b, float *sums);

#endif
