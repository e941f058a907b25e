/* tensor_bits.c: which bits of a tensor map say what.
 *
 * Measured on an H200 with driver 580, which wrote 13,185 maps bit for bit as pe_tensor_write does; docs/semantics.md has the
 * table.  What exists for later architectures alone (packed elements, atomicity) could not be measured: those places are our own.
 */
#include <string.h>
#include "tensor_types.h"

enum {
  IM2COL = 64,
  RANK = 68, /* less 1, as all counts */
  TYPE = 71,
  INTERLEAVE = 75,
  SWIZZLE = 77,
  FILL = 79,
  TF32 = 80,
  PROMOTION = 81,
  SWIZZLE_MORE = 86,
  ATOMICITY = 87, /* our own */
  STRIDE = 96,    /* in units of 16 bytes */
  STRIDE_MORE = 224,
  DIM = 256,
  STEP = 416,
  BOX = 440,
  LOWER = 448,
  UPPER = 464,
  PIXELS = 480,
  BOX_BYTES = 512, /* of what follows the hardware reads nothing */
  SHARED_ALIGNMENT = 576
};
enum { TYPE_BITS = 4, DIM_BITS = 32, STEP_BITS = 3, BOX_BITS = 8, STRIDE_UNIT = 4, STRIDE_MORE_BITS = 4, PIXEL_BITS = 10 };
enum { HIGH_BITS = 25 }; /* of an address, beyond its first 32 */
enum { FIRST_PACKED_CODE = PE_TENSOR_BF16 + 1, TF32_CODE = PE_TENSOR_F32 };

_Static_assert(sizeof(pe_tensor_map) == PE_TENSOR_MAP_BYTES, "a tensor map has 128 bytes");

/* ---- fields of at most 32 bits, which lie within a word ---- */

static uint32_t mask_of(uint32_t bits) { return UINT32_MAX >> (32 - bits); }

static uint32_t get(const pe_tensor_map *map, uint32_t at, uint32_t bits) {
  return map->words[at / 32] >> at % 32 & mask_of(bits);
}

static void put(pe_tensor_map *map, uint32_t at, uint32_t bits, uint64_t value) {
  uint32_t mask = mask_of(bits) << at % 32, *word = &map->words[at / 32];
  *word = (*word & ~mask) | ((uint32_t)value << at % 32 & mask);
}

static int32_t get_signed(const pe_tensor_map *map, uint32_t at, uint32_t bits) {
  return (int32_t)(get(map, at, bits) << (32 - bits)) >> (32 - bits);
}

/* ---- fields that are more than some bits side by side ---- */

/* TF32 is FLOAT32 with another bit. */
static void put_type(pe_tensor_map *map, uint32_t type) {
  bool tf32 = type == PE_TENSOR_TF32 || type == PE_TENSOR_TF32_FTZ;
  uint32_t code = type;
  if (tf32) code = type - PE_TENSOR_TF32 + TF32_CODE;
  if (type >= PE_TENSOR_B4X16) code = type - PE_TENSOR_B4X16 + FIRST_PACKED_CODE;
  put(map, TYPE, TYPE_BITS, code);
  if (tf32) put(map, TF32, 1, 1);
}

static uint32_t get_type(const pe_tensor_map *map) {
  uint32_t code = get(map, TYPE, TYPE_BITS), type = code;
  if (code >= FIRST_PACKED_CODE) type = code - FIRST_PACKED_CODE + PE_TENSOR_B4X16;
  if (!get(map, TF32, 1)) return type;
  bool float32 = type == PE_TENSOR_F32 || type == PE_TENSOR_F32_FTZ;
  return float32 ? type - TF32_CODE + PE_TENSOR_TF32 : PE_TENSOR_TYPES;
}

static void put_stride(pe_tensor_map *map, uint32_t d, uint64_t bytes) {
  uint64_t units = bytes >> STRIDE_UNIT;
  put(map, STRIDE + 32 * d, 32, units);
  put(map, STRIDE_MORE + STRIDE_MORE_BITS * d, STRIDE_MORE_BITS, units >> 32);
}

static uint64_t get_stride(const pe_tensor_map *map, uint32_t d) {
  uint64_t more = get(map, STRIDE_MORE + STRIDE_MORE_BITS * d, STRIDE_MORE_BITS);
  return (more << 32 | get(map, STRIDE + 32 * d, 32)) << STRIDE_UNIT;
}

static void put_address(pe_tensor_map *map, uint64_t address) {
  map->words[0] = (uint32_t)address;
  map->words[1] = (uint32_t)(address >> 32);
}

static void put_swizzle(pe_tensor_map *map, uint32_t mode) {
  put(map, SWIZZLE, 2, mode);
  put(map, SWIZZLE_MORE, 1, mode >> 2);
}

uint32_t pe_tensor_corner_bits(uint32_t rank) {
  static const uint8_t bits[] = {16, 8, 5};
  return bits[rank - 3];
}

static bool has_corners(const pe_tensor *tensor) {
  return tensor->im2col && tensor->rank >= 3 && tensor->rank <= PE_TENSOR_RANK;
}

/* ---- whole maps ---- */

void pe_tensor_read(const pe_tensor_map *map, pe_tensor *out) {
  *out = (pe_tensor){
    .im2col = get(map, IM2COL, 1),
    .rank = get(map, RANK, 3) + 1,
    .type = get_type(map),
    .interleave = get(map, INTERLEAVE, 2),
    .swizzle = get(map, SWIZZLE, 2) | get(map, SWIZZLE_MORE, 1) << 2,
    .atomicity = get(map, ATOMICITY, 2),
    .promotion = get(map, PROMOTION, 2),
    .fill = get(map, FILL, 1),
    .address = (uint64_t)get(map, 32, HIGH_BITS) << 32 | map->words[0],
    .pixels = get(map, PIXELS, PIXEL_BITS) + 1,
  };
  for (uint32_t d = 0; d < PE_TENSOR_RANK; d++) {
    out->dim[d] = (uint64_t)get(map, DIM + DIM_BITS * d, DIM_BITS) + 1;
    out->step[d] = get(map, STEP + STEP_BITS * d, STEP_BITS) + 1;
    if (!d || !out->im2col) out->box[d] = get(map, BOX + BOX_BITS * d, BOX_BITS) + 1;
    if (d) out->stride[d - 1] = get_stride(map, d - 1);
  }
  for (uint32_t i = 0; has_corners(out) && i + 2 < out->rank; i++) {
    uint32_t bits = pe_tensor_corner_bits(out->rank);
    out->lower[i] = get_signed(map, LOWER + bits * i, bits);
    out->upper[i] = get_signed(map, UPPER + bits * i, bits);
  }
}

/* What only the driver looks at: how many bytes of shared memory a box has, and after how many swizzling begins again. */
static void write_summary(const pe_tensor *tensor, pe_tensor_map *out) {
  static const uint16_t periods[] = {16, 256, 512, 1024, 256};
  out->words[BOX_BYTES / 32] = (uint32_t)pe_tensor_box_bytes(tensor);
  out->words[SHARED_ALIGNMENT / 32] = periods[tensor->swizzle];
}

void pe_tensor_write(const pe_tensor *tensor, pe_tensor_map *out) {
  memset(out, 0, sizeof *out);
  put_address(out, tensor->address);
  put(out, IM2COL, 1, tensor->im2col);
  put(out, RANK, 3, tensor->rank - 1);
  put_type(out, tensor->type);
  put(out, INTERLEAVE, 2, tensor->interleave);
  put_swizzle(out, tensor->swizzle);
  put(out, ATOMICITY, 2, tensor->atomicity);
  put(out, PROMOTION, 2, tensor->promotion);
  put(out, FILL, 1, tensor->fill);
  for (uint32_t d = 0; d < tensor->rank; d++) {
    put(out, DIM + DIM_BITS * d, DIM_BITS, tensor->dim[d] - 1);
    put(out, STEP + STEP_BITS * d, STEP_BITS, tensor->step[d] - 1);
    if (!d || !tensor->im2col) put(out, BOX + BOX_BITS * d, BOX_BITS, tensor->box[d] - 1);
    if (d) put_stride(out, d - 1, tensor->stride[d - 1]);
  }
  for (uint32_t i = 0; has_corners(tensor) && i + 2 < tensor->rank; i++) {
    uint32_t bits = pe_tensor_corner_bits(tensor->rank);
    put(out, LOWER + bits * i, bits, (uint32_t)tensor->lower[i]);
    put(out, UPPER + bits * i, bits, (uint32_t)tensor->upper[i]);
  }
  if (tensor->im2col) put(out, PIXELS, PIXEL_BITS, tensor->pixels - 1);
  write_summary(tensor, out);
}

/* As the hardware does it: other fields stay, even such as no map has any more. */
void pe_tensor_set(pe_tensor_map *map, uint32_t field, uint32_t ordinal, uint64_t value) {
  switch (field) {
    case PE_FIELD_GLOBAL_ADDRESS: put_address(map, value); break;
    case PE_FIELD_RANK: put(map, RANK, 3, value); break; /* programs give the rank less 1 */
    case PE_FIELD_BOX_DIM: put(map, BOX + BOX_BITS * ordinal, BOX_BITS, value - 1); break;
    case PE_FIELD_GLOBAL_DIM: put(map, DIM + DIM_BITS * ordinal, DIM_BITS, value - 1); break;
    case PE_FIELD_GLOBAL_STRIDE: put_stride(map, ordinal, value); break;
    case PE_FIELD_ELEMENT_STRIDE: put(map, STEP + STEP_BITS * ordinal, STEP_BITS, value - 1); break;
    case PE_FIELD_ELEMTYPE: put_type(map, (uint32_t)value); break;
    case PE_FIELD_INTERLEAVE_LAYOUT: put(map, INTERLEAVE, 2, value); break;
    case PE_FIELD_SWIZZLE_MODE: put_swizzle(map, (uint32_t)value); break;
    case PE_FIELD_SWIZZLE_ATOMICITY: put(map, ATOMICITY, 2, value); break;
    default: put(map, FILL, 1, value); break;
  }
}

const char *pe_tensor_move(pe_tensor_map *map, uint64_t address) {
  enum { LEAST_ALIGNMENT = 16 };
  if (!address || address % LEAST_ALIGNMENT || address >> 32 >> HIGH_BITS) return "a tensor cannot begin there";
  map->words[0] = (uint32_t)address;
  put(map, 32, HIGH_BITS, address >> 32);
  return NULL;
}
