/* matrix_shared.h: matrices in shared memory that descriptors describe, of wgmma and tcgen05.mma. */
#ifndef PTXEMU_MATRIX_SHARED_H
#define PTXEMU_MATRIX_SHARED_H
#include "matrix.h"

/* What a descriptor says. */
typedef struct pe_shared_matrix {
  uint32_t start, leading, stride; /* bytes */
  uint32_t phase;                  /* of the pattern of swizzled lines */
  uint32_t wide, deep;             /* the lines of a row of the pattern, and its rows; no lines: it is not supported */
  uint32_t unit;                   /* lines that stay together */
  bool absolute;                   /* what is left of rows at the end of the pattern is at `leading`, an address */
  uint64_t away;                   /* bytes from the window of the CTA that runs to that of the one whose memory it is in */
} pe_shared_matrix;

/* PTX ISA, "Matrix Descriptor Format" of wgmma, and "Shared memory descriptor" of tcgen05. `across`: consecutive elements do not go
 * along k; `longest`: rows have 48 bytes. */
pe_shared_matrix pe_wgmma_matrix(uint64_t bits);
pe_shared_matrix pe_tcgen05_matrix(uint64_t bits, bool across, bool longest);

/* A tile of 8 rows of 16 bytes of k. `across`: the bytes of an element if those that follow each other do not go along k, else 0. */
void pe_read_tile(pe_warp *w, uint32_t pos, const pe_shared_matrix *m, uint32_t across, uint32_t row, uint32_t column,
                  pe_halves *to);

/* The first rows of such a tile whose lines go along k. */
void pe_read_rows(pe_warp *w, uint32_t pos, const pe_shared_matrix *m, uint32_t row, uint32_t column, uint32_t count,
                  pe_halves *to);

/* Lines of 16 elements of so many bits, one after another, become bytes as `mma` takes them. */
void pe_spread_tile(pe_halves *tile, uint32_t bits);

#endif
