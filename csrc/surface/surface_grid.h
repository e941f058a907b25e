/* surface_grid.h: the coordinates of a warp on the first level of a surface: which lanes are inside, and where they lie. */
#ifndef PTXEMU_SURFACE_GRID_H
#define PTXEMU_SURFACE_GRID_H
#include "format.h"
#include "layout.h"
#include "surface_access.h"

/* Coordinates that an access or a surface lacks. */
static const int32_t zeros[32];

/* What the loops over lanes need.  A coordinate is inside when its unsigned value is at most its limit. */
typedef struct grid {
  const int32_t *x, *y, *z, *layer;
  uint32_t x_limit, y_limit, z_limit, layer_limit;
  uint32_t scale;   /* bytes of one x */
  uint32_t x_align; /* bits of x that must be zero */
} grid;

PE_INLINE bool lane_inside(const grid *g, uint32_t i) {
  return (uint32_t)g->x[i] <= g->x_limit && !(g->x[i] & g->x_align) && (uint32_t)g->y[i] <= g->y_limit &&
         (uint32_t)g->z[i] <= g->z_limit && (uint32_t)g->layer[i] <= g->layer_limit;
}

/* The lanes that are inside. */
PE_INLINE uint32_t lanes_inside(const grid *g) {
  uint32_t outside[32], any = 0, inside = 0;
  uint32_t x_limit = g->x_limit, align = g->x_align, y_limit = g->y_limit, z_limit = g->z_limit, l_limit = g->layer_limit;
  for (uint32_t i = 0; i < 32; i++) {
    uint32_t x = (uint32_t)g->x[i];
    outside[i] = (x > x_limit) | ((x & align) != 0) | ((uint32_t)g->y[i] > y_limit);
    any |= outside[i];
  }
  if (g->z != zeros || g->layer != zeros)
    for (uint32_t i = 0; i < 32; i++) {
      outside[i] |= ((uint32_t)g->z[i] > z_limit) | ((uint32_t)g->layer[i] > l_limit);
      any |= outside[i];
    }
  if (!any) return ~0u;
  for (uint32_t i = 0; i < 32; i++) inside |= (outside[i] ^ 1) << i;
  return inside;
}

/* Addresses in pitch and linear layout; those of lanes outside are not used. */
PE_INLINE void pitch_addresses(const grid *g, const pe_surface_desc *d, uint64_t *addr) {
  uint64_t base = (uint64_t)(uintptr_t)d->base, pitch = d->pitch, slice = d->slice_stride, layers = d->layer_stride;
  uint64_t scale = g->scale;
  for (uint32_t i = 0; i < 32; i++) addr[i] = base + (uint32_t)g->x[i] * scale + (uint32_t)g->y[i] * pitch;
  if (g->z != zeros)
    for (uint32_t i = 0; i < 32; i++) addr[i] += (uint32_t)g->z[i] * slice;
  if (g->layer != zeros)
    for (uint32_t i = 0; i < 32; i++) addr[i] += (uint32_t)g->layer[i] * layers;
}

/* Block linear; T holds every offset of a layer. */
#define DEFINE_BLOCK_OFFSETS(T)                                                                             \
  PE_INLINE void block_offsets_##T(const grid *g, const pe_surface_desc *d, uint64_t *addr) {               \
    const pe_surface_level *level = &d->level[0];                                                           \
    uint32_t bh = level->block_h_log2, bd = level->block_d_log2, scale = g->scale;                          \
    T block = (T)pe_block_bytes(level), blocks_x = (T)level->blocks_x, blocks_y = (T)level->blocks_y;       \
    bool swizzled = d->gob_order == PE_GOB_SWIZZLED;                                                        \
    for (uint32_t i = 0; i < 32; i++) {                                                                     \
      T x = (T)(uint32_t)g->x[i] * scale, y = (uint32_t)g->y[i], z = (uint32_t)g->z[i];                     \
      T row = (z >> bd) * blocks_y + (y >> (3 + bh));                                                       \
      T gob = ((z & (((T)1 << bd) - 1)) << bh) + ((y >> 3) & (((T)1 << bh) - 1));                           \
      T swizzle = (x & 15) | (x & 16) << 1 | (x & 32) << 3 | (y & 1) << 4 | (y & 6) << 5;                   \
      T straight = (x & 63) | (y & 7) << 6;                                                                 \
      addr[i] = (row * blocks_x + (x >> 6)) * block + gob * PE_GOB_BYTES + (swizzled ? swizzle : straight); \
    }                                                                                                       \
  }
DEFINE_BLOCK_OFFSETS(uint32_t)
DEFINE_BLOCK_OFFSETS(uint64_t)

PE_INLINE void block_addresses(const grid *g, const pe_surface_desc *d, uint64_t *addr) {
  uint64_t base = (uint64_t)(uintptr_t)d->base;
  if (d->layer_stride <= UINT32_MAX)
    block_offsets_uint32_t(g, d, addr);
  else
    block_offsets_uint64_t(g, d, addr);
  for (uint32_t i = 0; i < 32; i++) addr[i] += base;
  if (g->layer != zeros)
    for (uint32_t i = 0; i < 32; i++) addr[i] += (uint32_t)g->layer[i] * d->layer_stride;
}

/* ---- the nearest texel ----------------------------------------------------------------------------------------------- */

/* Coordinates of lanes at the nearest texel. */
typedef struct nearest {
  int32_t x[32], y[32], z[32], layer[32];
} nearest;

PE_INLINE void move_inside(int32_t *to, const int32_t **from, uint32_t limit) {
  for (uint32_t i = 0; i < 32; i++) {
    int32_t value = (*from)[i] < 0 ? 0 : (*from)[i];
    to[i] = value > (int32_t)limit ? (int32_t)limit : value;
  }
  *from = to;
}

/* Clamp coordinates that are aligned: all become inside. */
PE_INLINE void clamp_lanes(grid *g, nearest *store) {
  uint32_t n = g->x_align + 1;
  move_inside(store->x, &g->x, g->x_limit / n * n);
  if (g->y != zeros) move_inside(store->y, &g->y, g->y_limit);
  if (g->z != zeros) move_inside(store->z, &g->z, g->z_limit);
  if (g->layer == zeros) return;
  for (uint32_t i = 0; i < 32; i++) { /* unsigned */
    uint32_t layer = (uint32_t)g->layer[i];
    store->layer[i] = (int32_t)(layer > g->layer_limit ? g->layer_limit : layer);
  }
  g->layer = store->layer;
}

PE_INLINE bool all_aligned(const grid *g, uint32_t mask) {
  uint32_t bits = 0;
  for (uint32_t i = 0; i < 32; i++) bits |= mask >> i & 1 ? (uint32_t)g->x[i] : 0;
  return !(bits & g->x_align);
}

#endif
