/* matrix.h: how the fragments of a matrix lie in the registers of a warp (PTX ISA, "Matrix Fragments for mma").
 *
 * All fragments of multiplicands are made of tiles of 8 rows by 4 words: word w of row g is in lane 4 * g + w, so a register
 * of the warp, 32 consecutive words, is a tile in row-major order.  The rows of A are those of the matrix, the rows of B its
 * columns, and k goes along the words.  A word has 4 bytes, or is one f64.  Accumulators have tiles of 8 by 8 elements: two
 * registers of 32-bit elements or f64, for even and odd columns, or one register of f16 pairs.
 *
 * PTX fixes the order of the tiles for mma; the fragments of wmma are opaque and follow the same order.
 */
#ifndef PTXEMU_MATRIX_H
#define PTXEMU_MATRIX_H
#include <string.h>
#include "format.h"
#include "internal.h"

#define TILE 8       /* rows of a tile; columns of an accumulator's */
#define TILE_WORDS 4 /* words of a tile's row */

/* Vectors and fused multiply-adds where this CPU has them.  Not every compiler can dispatch on a level, and a resolver runs
 * too early for the sanitizers. */
#if defined(__x86_64__) && defined(__GLIBC__) && __GNUC__ >= 12 && !defined(__clang__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__SANITIZE_ADDRESS__)
#define PE_FUSED __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#define PE_LEVELS /* the same by hand, where their code differs */
#else
#define PE_FUSED
#endif

/* The register of a tile: A's tiles go down first, B's along k. `row` and `column` count tiles. */
PE_INLINE uint32_t pe_tile_a(uint32_t row, uint32_t column, uint32_t rows) { return row + rows * column; }
PE_INLINE uint32_t pe_tile_b(uint32_t row, uint32_t column, uint32_t columns) { return row * columns + column; }
/* The accumulator tile, `rows` of them in a column. */
PE_INLINE uint32_t pe_tile_c(uint32_t row, uint32_t column, uint32_t rows) { return row + rows * column; }

/* The registers of an operand. */
typedef struct fragment {
  uint8_t *slots;
  const uint16_t *places;
} fragment;

PE_INLINE void *register_at(fragment f, uint32_t i) { return f.slots + f.places[i] * PE_WARP_LANES * 4; }

/* A tile of 16-bit elements. */
typedef struct pe_halves {
  uint16_t at[TILE][TILE];
} pe_halves;

PE_INLINE pe_halves pe_transposed(const pe_halves *from) {
  pe_halves to;
  for (int i = 0; i < TILE; i++)
    for (int j = 0; j < TILE; j++) to.at[j][i] = from->at[i][j];
  return to;
}

/* Those of a multiplication; `metadata` of a sparse A. */
typedef struct pe_operands {
  fragment d, a, b, c;
  const uint32_t *metadata;
} pe_operands;

/* The elements that a row of A holds. */
PE_INLINE uint32_t pe_held_along(const pe_mma_site *site) { return site->flags & PE_MMA_SPARSE ? site->k / 2 : site->k; }

#define MAX_A 2048 /* elements: m16n8k128 */
#define MAX_B 1024
#define MAX_C 1024

/* d = a * b + c, of at most so many elements. */
void pe_multiply(const pe_mma_site *site, const pe_operands *on);

/* The same of m8n8k4 of f16 (matrix_quads.c). */
void pe_multiply_quads(const pe_mma_site *site, const pe_operands *on);

/* Fault unless the whole warp executes the instruction; false if none of it does. */
bool pe_whole_warp(pe_warp *w, uint32_t pos, uint32_t mask);

#endif
