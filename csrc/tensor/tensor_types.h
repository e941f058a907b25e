/* tensor_types.h: what the files about tensors share. */
#ifndef PTXEMU_TENSOR_TYPES_H
#define PTXEMU_TENSOR_TYPES_H
#include "tensor.h"

#define PE_TENSOR_MAGIC 0x70616d74u /* "tmap" */

/* Elements that are copied as one, and how many bytes they have in global and in shared memory. */
typedef struct pe_tensor_type {
  uint8_t elements, bytes, wide;
} pe_tensor_type;

/* That of a map without flaws, or at least with a type. */
pe_tensor_type pe_tensor_type_of(const pe_tensor_map *map);

/* How many elements a dimension has. */
uint64_t pe_tensor_dim(const pe_tensor_map *map, uint32_t d);

uint16_t pe_tensor_narrow_16(uint64_t value);
uint8_t pe_tensor_narrow_8(uint64_t value);

/* ---- tensor_walk.c: which rows of a tensor a box has ---- */

/* A row: its elements lie side by side. */
typedef struct pe_tensor_row {
  uint64_t address;       /* of what is inside of the tensor */
  uint32_t before, bytes; /* of global memory: what lies outside in front, and what is inside */
} pe_tensor_row;

/* A way through a tensor, row by row: an odometer. */
typedef struct pe_tensor_walk {
  const pe_tensor_map *map;
  const char *flaw;          /* why there is no such way, or NULL */
  uint64_t rows;             /* that are left */
  uint32_t width;            /* of a row, in global memory */
  uint32_t wide;             /* in shared memory */
  int64_t at[5];             /* coordinates of the next row */
  int64_t before[5];         /* of the row before, halos aside */
  int64_t first[5], last[5]; /* where a dimension begins again, and its last coordinate */
  int64_t step[5];
  int64_t offset[5];     /* added to coordinates */
  int32_t chosen[4];     /* of rows that are told one by one */
  uint32_t mode, number; /* of the next row */
  uint32_t run, halo;    /* of so many rows so many more follow that go on along W */
} pe_tensor_walk;

pe_tensor_walk pe_tensor_begin(const pe_tensor_site *site, const pe_tensor_map *map, const int32_t coords[5],
                               const uint16_t offsets[3]);

/* The next row, of which there is one. */
pe_tensor_row pe_tensor_next(pe_tensor_walk *walk);

#endif
