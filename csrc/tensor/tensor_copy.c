/* tensor_copy.c: copies between a box of a tensor and shared memory.
 *
 * As other asynchronous copies they are complete when the instruction is.  What lies outside of the tensor is not touched,
 * and counts as bytes all the same.
 */
#include <stdbool.h>
#include <string.h>
#include "atomic.h"
#include "checked.h"
#include "fault.h"
#include "launch.h"
#include "place.h"
#include "sync.h"
#include "tensor_types.h"

enum { BOX_ALIGNMENT = 128, MOST_ROW = 2048, PIECE = 16, HALF_PIECE = 8 };

/* One lane's copy. */
typedef struct copy {
  pe_warp *w;
  const pe_tensor_site *site;
  uint32_t lane;
  pe_tensor tensor;
  pe_tensor_walk walk;
  uint64_t at;   /* offset of the box in the shared window */
  uint8_t *host; /* and where that is */
} copy;

static noreturn void flawed(pe_warp *w, const pe_tensor_site *site, uint32_t lane, uint64_t address, const char *what) {
  pe_fault_note(w, PE_INVALID_TENSOR, site->pos, (int32_t)lane, site->map, address, PE_TENSOR_MAP_BYTES, what);
}

/* The map of a lane, which is a fault if there is none without flaws. */
static void fetch(pe_warp *w, const pe_tensor_site *site, uint32_t lane, uint64_t address, pe_tensor *out) {
  pe_tensor_map map;
  pe_access read = {site->pos, site->map, PE_IN_GLOBAL | PE_IN_PRIVATE, PE_READ, PE_TENSOR_MAP_ALIGNMENT, NULL};
  memcpy(&map, pe_host(w, &read, lane, address, sizeof map), sizeof map);
  pe_tensor_read(&map, out);
  const char *flaw = pe_tensor_flaw(out);
  if (flaw) flawed(w, site, lane, address, flaw);
}

/* ---- shared memory ---- */

/* Where a byte of a box lies: bits of the address are changed by those of the line of 128 bytes it is in. */
static uint64_t swizzled(const pe_tensor *tensor, uint64_t at) {
  switch (tensor->swizzle) {
    case PE_SWIZZLE_32B:
    case PE_SWIZZLE_96B: return at ^ (at >> 3 & 0x10);
    case PE_SWIZZLE_64B: return at ^ (at >> 3 & 0x30);
    case PE_SWIZZLE_128B: break;
    default: return at;
  }
  switch (tensor->atomicity) {
    case PE_ATOM_OF_16B: return at ^ (at >> 3 & 0x70);
    case PE_ATOM_OF_32B: return at ^ (at >> 2 & 0x60);
    case PE_ATOM_OF_32B_FLIPPED: return at ^ (at >> 2 & 0x60) ^ (at >> 4 & 8);
    default: return at ^ (at >> 1 & 0x40);
  }
}

/* How many bytes swizzling keeps side by side. */
static uint32_t piece_of(const pe_tensor *tensor, uint32_t row) {
  if (tensor->swizzle == PE_SWIZZLE_NONE) return row;
  return tensor->atomicity == PE_ATOM_OF_32B_FLIPPED ? HALF_PIECE : PIECE;
}

static uint8_t *piece_at(const copy *c, uint64_t offset) { return c->host + (swizzled(&c->tensor, c->at + offset) - c->at); }

static void put_row(const copy *c, uint64_t offset, const uint8_t *from) {
  uint32_t piece = piece_of(&c->tensor, c->walk.wide);
  for (uint32_t i = 0; i < c->walk.wide; i += piece) memcpy(piece_at(c, offset + i), from + i, piece);
}

static void get_row(const copy *c, uint64_t offset, uint8_t *to) {
  uint32_t piece = piece_of(&c->tensor, c->walk.wide);
  for (uint32_t i = 0; i < c->walk.wide; i += piece) memcpy(to + i, piece_at(c, offset + i), piece);
}

/* ---- beginning ---- */

/* What a box takes: swizzling stays within spans. */
static uint64_t extent(const copy *c) {
  static const uint8_t spans[] = {1, 32, 64, 128, 32};
  return pe_round_up(c->walk.rows * c->walk.pitch, spans[c->tensor.swizzle]); /* 2^32 rows of 2 KiB at most */
}

static void begin(copy *c, uint16_t kind, uint64_t box, uint64_t map, const int32_t *coords, const uint16_t *offsets) {
  int32_t at[PE_TENSOR_RANK];
  uint16_t added[3] = {0};
  for (uint32_t d = 0; d < PE_TENSOR_RANK; d++) at[d] = coords[d * PE_WARP_LANES + c->lane];
  for (uint32_t d = 0; offsets && d < 3; d++) added[d] = offsets[d * PE_WARP_LANES + c->lane];
  c->w->pos = c->site->pos;
  c->w->space = PE_GLOBAL;
  fetch(c->w, c->site, c->lane, map, &c->tensor);
  c->walk = pe_tensor_begin(c->site, &c->tensor, at, added);
  if (c->walk.flaw) flawed(c->w, c->site, c->lane, map, c->walk.flaw);
  pe_access access = {c->site->pos, c->site->box, PE_IN_SHARED, kind | PE_ASYNC | PE_BULK, BOX_ALIGNMENT, NULL};
  c->at = c->site->box == PE_SHARED ? box : pe_cluster_offset(c->w, box);
  c->host = pe_host(c->w, &access, c->lane, box, extent(c));
}

/* The part of a row that is inside of the tensor, in host memory. */
static uint8_t *global(const copy *c, const pe_tensor_row *row, uint16_t kind) {
  pe_access access = {c->site->pos, PE_GLOBAL, PE_IN_GLOBAL, kind | PE_ASYNC | PE_BULK, 1, NULL};
  return pe_host(c->w, &access, c->lane, row->address, row->bytes);
}

/* ---- elements ---- */

/* What is outside: zeros, or 16 bits of a NaN that fma.oob knows, over and over, whatever the type. */
static void fill_row(const copy *c, uint8_t *row) {
  const uint16_t bits = c->tensor.fill ? 0x7ff7 : 0;
  for (uint32_t i = 0; i < c->walk.wide; i += sizeof bits) memcpy(row + i, &bits, sizeof bits);
}

static bool rounds(const pe_tensor *tensor) { return tensor->type == PE_TENSOR_TF32 || tensor->type == PE_TENSOR_TF32_FTZ; }

/* To 10 bits of fraction, halves to even; subnormals stay, of all types. */
static uint32_t rounded(uint32_t bits) {
  uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return 0x7fffe000;
  return (bits + 0xfff + (bits >> 13 & 1)) & ~0x1fffu;
}

/* Elements of 12 or 8 bytes for every 16 of shared memory; what is between them stays zero. */
static void spread(uint8_t *to, const uint8_t *from, uint32_t bytes, uint32_t each) {
  for (uint32_t i = 0; i < bytes / each; i++) memcpy(to + (uint64_t)i * PIECE, from + (uint64_t)i * each, each);
}

/* What is inside becomes part of a row. */
static void take(const copy *c, uint8_t *row, const pe_tensor_row *inside, const uint8_t *from) {
  pe_tensor_type type = pe_tensor_type_of(&c->tensor);
  if (type.wide != type.bytes) {
    memset(row, 0, c->walk.wide);
    spread(row, from, inside->bytes, PIECE * type.bytes / type.wide);
    return;
  }
  memcpy(row + inside->before, from, inside->bytes);
  if (!rounds(&c->tensor)) return;
  for (uint32_t i = inside->before; i < inside->before + inside->bytes; i += sizeof(uint32_t)) {
    uint32_t bits;
    memcpy(&bits, row + i, sizeof bits);
    bits = rounded(bits);
    memcpy(row + i, &bits, sizeof bits);
  }
}

/* 6 bits of each byte side by side. */
static void pack(uint8_t *row, uint32_t bytes) {
  for (uint32_t from = 0, to = 0; from < bytes; from += 4, to += 3) {
    uint32_t bits = 0;
    for (uint32_t i = 0; i < 4; i++) bits |= (row[from + i] & 0x3fu) << 6 * i;
    memcpy(row + to, &bits, 3);
  }
}

/* ---- copies ---- */

void pe_tensor_load(pe_warp *w, const pe_tensor_site *site, uint32_t mask, const uint64_t *target, const uint64_t *map,
                    const int32_t *coords, const uint16_t *offsets, uint32_t *bytes) {
  PE_FOR_LANES(lane, mask) {
    copy c = {.w = w, .site = site, .lane = lane};
    _Alignas(PIECE) uint8_t row[MOST_ROW];
    begin(&c, PE_WRITE, target[lane], map[lane], coords, offsets);
    bytes[lane] = (uint32_t)(c.walk.rows * c.walk.wide); /* shared memory has as many */
    for (uint64_t offset = 0; c.walk.rows; offset += c.walk.pitch) {
      pe_tensor_row inside = pe_tensor_next(&c.walk);
      if (inside.bytes < c.walk.width) fill_row(&c, row);
      if (inside.bytes) take(&c, row, &inside, global(&c, &inside, PE_READ));
      put_row(&c, offset, row);
    }
  }
}

/* The rank of the CTA that an address is in. */
static uint32_t rank_of(const pe_warp *w, uint32_t space, uint64_t address) {
  return pe_cluster_rank(w, space == PE_SHARED ? w->shared_base + address : address);
}

void pe_tensor_multicast(pe_warp *w, const pe_tensor_site *site, const pe_mbarrier_site *completion, uint32_t mask,
                         const uint64_t *target, const uint64_t *map, const int32_t *coords, const uint16_t *offsets,
                         const uint16_t *ctas, const uint64_t *object, uint32_t pairs) {
  pe_tensor_site there = *site;
  pe_mbarrier_site told = *completion;
  uint64_t to[PE_WARP_LANES], at[PE_WARP_LANES];
  uint32_t bytes[PE_WARP_LANES];
  there.box = told.space = PE_GENERIC;
  for (uint32_t rank = 0; rank < w->cluster_nctarank; rank++) {
    PE_FOR_LANES(lane, mask) {
      if (!(ctas[lane] >> rank & 1)) continue;
      uint32_t side = rank_of(w, completion->space, object[lane]) & 1, other = pairs ? (rank & ~1u) | side : rank;
      to[lane] = pe_cluster_peer(w, site->box, target[lane], rank);
      at[lane] = pe_cluster_peer(w, completion->space, object[lane], other);
      pe_tensor_load(w, &there, 1u << lane, to, map, coords, offsets, bytes);
      pe_mbarrier(w, &told, 1u << lane, at, bytes, NULL);
    }
  }
}

/* The operation on elements of a type: -1 if there is none. */
typedef struct reduction {
  int op;
  uint32_t type, flags;
} reduction;

static uint32_t code_of(uint32_t type) {
  static const uint8_t codes[PE_TENSOR_TYPES] = {
    [PE_TENSOR_U32] = PE_TYPE_U32,  [PE_TENSOR_S32] = PE_TYPE_S32,      [PE_TENSOR_U64] = PE_TYPE_U64,
    [PE_TENSOR_S64] = PE_TYPE_S64,  [PE_TENSOR_F16] = PE_TYPE_F16,      [PE_TENSOR_BF16] = PE_TYPE_BF16,
    [PE_TENSOR_F32] = PE_TYPE_F32,  [PE_TENSOR_F32_FTZ] = PE_TYPE_F32,  [PE_TENSOR_F64] = PE_TYPE_F64,
    [PE_TENSOR_TF32] = PE_TYPE_F32, [PE_TENSOR_TF32_FTZ] = PE_TYPE_F32,
  };
  return codes[type];
}

static bool flushes(uint32_t type) { return type == PE_TENSOR_F32_FTZ || type == PE_TENSOR_TF32_FTZ; }

/* By kind of element: unsigned, signed, float. */
static int operation_of(uint32_t op, uint32_t type) {
  static const int8_t ops[][3] = {
    [PE_TENSOR_ADD] = {PE_ATOM_ADD, PE_ATOM_ADD, PE_ATOM_FADD},
    [PE_TENSOR_MIN] = {PE_ATOM_UMIN, PE_ATOM_SMIN, PE_ATOM_FMIN},
    [PE_TENSOR_MAX] = {PE_ATOM_UMAX, PE_ATOM_SMAX, PE_ATOM_FMAX},
    [PE_TENSOR_INC] = {PE_ATOM_INC_WRAP, -1, -1},
    [PE_TENSOR_DEC] = {PE_ATOM_DEC_WRAP, -1, -1},
    [PE_TENSOR_AND] = {PE_ATOM_AND, PE_ATOM_AND, -1},
    [PE_TENSOR_OR] = {PE_ATOM_OR, PE_ATOM_OR, -1},
    [PE_TENSOR_XOR] = {PE_ATOM_XOR, PE_ATOM_XOR, -1},
  };
  bool integer = type >= PE_TYPE_U32 && type <= PE_TYPE_S64, is_signed = type == PE_TYPE_S32 || type == PE_TYPE_S64;
  return ops[op][integer ? is_signed : 2];
}

/* Which there are, as measured on an H200: others are illegal instructions there. */
static bool exists(uint32_t op, uint32_t type) {
  bool extreme = op == PE_TENSOR_MIN || op == PE_TENSOR_MAX;
  switch (type) {
    case PE_TYPE_U32: return true;
    case PE_TYPE_S64: return extreme;
    case PE_TYPE_F32:
    case PE_TYPE_F64: return op == PE_TENSOR_ADD;
    default: return type && op != PE_TENSOR_INC && op != PE_TENSOR_DEC;
  }
}

static reduction reduction_of(const copy *c, uint64_t map) {
  reduction r = {-1, code_of(c->tensor.type), flushes(c->tensor.type) ? PE_ATOM_FTZ : 0};
  if (exists(c->site->op, r.type)) r.op = operation_of(c->site->op, r.type);
  if (r.op < 0) flawed(c->w, c->site, c->lane, map, "its elements cannot be reduced in this way");
  return r;
}

static void reduce_row(const reduction *r, uint8_t *to, const uint8_t *from, uint32_t bytes) {
  uint32_t size = pe_atom_bytes(r->type);
  for (uint32_t i = 0; i < bytes; i += size)
    pe_atom_update(to + i, (uint32_t)r->op, r->type, r->flags, from + i, NULL, NULL, true);
}

/* Whether a coordinate is negative, or may become so; rows that are told one by one may be. */
static bool begins_outside(const copy *c) {
  uint32_t dims = c->site->mode == PE_LOAD_ROWS ? 1 : c->tensor.rank;
  for (uint32_t d = 0; d < dims; d++)
    if (c->walk.at[d] < 0 || (d < 3 && c->tensor.lower[d] < 0)) return true;
  return false;
}

/* Hardware changes 16 bytes at a time, also those behind the end of the innermost dimension. */
static void widen(const copy *c, pe_tensor_row *row) {
  uint32_t end = (uint32_t)pe_round_up(row->before + row->bytes, PIECE);
  row->bytes = (end < c->walk.width ? end : c->walk.width) - row->before;
}

void pe_tensor_store(pe_warp *w, const pe_tensor_site *site, uint32_t mask, const uint64_t *source, const uint64_t *map,
                     const int32_t *coords) {
  bool sets = site->op == PE_TENSOR_SET;
  uint16_t kind = sets ? PE_WRITE : PE_UPDATE | PE_STRONG;
  PE_FOR_LANES(lane, mask) {
    copy c = {.w = w, .site = site, .lane = lane};
    _Alignas(PIECE) uint8_t row[MOST_ROW];
    begin(&c, PE_READ, source[lane], map[lane], coords, NULL);
    if (begins_outside(&c)) flawed(w, site, lane, map[lane], "a copy to global memory has no negative coordinates");
    if (c.tensor.type == PE_TENSOR_B4X16_P64)
      flawed(w, site, lane, map[lane], "copies to global memory have no such elements");
    reduction r = {0};
    if (!sets) r = reduction_of(&c, map[lane]);
    for (uint64_t offset = 0; c.walk.rows; offset += c.walk.pitch) {
      pe_tensor_row inside = pe_tensor_next(&c.walk);
      if (!inside.bytes) continue;
      widen(&c, &inside);
      get_row(&c, offset, row);
      if (c.tensor.type == PE_TENSOR_B6X16_P32) pack(row, c.walk.wide);
      uint8_t *to = global(&c, &inside, kind);
      if (sets)
        memcpy(to, row + inside.before, inside.bytes);
      else
        reduce_row(&r, to, row + inside.before, inside.bytes);
    }
  }
}
