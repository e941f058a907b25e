/* surface_rows.c: surface accesses of warps whose texels form rows of neighbours, of which compiled code does the most by itself:
 * what it knows of a surface, and what it leaves to the runtime. */
#include <stddef.h>
#include <string.h>
#include "layout.h"
#include "place.h"
#include "surface_access.h"

/* A row of a surface, from the first texel of a group of lanes on. */
typedef struct row {
  const pe_surface_level *level;
  uint8_t *start; /* of the whole row */
  uint64_t x;     /* byte in it */
} row;

static const pe_surface_desc *plain_surface(const pe_warp *w, uint64_t handle, uint32_t geom) {
  const pe_su_context *ctx = pe_launch_surfaces(w);
  const pe_surface_desc *desc = ctx ? pe_surface_lookup(ctx->table, handle) : NULL;
  if (!desc || desc->state != PE_SURFACE_VALID || !pe_geom_fits(geom, desc->geom)) return NULL;
  return ctx->policy.layer_16bit && desc->layers > 1u << 16 ? NULL : desc;
}

static const pe_surface_desc NOWHERE;

const pe_surface_view *pe_surface_watched_view_of(const pe_warp *w, uint64_t handle, uint32_t geom) {
  const pe_surface_desc *desc = plain_surface(w, handle, geom);
  return desc ? &desc->view : &NOWHERE.view;
}

const pe_surface_view *pe_surface_view_of(const pe_warp *w, uint64_t handle, uint32_t geom) {
  return pe_texels_observed(w) ? &NOWHERE.view : pe_surface_watched_view_of(w, handle, geom);
}

const pe_surface_view *pe_surface_plain_view_of(const pe_warp *w, uint64_t handle, uint32_t geom) {
  const pe_su_context *ctx = pe_launch_surfaces(w);
  return ctx && pe_edges_are_plain(&ctx->policy) ? pe_surface_view_of(w, handle, geom) : &NOWHERE.view;
}

/* The surface of a view, NULL if it has none. */
static const pe_surface_desc *surface_of(const pe_surface_view *view) {
  if (view == &NOWHERE.view) return NULL;
  return (const pe_surface_desc *)((const char *)view - offsetof(pe_surface_desc, view));
}

/* ---- block linear: 16 bytes lie together in either GOB order --------------------------------------------------------- */

enum { PIECE = 16, MOST_BYTES = 32 * 16 };

/* A piece of a row, from a byte of it on. */
static inline uint8_t *piece_at(const pe_surface_desc *desc, const row *r, uint64_t at) {
  return r->start + pe_block_linear_x(r->level, desc->gob_order, at);
}

/* Load `bytes` bytes of a row; whole pieces are there.  The next block of threads mostly goes on where they end: of wide rows, that is
 * too far away for the CPU to see by itself. */
static inline void load_row(const pe_surface_desc *desc, const row *r, uint8_t *data, uint32_t bytes) {
  uint8_t pieces[MOST_BYTES + PIECE], *to = r->x % PIECE || bytes % PIECE ? pieces : data;
  uint64_t first = r->x / PIECE * PIECE, end = r->x + bytes;
  bool wide = bytes > PE_GOB_WIDTH;
  for (uint64_t at = first; at < end; at += PIECE) {
    if (wide && at % (2 * PIECE) == 0) __builtin_prefetch(piece_at(desc, r, at + bytes));
    memcpy(to + (at - first), piece_at(desc, r, at), PIECE);
  }
  if (to == pieces) memcpy(data, pieces + (r->x - first), bytes);
}

/* Store so many bytes, of accesses of `size` bytes. */
static inline void store_row(const pe_surface_desc *desc, const row *r, const uint8_t *data, uint32_t bytes, uint32_t size) {
  for (uint64_t at = r->x, end = r->x + bytes; at < end;) {
    uint8_t *texels = piece_at(desc, r, at);
    uint64_t piece = PIECE - at % PIECE, length = end - at < piece ? end - at : piece;
    if (length == PIECE)
      memcpy(texels, data, PIECE);
    else
      for (uint64_t i = 0; i < length; i += size) pe_move(texels + i, data + i, size);
    at += length;
    data += length;
  }
}

/* Find the rows of all groups; false unless all of them are inside and aligned. */
static bool find_rows(const pe_surface_desc *desc, const pe_surface_pattern *pattern, const uint32_t at[4], uint32_t size,
                      row *rows) {
  const pe_surface_level *level = &desc->level[0];
  uint32_t lanes = 32 / pattern->groups;
  for (uint32_t i = 0; i < pattern->groups; i++) {
    uint32_t lane = i * lanes;
    uint32_t x = at[0] + pattern->x[lane], y = at[1] + pattern->y[lane], z = at[2] + pattern->z[lane];
    uint32_t layer = at[3] + pattern->layer[lane];
    bool inside = (uint64_t)x + lanes * size <= level->row_bytes && y < level->height && z < level->depth;
    if (!inside || layer >= desc->layers || x & (size - 1) || (int32_t)x < 0 || (int32_t)(y | z) < 0) return false;
    uint64_t offset = layer * desc->layer_stride + pe_row_offset(desc, level, y, z);
    rows[i] = (row){level, desc->base + offset, x};
  }
  return true;
}

/* Move the lanes group by group; false: not such an access. */
static bool move_groups(const pe_surface_site *site, uint32_t mask, const pe_surface_desc *desc,
                        const pe_surface_pattern *pattern, const uint32_t at[4], uint8_t *data) {
  uint32_t size = (uint32_t)site->element * site->count, bytes = 32 / pattern->groups * size;
  row rows[4];
  if (desc->layout != PE_LAYOUT_BLOCK_LINEAR) return false;
  if ((mask != ~0u && site->kind != PE_SULD_B) || !find_rows(desc, pattern, at, size, rows)) return false;
  for (uint32_t i = 0; i < pattern->groups; i++, data += bytes)
    if (site->kind == PE_SULD_B)
      load_row(desc, &rows[i], data, bytes);
    else
      store_row(desc, &rows[i], data, bytes, size);
  return true;
}

/* ---- clamped edges ---------------------------------------------------------------------------------------------------- */

static inline uint32_t nearest(uint32_t coordinate, uint32_t extent) {
  int32_t at = (int32_t)coordinate;
  return at < 0 ? 0 : coordinate < extent ? coordinate : extent - 1;
}

/* Load `lanes` texels of `size` bytes from x on; beyond the ends of the row its ends repeat. */
static inline void load_clamped(const uint8_t *start, int64_t x, int64_t row_bytes, uint8_t *data, uint32_t lanes,
                                uint32_t size) {
  int64_t end = x + (int64_t)lanes * size, first = x < 0 ? 0 : x, last = end < row_bytes ? end : row_bytes;
  if (first < last) memcpy(data + (first - x), start + first, (size_t)(last - first));
  for (; x < end && x < 0; x += size, data += size) pe_move(data, start, size);
  if (x < last) data += last - x, x = last;
  for (; x < end; x += size, data += size) pe_move(data, start + row_bytes - size, size);
}

/* Load lanes of a pitch surface of which some are beyond an edge that repeats, group by group; false: not such an access. */
static bool load_edges(const pe_surface_site *site, const pe_surface_desc *desc, const pe_surface_pattern *pattern,
                       const uint32_t at[4], uint8_t *data) {
  uint32_t size = (uint32_t)site->element * site->count, lanes = 32 / pattern->groups;
  if (site->kind != PE_SULD_B || site->clamp != PE_CLAMP_NEAREST || site->flags & PE_SITE_UNSIGNED_X) return false;
  if (desc->layout == PE_LAYOUT_BLOCK_LINEAR) return false;
  const pe_surface_level *level = &desc->level[0];
  if (level->row_bytes < size || level->row_bytes % size || level->row_bytes > INT32_MAX) return false;
  if (level->height > INT32_MAX || level->depth > INT32_MAX) return false;
  for (uint32_t i = 0; i < 32; i += lanes) {
    int32_t x = (int32_t)(at[0] + pattern->x[i]);
    if (x & (int32_t)(size - 1) || x > INT32_MAX - (int32_t)(lanes * size)) return false;
    if (at[3] + pattern->layer[i] >= desc->layers) return false;
  }
  for (uint32_t i = 0; i < 32; i += lanes, data += lanes * size) {
    uint32_t y = nearest(at[1] + pattern->y[i], level->height), z = nearest(at[2] + pattern->z[i], level->depth);
    uint64_t offset = (at[3] + pattern->layer[i]) * desc->layer_stride + pe_row_offset(desc, level, y, z);
    load_clamped(desc->base + offset, (int32_t)(at[0] + pattern->x[i]), (int64_t)level->row_bytes, data, lanes, size);
  }
  return true;
}

void pe_surface_lanes(pe_warp *w, const pe_surface_site *site, uint32_t mask, uint64_t handle, const pe_surface_view *view,
                      const pe_surface_pattern *pattern, uint32_t x, uint32_t y, uint32_t z, uint32_t layer, void *data) {
  const pe_surface_desc *desc = surface_of(view);
  const uint32_t at[4] = {x, y, z, layer};
  int32_t lanes[3][32];
  uint32_t layers[32];
  uint64_t handles[32];
  if (!mask) return;
  bool told = pe_texels_observed(w);
  if (desc && !told && (move_groups(site, mask, desc, pattern, at, data) || load_edges(site, desc, pattern, at, data)))
    return;
  for (uint32_t i = 0; i < 32; i++) {
    lanes[0][i] = (int32_t)(x + pattern->x[i]);
    lanes[1][i] = (int32_t)(y + pattern->y[i]);
    lanes[2][i] = (int32_t)(z + pattern->z[i]);
    layers[i] = layer + pattern->layer[i];
    handles[i] = handle;
  }
  pe_surface(w, site, mask, handles, lanes[0], lanes[1], lanes[2], layers, data);
}
