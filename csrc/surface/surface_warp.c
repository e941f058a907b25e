/* surface_warp.c: one surface instruction of a warp.
 *
 * Lanes with the same handle form a run.  A run's descriptor is looked up once; addresses of lanes inside the surface are
 * computed by plain loops over all 32 lanes; only lanes outside that may fault go through pe_su_resolve, one by one.
 */
#include "atomic.h"
#include "exclusive.h"
#include "fault.h"
#include "internal.h"
#include "launch.h"
#include "place.h"
#include "bisect.h"
#include "twin.h"
#include "surface_grid.h"

/* One instruction. */
typedef struct job {
  pe_warp *w;
  const pe_surface_site *site;
  pe_su_context *ctx;
  const int32_t *x, *y, *z;
  const uint32_t *layer;
  uint8_t *data;
  uint32_t op;
  uint32_t bytes;        /* of a lane in data */
  const uint32_t *level; /* or NULL: the first level */
  const uint8_t *b;      /* second operand, or NULL */
  uint8_t *old;          /* results, or NULL */
} job;

/* Its lanes on one surface. */
typedef struct run {
  const pe_surface_desc *desc;
  pe_su_access access;
  uint32_t mask; /* lanes to execute */
  uint32_t live; /* of them, those with memory */
  uint32_t size; /* bytes of a lane's access */
  uint8_t *data; /* what it moves, one lane behind another; NULL: texels are put together where they lie */
  uint64_t addr[32];
} run;

/* ---- addresses ------------------------------------------------------------------------------------------------------ */

PE_INLINE bool unsigned_yz(const job *j) { return j->site->kind == PE_SU_TYPED; }
PE_INLINE bool unsigned_x(const job *j) { return unsigned_yz(j) || j->site->flags & PE_SITE_UNSIGNED_X; }

/* The largest coordinate that is inside: one with a sign bit is outside unless it is read as unsigned. */
PE_INLINE uint32_t limit_of(uint64_t last, bool is_unsigned) {
  uint32_t most = is_unsigned ? UINT32_MAX : INT32_MAX;
  return last > most ? most : (uint32_t)last;
}

PE_INLINE grid grid_of(const job *j, const run *r) {
  const pe_surface_desc *d = r->desc;
  const pe_surface_level *level = &d->level[0];
  bool bytes = r->access.coord == PE_COORD_BYTE;
  uint32_t n = r->access.coord == PE_COORD_TEXEL ? d->elem_bytes : r->access.size;
  return (grid){
    .x = j->x,
    .y = pe_geom_has_y(d->geom) ? j->y : zeros,
    .z = pe_geom_has_z(d->geom) ? j->z : zeros,
    .layer = pe_geom_is_array(d->geom) ? (const int32_t *)j->layer : zeros,
    .x_limit = limit_of(bytes ? level->row_bytes - n : level->row_bytes / n - 1, unsigned_x(j)),
    .y_limit = limit_of(d->height - 1, unsigned_yz(j)),
    .z_limit = limit_of(d->depth - 1, unsigned_yz(j)),
    .layer_limit = d->layers - 1,
    .scale = bytes ? 1 : n,
    .x_align = bytes ? n - 1 : 0,
  };
}

/* ---- lanes side by side in one row, or half of them in each of two ---------------------------------------------------- */

enum { HALF = PE_WARP_LANES / 2 };

/* Are half of the lanes neighbours in one row, from lane `first` on? */
PE_INLINE bool in_one_row(const grid *g, uint32_t step, uint32_t first) {
  uint32_t differ = 0, start = (uint32_t)g->x[first], y = (uint32_t)g->y[first];
  uint32_t z = (uint32_t)g->z[first], layer = (uint32_t)g->layer[first];
  for (uint32_t i = 0; i < HALF; i++) {
    differ |= (uint32_t)g->x[first + i] - (start + i * step);
    differ |= (uint32_t)g->y[first + i] ^ y;
  }
  if (g->z != zeros || g->layer != zeros)
    for (uint32_t i = 0; i < HALF; i++) {
      differ |= (uint32_t)g->z[first + i] ^ z;
      differ |= (uint32_t)g->layer[first + i] ^ layer;
    }
  return !differ && start <= UINT32_MAX - HALF * step && lane_inside(g, first) && lane_inside(g, first + HALF - 1);
}

PE_INLINE void move_half(const job *j, const run *r, const grid *g, uint32_t first) {
  uint64_t x = (uint64_t)(uint32_t)g->x[first] * g->scale;
  uint8_t *row = r->desc->base +
                 pe_surface_offset(r->desc, 0, x, (uint32_t)g->y[first], (uint32_t)g->z[first], (uint32_t)g->layer[first]);
  uint8_t *data = r->data + (size_t)first * r->size;
  if (j->site->kind == PE_SULD_B)
    memcpy(data, row, (size_t)HALF * r->size);
  else
    memcpy(row, data, (size_t)HALF * r->size);
}

/* Move all lanes, neighbours in rows of a pitch surface; false: not such an access. */
PE_INLINE bool move_rows(const job *j, const run *r, const grid *g) {
  uint32_t step = r->size / g->scale;
  if (r->mask != PE_ALL_LANES || r->desc->layout == PE_LAYOUT_BLOCK_LINEAR || j->site->kind > PE_SUST_P) return false;
  if (!r->data || pe_texels_observed(j->w)) return false; /* which is told in execute */
  if (!in_one_row(g, step, 0) || !in_one_row(g, step, HALF)) return false;
  move_half(j, r, g, 0);
  move_half(j, r, g, HALF);
  return true;
}

/* ---- execution ------------------------------------------------------------------------------------------------------ */

#define FOR_SIZES(size, MOVE) \
  switch (size) {             \
    case 1: MOVE(1); break;   \
    case 2: MOVE(2); break;   \
    case 4: MOVE(4); break;   \
    case 8: MOVE(8); break;   \
    default: MOVE(16); break; \
  }

PE_INLINE void *at(const run *r, uint32_t lane) { return (void *)(uintptr_t)r->addr[lane]; }

PE_INLINE void load_lanes(const run *r) {
  uint8_t *data = r->data;
  PE_FOR_LANES(i, r->mask & ~r->live) memset(data + i * r->size, 0, r->size);
#define MOVE(N)                                                          \
  if (r->live == PE_ALL_LANES)                                           \
    for (uint32_t i = 0; i < 32; i++) memcpy(data + i * N, at(r, i), N); \
  else                                                                   \
    PE_FOR_LANES(i, r->live) memcpy(data + i * N, at(r, i), N)
  FOR_SIZES(r->size, MOVE)
#undef MOVE
}

PE_INLINE void store_lanes(const run *r) {
  const uint8_t *data = r->data;
#define MOVE(N)                                                          \
  if (r->live == PE_ALL_LANES)                                           \
    for (uint32_t i = 0; i < 32; i++) memcpy(at(r, i), data + i * N, N); \
  else                                                                   \
    PE_FOR_LANES(i, r->live) memcpy(at(r, i), data + i * N, N)
  FOR_SIZES(r->size, MOVE)
#undef MOVE
}

enum { MOST_TEXEL_BYTES = 16 };

PE_INLINE void convert_lanes(const job *j, const run *r, uint32_t v[4 * PE_WARP_LANES]) {
  memcpy(v, j->data, (size_t)PE_WARP_LANES * j->bytes);
  pe_format_convert(&j->ctx->policy, r->desc, j->site->flags & PE_SITE_MEASURED, v, PE_WARP_LANES * j->site->count);
}

/* The texels of formatted stores, if they fill them. */
PE_INLINE void format_texels(const job *j, run *r, uint8_t texels[PE_WARP_LANES * MOST_TEXEL_BYTES]) {
  uint32_t v[4 * PE_WARP_LANES], count = j->site->count;
  r->data = NULL;
  if (!r->desc || r->desc->state != PE_SURFACE_VALID || !pe_format_fills(&j->ctx->policy, r->desc, count)) return;
  convert_lanes(j, r, v);
  pe_format_pack_lanes(&j->ctx->policy, r->desc, texels, v, count);
  r->data = texels;
}

/* Components that are given go to the texels, lane i's to texel[i]. */
static void format_lanes(const job *j, const run *r, void *const texel[PE_WARP_LANES]) {
  uint32_t v[4 * PE_WARP_LANES], count = j->site->count, channels = (1u << count) - 1;
  convert_lanes(j, r, v);
  PE_FOR_LANES(i, r->live) pe_format_pack(&j->ctx->policy, r->desc, texel[i], v + i * count, channels);
}

static void store_components(const job *j, const run *r) {
  void *texel[PE_WARP_LANES];
  for (uint32_t i = 0; i < PE_WARP_LANES; i++) texel[i] = at(r, i);
  format_lanes(j, r, texel);
}

/* The texels that stores of components will leave, one behind another. */
static void preview_components(const job *j, const run *r, uint8_t *values) {
  void *texel[PE_WARP_LANES];
  for (uint32_t i = 0; i < PE_WARP_LANES; i++) texel[i] = values + i * r->size;
  PE_FOR_LANES(i, r->live) memcpy(texel[i], at(r, i), r->size);
  format_lanes(j, r, texel);
}

static void reduce_lanes(const job *j, const run *r) {
  pe_atom_lanes lanes;
  lanes.op = pe_su_signed_op(r->desc, j->op, j->site->type, &(uint32_t){0});
  lanes.type = j->site->type;
  lanes.flags = j->site->flags & ~(uint32_t)PE_SITE_FLAGS;
  if (j->ctx->policy.fminmax_keep_old) lanes.flags |= PE_ATOM_KEEP_OLD;
  lanes.count = 1;
  lanes.one_address = false;
  lanes.mask = r->live;
  lanes.a = j->data;
  lanes.b = j->b;
  lanes.old = j->old;
  if (j->old)
    PE_FOR_LANES(i, r->mask & ~r->live) memset(j->old + i * j->bytes, 0, j->bytes);
  lanes.addr = r->addr;
  if (j->site->flags & PE_SITE_SUMS) lanes.mask &= ~pe_twin_add(j->w, &lanes, r->live);
  if (!lanes.mask) return;
  int exclusive = pe_exclusive_begin(j->w);
  lanes.locked = !exclusive;
  pe_atom_run(&lanes);
  if (exclusive) pe_exclusive_end(j->w);
}

PE_INLINE void tell(const job *j, const run *r) {
  enum { REDUCES = PE_UPDATE | PE_STRONG };
  static const uint16_t kinds[] = {PE_READ, PE_WRITE, PE_WRITE, REDUCES, REDUCES, REDUCES};
  pe_access access = {.pos = j->site->pos, .space = PE_TEXEL, .kind = kinds[j->site->kind]};
  uint8_t values[PE_WARP_LANES * MOST_TEXEL_BYTES];
  if (!r->live || !pe_texels_observed(j->w)) return;
  if (kinds[j->site->kind] == PE_WRITE) access.values = r->data ? r->data : values;
  if (access.values == values) preview_components(j, r, values);
  pe_tell_texels(j->w, &access, r->live, r->addr, r->size, r->desc);
}

/* Without live lanes there may be no surface either. */
PE_INLINE void execute(const job *j, const run *r) {
  tell(j, r);
  switch (j->site->kind) {
    case PE_SULD_B: load_lanes(r); break;
    case PE_SUST_B: store_lanes(r); break;
    case PE_SUST_P:
      if (r->data)
        store_lanes(r);
      else if (r->live)
        store_components(j, r);
      break;
    default: reduce_lanes(j, r); break;
  }
}

/* ---- one run -------------------------------------------------------------------------------------------------------- */

/* How many of u, v and r a surface has. */
PE_INLINE uint32_t uvr_axes(const pe_surface_desc *desc) {
  return 1 + pe_geom_has_y(desc->geom) + pe_geom_has_z(desc->geom) + pe_geom_is_array(desc->geom);
}

/* Coordinates u, v and r become what they mean on the surface. */
PE_INLINE void place_uvr(job *j, const pe_surface_desc *desc) {
  uint32_t axes = uvr_axes(desc);
  if (axes < 2) j->y = zeros;
  if (axes < 3) j->z = zeros;
  if (!pe_geom_is_array(desc->geom)) return;
  const int32_t **layer = pe_geom_has_y(desc->geom) ? &j->z : &j->y;
  j->layer = (const uint32_t *)*layer;
  *layer = zeros;
}

/* Does the instruction give just the coordinates that the surface has, or may it give more, or fewer? */
PE_INLINE bool uvr_fits(const job *j, const pe_surface_desc *desc) {
  uint32_t axes = uvr_axes(desc);
  bool surplus = (j->y != zeros && axes < 2) || (j->z != zeros && axes < 3);
  bool missing = (j->y == zeros && axes > 1) || (j->z == zeros && axes > 2);
  return (!surplus || j->site->flags & PE_SITE_SURPLUS_UVR) && (!missing || j->site->flags & PE_SITE_MISSING_UVR);
}

/* Strict mode: integer operations on integers, those of floats on floats. */
PE_INLINE bool kind_fits(const job *j, const pe_surface_desc *desc) {
  bool integer = desc->kind == PE_KIND_UINT || desc->kind == PE_KIND_SINT;
  return !j->ctx->policy.strict || (pe_op_is_float(j->op) ? desc->kind == PE_KIND_FLOAT : integer);
}

PE_INLINE pe_su_access access_of(const job *j, const pe_surface_desc *desc) {
  static const uint32_t units[] = {PE_COORD_BYTE, PE_COORD_BYTE,   PE_COORD_TEXEL,
                                   PE_COORD_BYTE, PE_COORD_SCALED, PE_COORD_TEXEL};
  const pe_surface_site *site = j->site;
  pe_su_access access = {site->geom, units[site->kind], j->bytes, site->clamp, PE_FORMAT_ANY};
  if (site->kind == PE_SU_TYPED) {
    access.format = !desc || kind_fits(j, desc) ? PE_FORMAT_SINGLE : PE_FORMAT_NEVER;
    if (desc && site->flags & PE_SITE_UVR && !uvr_fits(j, desc)) access.geom = PE_GEOM_NEVER;
  } else if (site->kind == PE_SUST_P)
    access.format = PE_FORMAT_CONVERTED;
  else if (site->kind >= PE_SURED_B)
    pe_su_signed_op(desc, j->op, site->type, &access.format);
  return access;
}

static int64_t widened(int32_t value, bool is_unsigned) { return is_unsigned ? (int64_t)(uint32_t)value : value; }

static pe_su_coord coord_of(const job *j, uint32_t lane) {
  return (pe_su_coord){widened(j->x[lane], unsigned_x(j)), widened(j->y[lane], unsigned_yz(j)),
                       widened(j->z[lane], unsigned_yz(j)), j->layer[lane], j->level ? j->level[lane] : 0};
}

/* How many of the lanes fault. */
static uint32_t failing(const job *j, const run *r, uint32_t lanes) {
  uint32_t count = 0;
  PE_FOR_LANES(i, lanes) {
    pe_su_coord coord = coord_of(j, i);
    uint8_t *addr;
    int status = pe_su_resolve(j->ctx, r->desc, &r->access, &coord, &addr);
    count += status != PE_OK && status != PE_SU_NONE;
  }
  return count;
}

/* Of the lanes outside the surface, all before `lane` have gone ahead. */
static void raise_fault(const job *j, const run *r, uint64_t handle, uint32_t outside, uint32_t lane, uint32_t kind) {
  pe_su_coord at = coord_of(j, lane);
  pe_record fault = {.kind = kind,
                     .pos = j->site->pos,
                     .lane = (int32_t)lane,
                     .size = r->size,
                     .channel = j->site->channel,
                     .slot = (uint32_t)handle & 0xfffff,
                     .has_coordinates = 1,
                     .coordinates = {at.x, at.y, at.z, at.layer}};
  fault.others = failing(j, r, outside & ~((2u << lane) - 1));
  pe_fault_at(j->w, &fault);
}

/* Resolve the lanes of `outside` in order, up to the first that faults: returns its kind and ends the run before it. */
static int resolve_lanes(const job *j, run *r, uint32_t outside, uint32_t *lane) {
  PE_FOR_LANES(i, outside) {
    pe_su_coord coord = coord_of(j, i);
    uint8_t *addr;
    int status = pe_su_resolve(j->ctx, r->desc, &r->access, &coord, &addr);
    if (status == PE_OK) {
      r->addr[i] = (uint64_t)(uintptr_t)addr;
      continue;
    }
    r->live &= ~(1u << i);
    if (status == PE_SU_NONE) continue;
    r->mask &= (1u << i) - 1;
    r->live &= r->mask;
    *lane = i;
    return status;
  }
  return PE_OK;
}

/* May the loops over lanes take this run?  Its surface takes the access and the policies are the default ones. */
PE_INLINE bool is_plain(const job *j, const run *r) {
  const pe_surface_desc *d = r->desc;
  const pe_su_policy *p = &j->ctx->policy;
  if (!d || d->state != PE_SURFACE_VALID || !pe_geom_fits(r->access.geom, d->geom)) return false;
  if (r->access.format == PE_FORMAT_NEVER) return false;
  if (r->access.format == PE_FORMAT_CONVERTED && d->order == PE_ORDER_RGB10A2) return false;
  if (r->access.format == PE_FORMAT_SINGLE && (d->components != 1 || d->elem_bytes != r->access.size)) return false;
  PE_FOR_LANES(i, j->level ? r->mask : 0)
    if (j->level[i]) return false;
  if (r->access.format == PE_FORMAT_INTEGER && d->kind != PE_KIND_UINT && d->kind != PE_KIND_SINT) return false;
  if (!pe_edges_are_plain(p)) return false;
  return r->access.coord == PE_COORD_TEXEL || d->level[0].row_bytes >= r->access.size;
}

/* What the clamp mode makes of lanes of a plain run that are outside; returns those that have to be resolved. */
PE_INLINE uint32_t settle(const job *j, run *r, grid *g, uint32_t outside, nearest *store) {
  if (!outside || r->access.clamp == PE_CLAMP_TRAP || !all_aligned(g, outside)) return outside;
  if (r->access.clamp == PE_CLAMP_ZERO) {
    r->live &= ~outside;
    return 0;
  }
  if (unsigned_x(j)) return outside;
  clamp_lanes(g, store);
  return 0;
}

/* The leading lanes of mask that share a surface; returns the rest. */
PE_WIDEST static uint32_t run_lanes(const job *j, const uint64_t *handle, uint32_t lanes) {
  uint32_t mask = pe_same_handle(handle, lanes), outside = mask, lane = 0;
  uint64_t first = handle[__builtin_ctz(mask)];
  run r; /* addr stays unset where no lane is live */
  r.desc = pe_surface_lookup(j->ctx->table, first);
  r.mask = r.live = mask;
  r.access = access_of(j, r.desc);
  r.size = r.access.coord == PE_COORD_TEXEL && r.desc ? r.desc->elem_bytes : r.access.size;
  r.data = j->data;
  nearest clamped;
  uint8_t texels[PE_WARP_LANES * MOST_TEXEL_BYTES];
  if (j->site->kind == PE_SUST_P) format_texels(j, &r, texels);
  job placed;
  if (r.desc && j->site->flags & PE_SITE_UVR) {
    placed = *j;
    place_uvr(&placed, r.desc);
    j = &placed;
  }
  if (is_plain(j, &r)) {
    grid g = grid_of(j, &r);
    if (move_rows(j, &r, &g)) return lanes & ~mask;
    outside = settle(j, &r, &g, mask & ~lanes_inside(&g), &clamped);
    if (r.desc->layout == PE_LAYOUT_BLOCK_LINEAR)
      block_addresses(&g, r.desc, r.addr);
    else
      pitch_addresses(&g, r.desc, r.addr);
  }
  int status = outside ? resolve_lanes(j, &r, outside, &lane) : PE_OK;
  execute(j, &r);
  if (status != PE_OK) raise_fault(j, &r, first, outside, lane, (uint32_t)status);
  return lanes & ~mask;
}

/* ---- entry points --------------------------------------------------------------------------------------------------- */

/* A launch without surfaces has an empty table. */
static pe_su_context *context_of(const pe_warp *w) {
  static pe_su_context none;
  pe_su_context *ctx = pe_launch_surfaces(w);
  return ctx ? ctx : &none;
}

void pe_surface(pe_warp *w, const pe_surface_site *site, uint32_t mask, const uint64_t *handle, const int32_t *x,
                const int32_t *y, const int32_t *z, const uint32_t *layer, void *data) {
  job j = {w,
           site,
           context_of(w),
           x,
           y ? y : zeros,
           z ? z : zeros,
           layer ? layer : (const uint32_t *)zeros,
           data,
           site->op,
           (uint32_t)site->element * site->count,
           NULL,
           NULL,
           NULL};
  bool reduces = site->kind >= PE_SURED_B;
  if (reduces && mask && !pe_atom_legal(site->op, site->type))
    pe_fault(w, PE_ILLEGAL_OP_TYPE, site->pos, -1, PE_GLOBAL, 0, j.bytes);
  while (mask) mask = run_lanes(&j, handle, mask);
}

void pe_typed_atomic(pe_warp *w, const pe_surface_site *site, uint32_t mask, const pe_typed_lanes *lanes) {
  const int32_t *x = (const int32_t *)lanes->x, *y = (const int32_t *)lanes->y, *z = (const int32_t *)lanes->z;
  job j = {w,
           site,
           context_of(w),
           x,
           y ? y : zeros,
           z ? z : zeros,
           lanes->layer ? lanes->layer : (const uint32_t *)zeros,
           (uint8_t *)(uintptr_t)lanes->a,
           site->op,
           site->element,
           lanes->level,
           lanes->b,
           lanes->old};
  while (mask) mask = run_lanes(&j, lanes->handle, mask);
}

/* The entry of a header in its pool, or NULL. */
static const uint32_t *find_header(const uint32_t *pool, uint32_t index) {
  const uint32_t *entries = pool + 1;
  size_t found = PE_FIRST_NOT(middle, pool[0], entries[2 * middle] < index);
  return found < pool[0] && entries[2 * found] == index ? &entries[2 * found] : NULL;
}

void pe_headers(pe_warp *w, const uint32_t *pool, uint32_t n, const uint32_t *word, uint64_t *handle) {
  const uint64_t *handles = (const uint64_t *)(uintptr_t)w->handles;
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t *entry = find_header(pool, word[i] & 0xfffff);
    handle[i] = entry ? handles[entry[1]] : 0;
  }
}

static const pe_surface_desc *lookup(const pe_su_context *ctx, uint64_t handle) {
  return pe_surface_lookup(ctx->table, handle);
}

void pe_suq(pe_warp *w, uint32_t pos, uint32_t which, uint32_t mask, const uint64_t *handle, uint32_t *result) {
  pe_su_context *ctx = context_of(w);
  static const int64_t nowhere[4];
  PE_FOR_LANES(i, mask) {
    const pe_surface_desc *desc = lookup(ctx, handle[i]);
    if (!desc) pe_fault_surface(w, PE_INVALID_SURFACE, pos, (int32_t)i, (uint32_t)handle[i] & 0xfffff, nowhere, 0);
    result[i] = pe_su_query(ctx, desc, which);
  }
}

uint32_t pe_is_surface(pe_warp *w, uint32_t mask, const uint64_t *handle) {
  const pe_su_context *ctx = context_of(w);
  uint32_t live = 0;
  PE_FOR_LANES(i, mask) {
    const pe_surface_desc *desc = lookup(ctx, handle[i]);
    if (desc && desc->state != PE_SURFACE_UNBOUND) live |= 1u << i;
  }
  return live;
}
