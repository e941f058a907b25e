/* matrix_product.h: what a thread multiplies with tcgen05.mma. */
#ifndef PTXEMU_MATRIX_PRODUCT_H
#define PTXEMU_MATRIX_PRODUCT_H
#include "matrix_shared.h"
#include "tmem.h"

/* Rows at a time, the most rows of a CTA and columns, and bytes along k. */
enum { PE_TENSOR_BLOCK = 16, PE_TENSOR_ROWS = 128, PE_TENSOR_COLUMNS = 256, PE_TENSOR_WIDTH = 32, PE_TENSOR_MOST_ALONG = 3 };

/* A CTA that takes part: its tensor memory, and how far the window of its shared memory is from that of the CTA that runs. */
typedef struct pe_tensor_cta {
  pe_tmem *memory;
  uint64_t away;
} pe_tensor_cta;

/* What a thread multiplies, as its operands and an instruction descriptor say. Each CTA has rows of A and their sums. The columns are in
 * panels: of a pair each CTA has one in shared memory. The sums of a panel are in columns behind those of the one before, or `spread`
 * over other lanes. */
typedef struct pe_tensor_product {
  const pe_tmem_mma_site *site;
  pe_warp *w;
  int32_t lane;
  uint32_t rows, columns, size; /* of a CTA; of all panels; bytes of an element */
  uint32_t along;               /* lines of 16 bytes that rows of A have: two, or three of k 96 */
  uint32_t panels, selector;    /* of metadata */
  bool spread, gaps;            /* 16 rows are in every other half of a warp's lanes */
  bool sparse;                  /* A holds half of its elements; metadata tell which */
  pe_mma_site mma;
  pe_shared_matrix a, b;
  uint32_t a_across, b_across, a_at, at, metadata;
  const uint32_t *disabled;
  uint64_t zeros;        /* a descriptor of columns of B that are taken for zero; or 0: there are none */
  uint32_t most_ahead;   /* columns of B that may be left out before the first */
  pe_scaled_site scaled; /* of a kind with factors, which are at these addresses */
  uint32_t a_factors, b_factors, a_byte, b_byte;
  pe_tensor_cta cta[PE_TMEM_PAIR];
  uint32_t side, panel; /* the CTA and the panel that are multiplied now */
} pe_tensor_product;

/* The columns of a panel. */
PE_INLINE uint32_t pe_tensor_product_width(const pe_tensor_product *p) { return p->columns / p->panels; }

noreturn void pe_tensor_product_misuse(const pe_tensor_product *p, const char *what);

/* Whether its kind has scale factors. */
PE_INLINE bool pe_tensor_product_is_scaled(const pe_tmem_mma_site *site) { return site->kind >= PE_KIND_MXF8F6F4; }

/* Fill in what the descriptor says; a fault if that is nothing. */
void pe_tensor_product_decode(pe_tensor_product *p, uint32_t descriptor);

/* Check a descriptor of columns that are taken for zero, after the other one (matrix_zeros.c). */
void pe_tensor_product_decode_zeros(pe_tensor_product *p, uint64_t zeros);

/* The columns of B before the first. */
uint32_t pe_tensor_product_ahead(const pe_tensor_product *p);

/* Which of eight columns of the panel, from one on, are zero: a bit for each. */
uint32_t pe_tensor_product_zeros(const pe_tensor_product *p, uint32_t first);

/* Bits of an element in shared memory that a byte is made of; 8 if elements stay as they are. */
uint32_t pe_tensor_product_bits(const pe_tensor_product *p, uint32_t type);

/* Columns that the metadata of a row, or of two, take. */
uint32_t pe_tensor_product_metadata_columns(const pe_tensor_product *p);

#endif
