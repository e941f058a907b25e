/* tensor_map.c: what a tensor map is made of, and whether it is one. */
#include <stdbool.h>
#include <string.h>
#include "checked.h"
#include "tensor.h"
#include "tensor_types.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { MOST_BOX = 256, MOST_STEP = 8, MOST_PIXELS = 1024, LEAST_IM2COL_RANK = 3, MOST_CORNER = 1 << 15 };
#define MOST_DIM (1ull << 32)
#define MOST_STRIDE (1ull << 40)
#define MOST_ADDRESS (1ull << 57) /* addresses have fewer bits */

_Static_assert(sizeof(pe_tensor_map) == PE_TENSOR_MAP_BYTES, "a tensor map has 128 bytes");

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

pe_tensor_type pe_tensor_type_of(const pe_tensor_map *map) { return TYPES[map->type]; }

static bool is_padded(const pe_tensor_map *map) {
  return map->type == PE_TENSOR_B4X16_P64 || map->type == PE_TENSOR_B6X16_P32;
}

static bool is_float(const pe_tensor_map *map) { return map->type >= PE_TENSOR_F16 && map->type <= PE_TENSOR_TF32_FTZ; }

/* ---- what is wrong with one ---- */

uint64_t pe_tensor_dim(const pe_tensor_map *map, uint32_t d) { return map->dim[d] ? map->dim[d] : MOST_DIM; }

/* Fields that stand alone. */
static const char *flaw_of_fields(const pe_tensor_map *map) {
  if (map->magic != PE_TENSOR_MAGIC || map->none || map->kind > PE_TENSOR_IM2COL_W128) return "there is no tensor map";
  if (map->type >= PE_TENSOR_TYPES) return "its element type does not exist";
  if (!map->rank || map->rank > PE_TENSOR_RANK) return "it has no dimensions, or more than 5";
  if (map->interleave > 2) return "its interleave layout does not exist";
  if (map->interleave && map->rank < 3) return "an interleaved tensor has at least 3 dimensions";
  if (map->swizzle > PE_SWIZZLE_96B || map->atomicity > PE_ATOM_OF_64B) return "its swizzle mode does not exist";
  if (map->atomicity && map->swizzle != PE_SWIZZLE_128B) return "its swizzle mode has no such atomicity";
  if (map->promotion > 3) return "its L2 promotion does not exist";
  if (map->fill > 1) return "its fill mode does not exist";
  if (map->fill && !is_float(map)) return "elements that are no floats cannot be filled with NaN";
  return NULL;
}

/* Where its elements are. */
static const char *flaw_of_tensor(const pe_tensor_map *map) {
  uint64_t unit = map->interleave == 2 || is_padded(map) ? 32 : 16;
  if (map->address % unit || map->address >= MOST_ADDRESS) return "its address is not aligned";
  for (uint32_t d = 0; d + 1 < map->rank; d++) {
    if (map->stride[d] % unit) return "its strides are not multiples of 16, or of 32";
    if (map->stride[d] >= MOST_STRIDE) return "a stride of it is 2^40 or more";
  }
  if (pe_tensor_dim(map, 0) % pe_tensor_type_of(map).elements)
    return "its innermost dimension is not a multiple of what its packed elements need";
  return NULL;
}

/* The bytes in shared memory that a swizzled row may have. */
static uint32_t swizzle_bytes(const pe_tensor_map *map) {
  static const uint32_t bytes[] = {UINT32_MAX, 32, 64, 128, 96};
  return bytes[map->swizzle];
}

/* How wide a copy is. */
static const char *flaw_of_row(const pe_tensor_map *map) {
  pe_tensor_type type = pe_tensor_type_of(map);
  if (!map->box[0] || map->box[0] > MOST_BOX) return "its box is empty, or longer than 256 elements";
  if (is_padded(map) && map->box[0] != type.elements) return "the rows of its box do not have 128 packed elements";
  if (is_padded(map) && map->atomicity == PE_ATOM_OF_32B_FLIPPED) return "packed elements cannot be flipped";
  if (is_padded(map) && map->swizzle != PE_SWIZZLE_NONE && map->swizzle != PE_SWIZZLE_128B)
    return "packed elements have no such swizzle mode";
  if (map->interleave == 2 && map->swizzle != PE_SWIZZLE_32B) return "a layout interleaved by 32 bytes is swizzled by 32";
  if (map->interleave) return is_padded(map) ? "packed elements cannot be interleaved" : NULL;
  uint32_t bytes = map->box[0] / type.elements * type.wide;
  if (map->box[0] % type.elements || bytes % 16) return "the rows of its box are not multiples of 16 bytes";
  return bytes > swizzle_bytes(map) ? "the rows of its box are longer than what is swizzled" : NULL;
}

static const char *flaw_of_steps(const pe_tensor_map *map) {
  for (uint32_t d = 0; d < map->rank; d++)
    if (!map->step[d] || map->step[d] > MOST_STEP) return "an element stride of it is not 1 to 8";
  return NULL;
}

static const char *flaw_of_box(const pe_tensor_map *map) {
  for (uint32_t d = 1; d < map->rank; d++)
    if (!map->box[d] || map->box[d] > MOST_BOX) return "its box is empty, or longer than 256 elements";
  return NULL;
}

/* The corners of the boxes of im2col copies: fewer bits for each the more there are. */
static const char *flaw_of_corners(const pe_tensor_map *map) {
  static const int most[] = {1 << 15, 1 << 7, 1 << 4};
  if (map->rank < LEAST_IM2COL_RANK) return "a tensor of im2col copies has at least 3 dimensions";
  bool wide = map->kind != PE_TENSOR_IM2COL;
  uint32_t corners = wide ? 1 : map->rank - 2u;
  for (uint32_t i = 0; i < corners; i++) {
    int limit = most[corners - 1];
    bool low = map->lower[i] < -limit || map->lower[i] >= limit, high = map->upper[i] < -limit || map->upper[i] >= limit;
    if (low || high) return "a corner of its box is too far away";
    if ((int64_t)pe_tensor_dim(map, i + 1) + map->upper[i] <= map->lower[i]) return "its box is empty";
  }
  if (wide && map->interleave) return "copies along W are not interleaved";
  if (wide && map->swizzle != PE_SWIZZLE_64B && map->swizzle != PE_SWIZZLE_128B)
    return "copies along W are swizzled by 64 or 128 bytes";
  bool counted = map->kind != PE_TENSOR_IM2COL_W128;
  return counted && (!map->pixels || map->pixels > MOST_PIXELS) ? "it has no pixels, or more than 1024" : NULL;
}

const char *pe_tensor_flaw(const pe_tensor_map *map) {
  const char *flaw = flaw_of_fields(map);
  if (!flaw) flaw = flaw_of_tensor(map);
  if (!flaw) flaw = flaw_of_row(map);
  if (!flaw) flaw = flaw_of_steps(map);
  if (!flaw) flaw = map->kind == PE_TENSOR_TILED ? flaw_of_box(map) : flaw_of_corners(map);
  return flaw;
}

/* ---- making one ---- */

/* Numbers beyond what a field holds become its greatest, which no field may have. */
uint16_t pe_tensor_narrow_16(uint64_t value) { return value > UINT16_MAX ? UINT16_MAX : (uint16_t)value; }
uint8_t pe_tensor_narrow_8(uint64_t value) { return value > UINT8_MAX ? UINT8_MAX : (uint8_t)value; }

static bool set_dims(const pe_tensor_layout *layout, pe_tensor_map *map) {
  for (uint32_t d = 0; d < map->rank; d++) {
    if (!layout->dim[d] || layout->dim[d] > MOST_DIM) return false;
    map->dim[d] = (uint32_t)layout->dim[d];
    map->step[d] = pe_tensor_narrow_8(layout->step[d]);
    if (layout->box) map->box[d] = pe_tensor_narrow_16(layout->box[d]);
    if (d) map->stride[d - 1] = layout->stride[d - 1];
  }
  return true;
}

static bool set_corners(const pe_tensor_layout *layout, pe_tensor_map *map) {
  uint32_t corners = map->kind == PE_TENSOR_IM2COL ? map->rank - 2u : 1;
  for (uint32_t i = 0; i < corners && i < COUNT(map->lower); i++) {
    int lower = layout->lower[i], upper = layout->upper[i];
    if (lower < -MOST_CORNER || lower >= MOST_CORNER || upper < -MOST_CORNER || upper >= MOST_CORNER) return false;
    map->lower[i] = (int16_t)lower, map->upper[i] = (int16_t)upper;
  }
  map->box[0] = pe_tensor_narrow_16(layout->channels);
  map->pixels = layout->pixels;
  return true;
}

const char *pe_tensor_encode(const pe_tensor_layout *layout, pe_tensor_map *out) {
  pe_tensor_map map = {.magic = PE_TENSOR_MAGIC,
                       .kind = pe_tensor_narrow_8(layout->kind),
                       .rank = pe_tensor_narrow_8(layout->rank),
                       .type = pe_tensor_narrow_8(layout->type),
                       .interleave = pe_tensor_narrow_8(layout->interleave),
                       .swizzle = pe_tensor_narrow_8(layout->swizzle),
                       .atomicity = pe_tensor_narrow_8(layout->atomicity),
                       .fill = pe_tensor_narrow_8(layout->fill),
                       .promotion = pe_tensor_narrow_8(layout->promotion),
                       .address = layout->address};
  const char *flaw = flaw_of_fields(&map);
  if (flaw) return flaw;
  if (map.kind != PE_TENSOR_TILED && map.rank < LEAST_IM2COL_RANK)
    return "a tensor of im2col copies has at least 3 dimensions";
  if (!set_dims(layout, &map)) return "a dimension of it is 0 or more than 2^32";
  if (map.kind != PE_TENSOR_TILED && !set_corners(layout, &map)) return "a corner of its box is too far away";
  flaw = pe_tensor_flaw(&map);
  if (!flaw) memcpy(out, &map, sizeof map);
  return flaw;
}
