/* tensor.h: tensor maps, and copies between a tensor in global memory and a box of it in shared memory (PTX ISA, "Tensors").
 *
 * Tensor maps have the bits that those of an H200 have (tensor_bits.c).  Programs can write anything into one: whoever uses one
 * asks pe_tensor_flaw first.
 */
#ifndef PTXEMU_TENSOR_H
#define PTXEMU_TENSOR_H
#include "async.h"

#pragma GCC visibility push(default)
/* CDEF BEGIN */
/* ---- tensor_encode.c ---------------------------------------------------------------------------------------------- */

enum { PE_TENSOR_RANK = 5, PE_TENSOR_MAP_BYTES = 128, PE_TENSOR_MAP_ALIGNMENT = 64 };

/* Element types, as tensormap.replace numbers them. */
enum {
  PE_TENSOR_U8,
  PE_TENSOR_U16,
  PE_TENSOR_U32,
  PE_TENSOR_S32,
  PE_TENSOR_U64,
  PE_TENSOR_S64,
  PE_TENSOR_F16,
  PE_TENSOR_F32,
  PE_TENSOR_F32_FTZ,
  PE_TENSOR_F64,
  PE_TENSOR_BF16,
  PE_TENSOR_TF32,
  PE_TENSOR_TF32_FTZ,
  PE_TENSOR_B4X16,
  PE_TENSOR_B4X16_P64,
  PE_TENSOR_B6X16_P32,
  PE_TENSOR_TYPES
};

enum { PE_TENSOR_TILED, PE_TENSOR_IM2COL, PE_TENSOR_IM2COL_W };

enum { PE_SWIZZLE_NONE, PE_SWIZZLE_32B, PE_SWIZZLE_64B, PE_SWIZZLE_128B, PE_SWIZZLE_96B };
enum { PE_ATOM_OF_16B, PE_ATOM_OF_32B, PE_ATOM_OF_32B_FLIPPED, PE_ATOM_OF_64B }; /* pieces that swizzling keeps whole */

/* A tensor map, in memory of the device and of the host. */
typedef struct pe_tensor_map {
  uint32_t words[32];
} pe_tensor_map;

/* What a tensor map is made of, before anything is known of it.  Arrays have as many elements as there are dimensions. */
typedef struct pe_tensor_layout {
  uint32_t kind, type, rank;
  uint64_t address;
  const uint64_t *dim, *stride;
  const uint32_t *box; /* NULL of im2col copies: they have `channels` and `pixels` */
  const uint32_t *step;
  const int *lower, *upper; /* of im2col copies: rank - 2 of them, 1 of those along W */
  uint32_t channels, pixels;
  uint32_t interleave, swizzle, atomicity, promotion, fill;
} pe_tensor_layout;

/* Make a tensor map.  NULL, or what is wrong; then `out` is as it was. */
const char *pe_tensor_encode(const pe_tensor_layout *layout, pe_tensor_map *out);

/* The tensor of a map begins elsewhere.  NULL, or why it cannot; then the map is as it was. */
const char *pe_tensor_move(pe_tensor_map *map, uint64_t address);

/* ---- tensor_edit.c ------------------------------------------------------------------------------------------------ */

/* Fields of tensormap.replace. */
enum {
  PE_FIELD_GLOBAL_ADDRESS,
  PE_FIELD_RANK,
  PE_FIELD_BOX_DIM,
  PE_FIELD_GLOBAL_DIM,
  PE_FIELD_GLOBAL_STRIDE,
  PE_FIELD_ELEMENT_STRIDE,
  PE_FIELD_ELEMTYPE,
  PE_FIELD_INTERLEAVE_LAYOUT,
  PE_FIELD_SWIZZLE_MODE,
  PE_FIELD_SWIZZLE_ATOMICITY,
  PE_FIELD_FILL_MODE
};

typedef struct pe_tensor_field_site {
  uint32_t pos;
  uint16_t space;
  uint16_t field;
  uint32_t ordinal; /* the dimension, of fields that have several values */
} pe_tensor_field_site;

/* tensormap.replace: the field becomes value[i] in the map of lane i. */
void pe_tensor_replace(pe_warp *w, const pe_tensor_field_site *site, uint32_t mask, const uint64_t *addr,
                       const uint64_t *value);

/* tensormap.cp_fenceproxy: 128 bytes of each lane from shared to global memory. */
void pe_tensor_publish(pe_warp *w, uint32_t pos, uint32_t mask, const uint64_t *target, const uint64_t *source);

/* ---- tensor_copy.c ------------------------------------------------------------------------------------------------ */

/* How a copy goes through a tensor. */
enum { PE_LOAD_TILE, PE_LOAD_ROWS, PE_LOAD_IM2COL, PE_LOAD_IM2COL_W, PE_LOAD_IM2COL_W128 };

/* What a copy to global memory does to an element. */
enum {
  PE_TENSOR_SET,
  PE_TENSOR_ADD,
  PE_TENSOR_MIN,
  PE_TENSOR_MAX,
  PE_TENSOR_INC,
  PE_TENSOR_DEC,
  PE_TENSOR_AND,
  PE_TENSOR_OR,
  PE_TENSOR_XOR
};

typedef struct pe_tensor_site {
  uint32_t pos;
  uint16_t box;  /* the space of the box's address */
  uint16_t map;  /* the space of the map's address */
  uint16_t mode; /* PE_LOAD_* */
  uint16_t dims; /* as the instruction says */
  uint16_t op;   /* PE_TENSOR_SET ..., of copies to global memory */
} pe_tensor_site;

/* Copy a box of each lane's tensor to or from shared memory.  coords: 5 x 32 of them, dimension by dimension; offsets:
 * 3 x 32.  bytes[i] is how many bytes of shared memory lane i's box has. */
void pe_tensor_load(pe_warp *w, const pe_tensor_site *site, uint32_t mask, const uint64_t *target, const uint64_t *map,
                    const int32_t *coords, const uint16_t *offsets, uint32_t *bytes);
void pe_tensor_store(pe_warp *w, const pe_tensor_site *site, uint32_t mask, const uint64_t *source, const uint64_t *map,
                     const int32_t *coords);

/* pe_tensor_load with .multicast::cluster: the same place of every CTA of the cluster whose rank is in ctas[i] is written, and the
 * bytes are taken off the count of the object at the same place as object[i] there; if `pairs`, of that CTA of each pair whose
 * rank is even or odd as that of the CTA where object[i] is. */
void pe_tensor_multicast(pe_warp *w, const pe_tensor_site *site, const pe_mbarrier_site *completion, uint32_t mask,
                         const uint64_t *target, const uint64_t *map, const int32_t *coords, const uint16_t *offsets,
                         const uint16_t *ctas, const uint64_t *object, uint32_t pairs);
/* CDEF END */
#pragma GCC visibility pop

#endif
