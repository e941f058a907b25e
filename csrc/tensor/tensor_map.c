/* tensor_map.c: what is wrong with a tensor, if anything is. */
#include <limits.h>
#include "checked.h"
#include "tensor_types.h"

enum { MOST_BOX = 256, MOST_STEP = 8, MOST_PIXELS = 1024, LEAST_RANK = 3, ROW_UNIT = 16 };
#define MOST_DIM (1ull << 32)
#define MOST_STRIDE (1ull << 40)
#define MOST_ADDRESS (1ull << 57) /* addresses have fewer bits */

/* ---- element types ---- */

static const pe_tensor_type TYPES[PE_TENSOR_TYPES] = {
  [PE_TENSOR_U8] = {1, 1, 1},
  [PE_TENSOR_U16] = {1, 2, 2},
  [PE_TENSOR_U32] = {1, 4, 4},
  [PE_TENSOR_S32] = {1, 4, 4},
  [PE_TENSOR_U64] = {1, 8, 8},
  [PE_TENSOR_S64] = {1, 8, 8},
  [PE_TENSOR_F16] = {1, 2, 2},
  [PE_TENSOR_F32] = {1, 4, 4},
  [PE_TENSOR_F32_FTZ] = {1, 4, 4},
  [PE_TENSOR_F64] = {1, 8, 8},
  [PE_TENSOR_BF16] = {1, 2, 2},
  [PE_TENSOR_TF32] = {1, 4, 4},
  [PE_TENSOR_TF32_FTZ] = {1, 4, 4},
  [PE_TENSOR_B4X16] = {2, 1, 1},
  [PE_TENSOR_B4X16_P64] = {128, 64, 128},
  [PE_TENSOR_B6X16_P32] = {128, 96, 128},
};

pe_tensor_type pe_tensor_type_of(const pe_tensor *tensor) { return TYPES[tensor->type]; }

static bool is_padded(const pe_tensor *tensor) {
  return tensor->type == PE_TENSOR_B4X16_P64 || tensor->type == PE_TENSOR_B6X16_P32;
}

static bool is_float(const pe_tensor *tensor) { return tensor->type >= PE_TENSOR_F16 && tensor->type <= PE_TENSOR_TF32_FTZ; }

uint32_t pe_tensor_slice(const pe_tensor *tensor) { return tensor->interleave * 16; }

uint32_t pe_tensor_side(const pe_tensor *tensor) { return tensor->interleave ? 0 : 1; }

/* ---- what is wrong with one ---- */

/* Fields that stand alone. */
static const char *flaw_of_fields(const pe_tensor *tensor) {
  if (tensor->type >= PE_TENSOR_TYPES) return "its element type does not exist";
  if (!tensor->rank || tensor->rank > PE_TENSOR_RANK) return "it has no dimensions, or more than 5";
  if (tensor->interleave > 2) return "its interleave layout does not exist";
  if (tensor->interleave && tensor->rank < LEAST_RANK) return "an interleaved tensor has at least 3 dimensions";
  if (tensor->im2col && tensor->rank < LEAST_RANK) return "a tensor of im2col copies has at least 3 dimensions";
  if (tensor->swizzle > PE_SWIZZLE_96B || tensor->atomicity > PE_ATOM_OF_64B) return "its swizzle mode does not exist";
  if (tensor->atomicity && tensor->swizzle != PE_SWIZZLE_128B) return "its swizzle mode has no such atomicity";
  if (tensor->promotion > 3) return "its L2 promotion does not exist";
  if (tensor->fill > 1) return "its fill mode does not exist";
  if (tensor->fill && !is_float(tensor)) return "elements that are no floats cannot be filled with NaN";
  return NULL;
}

/* Where its elements are. */
static const char *flaw_of_place(const pe_tensor *tensor) {
  uint64_t unit = tensor->interleave == 2 || is_padded(tensor) ? 32 : 16;
  if (tensor->address % unit || tensor->address >= MOST_ADDRESS) return "its address is not aligned";
  for (uint32_t d = 0; d < tensor->rank; d++) {
    if (!tensor->dim[d] || tensor->dim[d] > MOST_DIM) return "a dimension of it is 0 or more than 2^32";
    if (!tensor->step[d] || tensor->step[d] > MOST_STEP) return "an element stride of it is not 1 to 8";
  }
  for (uint32_t d = 0; d + 1 < tensor->rank; d++) {
    if (tensor->stride[d] % unit) return "its strides are not multiples of 16, or of 32";
    if (tensor->stride[d] >= MOST_STRIDE) return "a stride of it is 2^40 or more";
  }
  if (tensor->dim[0] % pe_tensor_type_of(tensor).elements)
    return "its innermost dimension is not a multiple of what its packed elements need";
  return NULL;
}

uint32_t pe_tensor_span(const pe_tensor *tensor) {
  static const uint8_t bytes[] = {0, 32, 64, 128, 96};
  return tensor->interleave ? 0 : bytes[tensor->swizzle];
}

/* How wide a copy is. */
static const char *flaw_of_row(const pe_tensor *tensor) {
  pe_tensor_type type = pe_tensor_type_of(tensor);
  if (!tensor->box[0] || tensor->box[0] > MOST_BOX) return "its box is empty, or longer than 256 elements";
  if (is_padded(tensor) && tensor->box[0] != type.elements) return "the rows of its box do not have 128 packed elements";
  if (is_padded(tensor) && tensor->atomicity == PE_ATOM_OF_32B_FLIPPED) return "packed elements cannot be flipped";
  if (is_padded(tensor) && tensor->swizzle != PE_SWIZZLE_NONE && tensor->swizzle != PE_SWIZZLE_128B)
    return "packed elements have no such swizzle mode";
  if (is_padded(tensor) && tensor->interleave) return "packed elements cannot be interleaved";
  uint32_t bytes = tensor->box[0] / type.elements * type.wide;
  if (tensor->box[0] % type.elements || bytes % ROW_UNIT) return "the rows of its box are not multiples of 16 bytes";
  uint32_t span = pe_tensor_span(tensor);
  return span && bytes > span ? "the rows of its box are longer than what is swizzled" : NULL;
}

static const char *flaw_of_box(const pe_tensor *tensor) {
  for (uint32_t d = 1; d < tensor->rank; d++)
    if (!tensor->box[d] || tensor->box[d] > MOST_BOX) return "its box is empty, or longer than 256 elements";
  return NULL;
}

/* The corners of the boxes of im2col copies: fewer bits for each the more there are. */
static const char *flaw_of_corners(const pe_tensor *tensor) {
  for (uint32_t i = 0; i + 2 < tensor->rank; i++) {
    int32_t limit = 1 << (pe_tensor_corner_bits(tensor->rank) - 1), lower = tensor->lower[i], upper = tensor->upper[i];
    if (lower < -limit || lower >= limit || upper < -limit || upper >= limit) return "a corner of its box is too far away";
    int64_t end = (int64_t)tensor->dim[pe_tensor_side(tensor) + i] + upper;
    if (end > INT32_MAX) end -= 1ll << 32; /* as the driver counts */
    if (end <= lower) return "its box is empty";
  }
  return !tensor->pixels || tensor->pixels > MOST_PIXELS ? "it has no pixels, or more than 1024" : NULL;
}

const char *pe_tensor_flaw(const pe_tensor *tensor) {
  const char *flaw = flaw_of_fields(tensor);
  if (!flaw) flaw = flaw_of_place(tensor);
  if (!flaw) flaw = flaw_of_row(tensor);
  if (!flaw) flaw = tensor->im2col ? flaw_of_corners(tensor) : flaw_of_box(tensor);
  return flaw;
}
