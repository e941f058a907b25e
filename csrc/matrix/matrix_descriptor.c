/* matrix_descriptor.c: instruction descriptors of tcgen05.mma (PTX ISA, "Instruction descriptor"). */
#include "matrix_product.h"

enum { NIBBLES = 64, MOST_NIBBLES = 96 /* elements of four bits along k */ };
enum { F16_SUMS, F32_SUMS, S32_SUMS };

noreturn void pe_tensor_product_misuse(const pe_tensor_product *p, const char *what) {
  pe_tmem_misuse(p->w, p->site->pos, p->lane, p->at, what);
}

/* The type of multiplicands of a kind with this number. */
static uint32_t type_of(const pe_tensor_product *p, uint32_t number) {
  enum { NO_TYPE = UINT8_MAX, NUMBERS = 6 };
  static const uint8_t types[][NUMBERS] = {
    [PE_KIND_F16] = {PE_TYPE_F16, PE_TYPE_BF16, NO_TYPE, NO_TYPE, NO_TYPE, NO_TYPE},
    [PE_KIND_TF32] = {NO_TYPE, NO_TYPE, PE_TYPE_TF32, NO_TYPE, NO_TYPE, NO_TYPE},
    [PE_KIND_F8F6F4] = {PE_TYPE_E4M3, PE_TYPE_E5M2, NO_TYPE, PE_TYPE_E2M3, PE_TYPE_E3M2, PE_TYPE_E2M1},
    [PE_KIND_I8] = {PE_TYPE_U8, PE_TYPE_S8, NO_TYPE, NO_TYPE, NO_TYPE, NO_TYPE},
    [PE_KIND_MXF8F6F4] = {PE_TYPE_E4M3, PE_TYPE_E5M2, NO_TYPE, PE_TYPE_E2M3, PE_TYPE_E3M2, PE_TYPE_E2M1},
    [PE_KIND_MXF4] = {NO_TYPE, PE_TYPE_E2M1, NO_TYPE, NO_TYPE, NO_TYPE, NO_TYPE},
    [PE_KIND_MXF4NVF4] = {NO_TYPE, PE_TYPE_E2M1, NO_TYPE, NO_TYPE, NO_TYPE, NO_TYPE},
  };
  uint32_t type = number < NUMBERS ? types[p->site->kind][number] : NO_TYPE;
  if (type == NO_TYPE) pe_tensor_product_misuse(p, "its kind has no such elements");
  return type;
}

uint32_t pe_tensor_product_bits(const pe_tensor_product *p, uint32_t type) {
  if (p->site->kind != PE_KIND_F8F6F4 && p->site->kind != PE_KIND_MXF8F6F4) return 8;
  return type == PE_TYPE_E2M1 ? 4 : type == PE_TYPE_E2M3 || type == PE_TYPE_E3M2 ? 6 : 8;
}

static void decode_sides(pe_tensor_product *p, uint32_t descriptor) {
  p->mma.a = (uint16_t)type_of(p, descriptor >> 7 & 7);
  p->mma.b = (uint16_t)type_of(p, descriptor >> 10 & 7);
  p->a_across = descriptor >> 15 & 1 ? p->size : 0;
  p->b_across = descriptor >> 16 & 1 ? p->size : 0;
  bool narrow = p->scaled.k >= NIBBLES;
  if ((p->a_across && (narrow || pe_tensor_product_bits(p, p->mma.a) < 8)) ||
      (p->b_across && (narrow || pe_tensor_product_bits(p, p->mma.b) < 8)))
    pe_tensor_product_misuse(p, "matrices of elements of 6 and 4 bits are not transposed");
}

/* How rows and columns lie in the lanes of tensor memory (PTX ISA, "Data Path Layout Organization"), of which `rows` are a CTA's. */
static void decode_shape(pe_tensor_product *p, uint32_t descriptor) {
  const pe_tmem_mma_site *site = p->site;
  uint32_t rows = (descriptor >> 24 & 31) * PE_TENSOR_BLOCK;
  p->rows = rows / site->ctas;
  p->columns = (descriptor >> 17 & 63) * TILE;
  p->panels = site->stationary && rows ? PE_TENSOR_ROWS / rows : site->ctas;
  p->spread = p->panels > 1 && p->rows < PE_TENSOR_ROWS && (site->stationary || !p->sparse);
  p->gaps = !p->spread && p->rows < PE_TENSOR_ROWS;
}

/* Columns from 16 or 32 on are so many at a time; `least` are allowed, too. */
static void check_columns(const pe_tensor_product *p, uint32_t least, uint32_t each) {
  bool fits = p->columns && (p->columns == least || p->columns % each == 0);
  if (!fits || p->columns > PE_TENSOR_COLUMNS) pe_tensor_product_misuse(p, "its columns are not 8 to 256");
}

/* The shape of a multiplication without factors. */
static void check_shape(const pe_tensor_product *p) {
  const pe_tmem_mma_site *site = p->site;
  bool halves = p->rows == PE_TENSOR_ROWS / 2, whole = p->rows == PE_TENSOR_ROWS;
  if (site->stationary) {
    if (!whole && !halves && p->rows != PE_TENSOR_ROWS / 4) pe_tensor_product_misuse(p, "it has not 32, 64 or 128 rows");
    if (p->columns != 64 && p->columns != 128 && p->columns != PE_TENSOR_COLUMNS)
      pe_tensor_product_misuse(p, "its columns are not 64, 128 or 256");
    return;
  }
  if (site->ctas > 1) {
    if (!whole && !halves) pe_tensor_product_misuse(p, "it has not 128 or 256 rows");
    check_columns(p, 0, site->kind == PE_KIND_I8 ? 32 : 16);
    return;
  }
  if (!whole && !halves) pe_tensor_product_misuse(p, "it has not 64 or 128 rows");
  check_columns(p, halves ? TILE : 0, halves ? TILE : 16);
}

/* What a descriptor says of a sparse A. */
static void decode_sparse(pe_tensor_product *p, uint32_t descriptor) {
  bool given = descriptor >> 2 & 1;
  p->selector = descriptor & 3;
  if (given && !p->sparse) pe_tensor_product_misuse(p, "a sparse matrix needs .sp");
  if (!p->sparse) return;
  if (!given) pe_tensor_product_misuse(p, ".sp needs a descriptor of a sparse matrix");
  if (p->selector > (p->size > 1)) pe_tensor_product_misuse(p, "there are no metadata of that number");
}

uint32_t pe_tensor_product_metadata_columns(const pe_tensor_product *p) { return p->size > 1 ? 1 : 2; }

static bool is_negated(uint32_t descriptor) { return (descriptor >> 13 & 1) != (descriptor >> 14 & 1); }

/* The descriptor of a kind with factors. */
static void decode_scaled(pe_tensor_product *p, uint32_t descriptor) {
  const pe_tmem_mma_site *site = p->site;
  bool powers = descriptor >> 23 & 1;
  p->size = 1;
  p->a_byte = descriptor >> 29 & 3;
  p->b_byte = descriptor >> 4 & 3;
  if (site->ctas > 1)
    check_shape(p);
  else if (p->rows != PE_TENSOR_ROWS)
    pe_tensor_product_misuse(p, "it has not 128 rows");
  check_columns(p, 0, TILE * site->ctas);
  decode_sparse(p, descriptor);
  if (p->gaps) pe_tensor_product_misuse(p, "a sparse matrix with factors of a pair has 256 rows");
  if (!powers && (site->kind != PE_KIND_MXF4NVF4 || site->each != 16))
    pe_tensor_product_misuse(p, "its kind has no such factors");
  bool bytes = site->kind == PE_KIND_MXF8F6F4, longest = descriptor >> 31;
  if (longest && (bytes || p->sparse || p->spread))
    pe_tensor_product_misuse(p, "there is none of k 96 of its kind and shape");
  uint16_t k = bytes ? PE_TENSOR_WIDTH : longest ? MOST_NIBBLES : NIBBLES;
  if (longest) p->along = PE_TENSOR_MOST_ALONG;
  p->scaled = (pe_scaled_site){.k = k, .each = site->each, .e4m3 = !powers};
  p->mma = (pe_mma_site){.k = PE_TENSOR_WIDTH, .d = PE_TYPE_F32, .flags = is_negated(descriptor) ? PE_MMA_NEGATE : 0};
  decode_sides(p, descriptor);
  p->scaled.a = p->mma.a, p->scaled.b = p->mma.b;
}

static void decode_plain(pe_tensor_product *p, uint32_t descriptor) {
  static const uint8_t sizes[] = {[PE_KIND_F16] = 2, [PE_KIND_TF32] = 4, [PE_KIND_F8F6F4] = 1, [PE_KIND_I8] = 1};
  static const uint8_t results[] = {PE_TYPE_F16, PE_TYPE_F32, PE_TYPE_S32}, ahead[] = {0, 8, 16, 32};
  const pe_tmem_mma_site *site = p->site;
  uint32_t sums = descriptor >> 4 & 3;
  bool floats = site->kind != PE_KIND_I8;
  p->size = sizes[site->kind];
  check_shape(p);
  if (site->moves_a && p->gaps) pe_tensor_product_misuse(p, "rows of A move in matrices that have all lanes");
  decode_sparse(p, descriptor);
  if (site->stationary) p->most_ahead = ahead[descriptor >> 30];
  if (floats ? sums > F32_SUMS || (site->kind == PE_KIND_TF32 && sums != F32_SUMS) : sums != S32_SUMS)
    pe_tensor_product_misuse(p, "its kind has no such sums");
  bool negated = is_negated(descriptor);
  uint32_t flags = (negated ? PE_MMA_NEGATE : 0) | (!floats && descriptor & 8 ? PE_MMA_SATURATE : 0),
           held = p->sparse ? 2 : 1;
  if (negated && !floats) pe_tensor_product_misuse(p, "integers are not negated");
  p->mma = (pe_mma_site){.pos = site->pos,
                         .m = PE_TENSOR_BLOCK,
                         .k = (uint16_t)(held * PE_TENSOR_WIDTH / p->size),
                         .c = results[sums],
                         .d = results[sums],
                         .flags = (uint16_t)(flags | (p->sparse ? PE_MMA_SPARSE : 0)),
                         .fraction = site->fraction,
                         .block = (uint16_t)(held * site->block), /* zeros that A does not hold count */
                         .result = site->result,
                         .least = sums == F16_SUMS ? site->least_half : site->least};
  decode_sides(p, descriptor);
}

void pe_tensor_product_decode(pe_tensor_product *p, uint32_t descriptor) {
  p->along = PE_TENSOR_MOST_ALONG - 1;
  decode_shape(p, descriptor);
  if (pe_tensor_product_is_scaled(p->site))
    decode_scaled(p, descriptor);
  else
    decode_plain(p, descriptor);
}
