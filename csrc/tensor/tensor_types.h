/* tensor_types.h: what the files about tensors share. */
#ifndef PTXEMU_TENSOR_TYPES_H
#define PTXEMU_TENSOR_TYPES_H
#include <stdbool.h>
#include "tensor.h"

/* What a tensor map says of a tensor and of a box.  Dimensions are innermost first; those that there are not count for nothing. */
typedef struct pe_tensor {
  bool im2col;
  uint32_t rank, type, interleave, swizzle, atomicity, promotion;
  uint32_t fill;              /* what is outside of the tensor reads as: 0: zeros, 1: NaN */
  uint64_t address;           /* of the element whose coordinates are all 0 */
  uint64_t stride[4];         /* bytes from one element to the next along each dimension but the innermost */
  uint64_t dim[5];            /* elements; slices along dimension 0 and along that of channels if they are interleaved */
  uint32_t box[5];            /* elements that a copy goes past; of im2col copies the first alone */
  uint32_t step[5];           /* elements from one that is copied to the next */
  int32_t lower[3], upper[3]; /* where the boxes of im2col copies begin and end, from the tensor's ends */
  uint32_t pixels;            /* of an im2col copy */
} pe_tensor;

/* ---- tensor_bits.c ---- */

/* Any 128 bytes say something: pe_tensor_flaw tells whether it makes sense. */
void pe_tensor_read(const pe_tensor_map *map, pe_tensor *out);

/* A tensor without flaws. */
void pe_tensor_write(const pe_tensor *tensor, pe_tensor_map *out);

/* Fields of one map: numbers lose the bits that a field has not. */
void pe_tensor_set(pe_tensor_map *map, uint32_t field, uint32_t ordinal, uint64_t value);

/* Corners and offsets of im2col copies have fewer bits the more there are. */
uint32_t pe_tensor_corner_bits(uint32_t rank);

/* ---- tensor_map.c ---- */

/* Elements that are copied as one, and how many bytes they have in global and in shared memory. */
typedef struct pe_tensor_type {
  uint8_t elements, bytes, wide;
} pe_tensor_type;

/* That of a tensor without flaws, or at least with a type. */
pe_tensor_type pe_tensor_type_of(const pe_tensor *tensor);

/* Bytes that lie side by side in an interleaved layout, or 0. */
uint32_t pe_tensor_slice(const pe_tensor *tensor);

/* The bytes in shared memory that a swizzled row may have, and that it takes; 0: rows lie side by side. */
uint32_t pe_tensor_span(const pe_tensor *tensor);

/* The dimension along which im2col copies have the first of their corners. */
uint32_t pe_tensor_side(const pe_tensor *tensor);

/* What is wrong with a tensor, or NULL. */
const char *pe_tensor_flaw(const pe_tensor *tensor);

/* ---- tensor_encode.c ---- */

/* How many bytes of shared memory the driver takes a box to have. */
uint64_t pe_tensor_box_bytes(const pe_tensor *tensor);

/* ---- tensor_walk.c: which rows of a tensor a box has ---- */

/* A row: its elements lie side by side. */
typedef struct pe_tensor_row {
  uint64_t address;       /* of what is inside of the tensor */
  uint32_t before, bytes; /* of global memory: what lies outside in front, and what is inside */
} pe_tensor_row;

/* A way through a tensor, row by row: an odometer. */
typedef struct pe_tensor_walk {
  const pe_tensor *tensor;
  const char *flaw;          /* why there is no such way, or NULL */
  uint64_t rows;             /* that are left */
  uint32_t width;            /* of a row, in global memory */
  uint32_t wide;             /* in shared memory */
  uint32_t pitch;            /* from one row to the next in shared memory */
  uint32_t fastest;          /* the dimension along which rows follow one another */
  int64_t at[5];             /* coordinates of the next row */
  int64_t before[5];         /* of the row before, halos aside */
  int64_t first[5], last[5]; /* where a dimension begins again, and its last coordinate */
  int64_t step[5];
  int64_t offset[5];     /* added to coordinates */
  int32_t chosen[4];     /* of rows that are told one by one */
  uint32_t mode, number; /* of the next row */
  uint32_t run, halo;    /* of so many rows so many more follow that go on along W */
} pe_tensor_walk;

pe_tensor_walk pe_tensor_begin(const pe_tensor_site *site, const pe_tensor *tensor, const int32_t coords[5],
                               const uint16_t offsets[3]);

/* The next row, of which there is one. */
pe_tensor_row pe_tensor_next(pe_tensor_walk *walk);

#endif
