/* matrix_zeros.c: columns of B that are taken for zero, as convolutions need them (PTX ISA, "Zero-Column Mask Descriptor").
 *
 * Spans of columns that are used and of columns that are zero take turns in each panel, one of them from somewhere within. That
 * `use` and `skip` name what they say is what the manual's examples show, against its table, and CUTLASS's mma_sm100_desc.hpp.
 */
#include "matrix_product.h"

enum { SPAN_BITS = 8, FIRST_AT = 32, ON_AT = 39, SKIP_AT = 40, USE_AT = 48, AHEAD_AT = 56, MOST_AHEAD = 63 };
enum { FEW_ROWS = 32, FEW_ROWS_AHEAD = 16 };

static uint32_t byte_at(const pe_tensor_product *p, uint32_t at) { return p->zeros >> at & UINT8_MAX; }

uint32_t pe_tensor_product_ahead(const pe_tensor_product *p) { return p->zeros >> AHEAD_AT & MOST_AHEAD; }

void pe_tensor_product_decode_zeros(pe_tensor_product *p, uint64_t zeros) {
  const uint64_t unused = 7ull << 36 | 3ull << 62;
  uint32_t most = p->rows == FEW_ROWS && p->most_ahead > FEW_ROWS_AHEAD ? FEW_ROWS_AHEAD : p->most_ahead;
  p->zeros = zeros;
  if (zeros & unused) pe_tensor_product_misuse(p, "a descriptor of zero columns has bits without a meaning");
  if (pe_tensor_product_ahead(p) > most)
    pe_tensor_product_misuse(p, "columns are shifted further than the instruction descriptor says, or 16 with 32 rows");
}

/* A first span that is to begin behind its end has its last column. */
static bool is_zero(const pe_tensor_product *p, uint32_t column) {
  uint32_t use = byte_at(p, USE_AT) + 1, skip = byte_at(p, SKIP_AT) + 1, start = byte_at(p, p->panel * SPAN_BITS);
  bool zero_first = p->zeros >> (FIRST_AT + p->panel) & 1;
  uint32_t first = zero_first ? skip : use;
  uint32_t at = (column + (start < first ? start : first - 1)) % (use + skip);
  return at < first ? zero_first : !zero_first;
}

uint32_t pe_tensor_product_zeros(const pe_tensor_product *p, uint32_t first) {
  uint32_t found = 0;
  for (uint32_t i = 0; p->zeros >> ON_AT & 1 && i < TILE; i++) found |= (uint32_t)is_zero(p, first + i) << i;
  return found;
}
