/* ctm.c: inputs, outputs and the conditional test of a warp of CTM points, lanes ascending. */
#include "ctm.h"
#include "atomic.h"
#include "fault.h"
#include "format.h"
#include "internal.h"
#include "launch.h"
#include "place.h"
#include "surface_access.h"

#define CHANNELS 4
#define ALL_CHANNELS 15
#define ALPHA 3
#define ONE 0x3f800000
#define EXACT 0x1000000 /* floats hold all whole numbers up to it */

/* Which surfaces an instruction takes beside all that have a format of CTM. */
typedef enum need { ANY_FORMAT, ONE_CHANNEL, ONE_FLOAT } need;

/* A surface during one instruction. `plain`: it is there, fits, and its texels lie in rows. */
typedef struct target {
  pe_warp *w;
  uint32_t pos;
  uint64_t handle;
  pe_su_context *ctx;
  const pe_surface_desc *desc;
  pe_su_access access;
  bool plain;
  uint16_t kind; /* of access: PE_READ ... */
} target;

static noreturn void fail(const target *t, uint32_t kind, uint32_t lane, int64_t x, int64_t y) {
  const int64_t coord[4] = {x, y};
  uint32_t size = t->desc ? t->desc->elem_bytes : 0;
  pe_fault_surface(t->w, kind, t->pos, (int32_t)lane, (uint32_t)t->handle & 0xfffff, coord, size);
}

/* ---- formats and coordinates ---------------------------------------------------------------------------------------- */

/* UINT16_1, UINT8_4, FLOAT32_1, _2, _4; the integers are UNORM unless the policy says that they hold plain integers. */
static bool format_exists(const pe_surface_desc *d, bool integers) {
  if (d->kind == PE_KIND_FLOAT) return d->bits == 32;
  if (d->kind != (integers ? PE_KIND_UINT : PE_KIND_UNORM)) return false;
  return d->bits == 16 ? d->components == 1 : d->bits == 8 && d->order == PE_ORDER_RGBA;
}

static bool format_fits(const pe_surface_desc *d, bool integers, need need) {
  if (need != ANY_FORMAT && d->components != 1) return false;
  return format_exists(d, integers) && (need != ONE_FLOAT || d->kind == PE_KIND_FLOAT);
}

/* A launch without surfaces has an empty table. */
static target target_of(pe_warp *w, const pe_ctm_site *site, uint64_t handle, need need, uint16_t kind) {
  static pe_su_context none;
  pe_su_context *ctx = pe_launch_surfaces(w);
  if (!ctx) ctx = &none;
  const pe_surface_desc *d = pe_surface_lookup(ctx->table, handle);
  bool fits = d && format_fits(d, ctx->policy.float_to_uint, need);
  bool plain = fits && d->state == PE_SURFACE_VALID && d->geom == PE_GEOM_2D && d->layout == PE_LAYOUT_PITCH;
  pe_su_access access = {PE_GEOM_2D, PE_COORD_TEXEL, 0, PE_CLAMP_ZERO, fits ? PE_FORMAT_ANY : PE_FORMAT_NEVER};
  return (target){w, site->pos, handle, ctx, d, access, plain, kind};
}

static uint8_t *address_of(const pe_surface_desc *d, uint64_t x, uint64_t y) {
  return d->base + y * d->pitch + x * d->elem_bytes;
}

static uint8_t *find(const target *t, uint32_t lane, int64_t x, int64_t y) {
  if (t->plain) {
    bool inside = (uint64_t)x < t->desc->width && (uint64_t)y < t->desc->height;
    return inside ? address_of(t->desc, (uint64_t)x, (uint64_t)y) : NULL;
  }
  uint8_t *address;
  int status = pe_su_resolve(t->ctx, t->desc, &t->access, &(pe_su_coord){x, y, 0, 0, 0}, &address);
  if (status == PE_SU_NONE) return NULL;
  if (status != PE_OK) fail(t, (uint32_t)status, lane, x, y);
  return address;
}

static void tell(const target *t, uint16_t kind, uint32_t lane, const uint8_t *texel) {
  pe_access access = {.pos = t->pos, .space = PE_TEXEL, .kind = kind};
  pe_tell_lane(t->w, &access, lane, (uint64_t)(uintptr_t)texel, t->desc->elem_bytes);
}

/* The address of a texel that is going to be accessed, or NULL where there is none. */
static uint8_t *place(const target *t, uint32_t lane, int64_t x, int64_t y) {
  uint8_t *found = find(t, lane, x, y);
  if (found) tell(t, t->kind, lane, found);
  return found;
}

/* The whole part of a coordinate; for NaN, infinities and what no surface reaches one that lies outside, as its neighbours do. */
static int64_t coordinate(uint32_t bits) {
  float value = pe_float(bits);
  return value > -0x1p31f && value < 0x1p31f ? (int64_t)value : INT32_MIN;
}

static uint32_t component(const target *t, const uint8_t *texel, uint32_t index) {
  const pe_surface_desc *d = t->desc;
  uint32_t bytes = d->bits / 8, raw = 0;
  memcpy(&raw, texel + index * bytes, bytes);
  if (d->kind == PE_KIND_FLOAT) return raw;
  return pe_float_bits(t->ctx->policy.float_to_uint ? (float)raw : (float)raw / (float)((1u << d->bits) - 1));
}

static void read_texel(const target *t, const uint8_t *texel, uint32_t *v) {
  for (uint32_t i = 0; i < CHANNELS; i++) v[i] = i < t->desc->components ? component(t, texel, i) : i == ALPHA ? ONE : 0;
}

/* Converts components of texels, four each; those of floats stay. */
static void convert(const target *t, uint32_t *values, uint32_t n) {
  if (t->desc->kind != PE_KIND_FLOAT) pe_format_convert(&t->ctx->policy, t->desc, false, values, n);
}

/* Channels that are not sent keep what the memory has. */
static void write_texel(const target *t, uint8_t *texel, const uint32_t *converted, uint32_t channels) {
  static const pe_su_policy keep = {.missing_component = PE_MISSING_PRESERVE};
  uint32_t all = (1u << t->desc->components) - 1;
  if (t->desc->kind == PE_KIND_FLOAT && (channels & all) == all)
    pe_move(texel, converted, t->desc->elem_bytes);
  else
    pe_format_pack(&keep, t->desc, texel, converted, channels);
}

/* ---- inputs ----------------------------------------------------------------------------------------------------------- */

/* Elements (x+1,y), (x,y+1), (x+1,y+1), (x,y) of a single-channel input. */
static void load_2x2(const target *t, uint32_t lane, int64_t x, int64_t y, uint32_t *texel) {
  static const uint8_t dx[] = {1, 0, 1, 0}, dy[] = {0, 1, 1, 0};
  for (uint32_t i = 0; i < CHANNELS; i++) {
    const uint8_t *address = place(t, lane, x + dx[i], y + dy[i]);
    texel[i] = address ? component(t, address, 0) : 0;
  }
}

void pe_ctm_load(pe_warp *w, const pe_ctm_site *site, uint32_t mask, uint64_t handle, const uint32_t *x, const uint32_t *y,
                 uint32_t *texels) {
  target t = target_of(w, site, handle, ANY_FORMAT, PE_READ);
  bool neighbours = site->flags & PE_CTM_2X2 || (t.desc && t.desc->inp_2x2);
  if (neighbours) t = target_of(w, site, handle, ONE_CHANNEL, PE_READ);
  PE_FOR_LANES(i, mask) {
    uint32_t *texel = texels + CHANNELS * i;
    int64_t at_x = coordinate(x[i]), at_y = coordinate(y[i]);
    memset(texel, 0, CHANNELS * sizeof *texel);
    if (neighbours) {
      load_2x2(&t, i, at_x, at_y, texel);
      continue;
    }
    const uint8_t *address = place(&t, i, at_x, at_y);
    if (address) read_texel(&t, address, texel);
  }
}

/* ---- outputs ---------------------------------------------------------------------------------------------------------- */

void pe_ctm_store(pe_warp *w, const pe_ctm_site *site, uint32_t mask, uint64_t handle, const uint32_t *x, const uint32_t *y,
                  uint32_t *values, const uint32_t *channels) {
  target t = target_of(w, site, handle, ANY_FORMAT, PE_WRITE);
  if (t.access.format != PE_FORMAT_NEVER) convert(&t, values, CHANNELS * 32); /* else each lane faults */
  PE_FOR_LANES(i, mask) {
    uint8_t *address = channels[i] ? place(&t, i, x[i], y[i]) : NULL;
    if (address) write_texel(&t, address, values + CHANNELS * i, channels[i]);
  }
}

/* ---- UMRT writes ------------------------------------------------------------------------------------------------------ */

static bool is_zero(uint32_t bits) { return (bits & 0x7f800000) == 0; }

/* The operands of one instruction, a word for each lane. */
typedef struct points {
  const uint32_t *red, *green, *blue, *alpha, *channels;
} points;

/* One point after the other: stops at the first that is wrong in strict mode. */
static void write_points(const target *t, const pe_ctm_site *site, const points *p, uint32_t mask) {
  bool strict = t->ctx->policy.strict;
  uint32_t group = ~0u;
  int64_t x = 0, y = 0;
  PE_FOR_LANES(i, mask) {
    int64_t own_x = coordinate(p->green[i]), own_y = coordinate(p->blue[i]);
    if (!p->channels[i]) continue;
    if (p->channels[i] != ALL_CHANNELS) {
      if (strict) fail(t, PE_CTM_PARTIAL, i, own_x, own_y);
      __atomic_fetch_add(&t->ctx->counts[PE_CTM_SKIPPED], 1, __ATOMIC_RELAXED);
      continue;
    }
    if (strict && !is_zero(p->alpha[i])) fail(t, PE_CTM_ALPHA, i, own_x, own_y);
    if (!(site->flags & PE_CTM_SAME_INDEX) || i / site->group != group)
      x = own_x, y = own_y;
    else if (strict && (x != own_x || y != own_y))
      fail(t, PE_CTM_INDEX, i, own_x, own_y);
    group = i / site->group;
    uint8_t *address = place(t, i, x, y);
    if (address)
      pe_atom_update(address, site->op, PE_TYPE_B32, 0, &p->red[i], NULL, NULL, 1);
    else
      __atomic_fetch_add(&t->ctx->counts[PE_CTM_DROPPED], 1, __ATOMIC_RELAXED);
  }
}

/* Give the lanes of each group the indices of the first of them in mask. */
static void share_indices(uint32_t group, uint32_t mask, const points *p, uint32_t *green, uint32_t *blue) {
  uint32_t first = 0, seen = ~0u;
  PE_FOR_LANES(i, mask) {
    if (i / group != seen) first = i, seen = i / group;
    green[i] = p->green[first], blue[i] = p->blue[first];
  }
}

/* The lanes of mask, all channels of which are written, on a plain target: addresses in loops over all lanes. */
PE_WIDE static void scatter(const target *t, const uint32_t *red, const uint32_t *green, const uint32_t *blue,
                            uint32_t mask) {
  const pe_surface_desc *d = t->desc;
  float width = (float)d->width, height = (float)d->height;
  uint64_t base = (uint64_t)(uintptr_t)d->base, pitch = d->pitch, addr[32];
  uint32_t inside = 0;
  for (uint32_t i = 0; i < 32; i++) {
    float x = pe_float(green[i]), y = pe_float(blue[i]);
    bool in = (x > -1) & (x < width) & (y > -1) & (y < height);
    addr[i] = base + (uint32_t)(int32_t)(in ? y : 0) * pitch + (uint32_t)(int32_t)(in ? x : 0) * 4u;
    inside |= (uint32_t)in << i;
  }
  if ((inside & mask) == PE_ALL_LANES)
    for (uint32_t i = 0; i < 32; i++) memcpy((void *)(uintptr_t)addr[i], red + i, 4);
  else
    PE_FOR_LANES(i, inside & mask) memcpy((void *)(uintptr_t)addr[i], red + i, 4);
  uint32_t dropped = (uint32_t)__builtin_popcount(mask & ~inside);
  if (dropped) __atomic_fetch_add(&t->ctx->counts[PE_CTM_DROPPED], dropped, __ATOMIC_RELAXED);
}

/* The lanes of mask with all channels, when no lane has some; false: a lane needs a closer look. */
static bool whole_lanes(const uint32_t *channels, uint32_t *mask) {
  uint32_t all = 0, some = 0;
  for (uint32_t i = 0; i < 32; i++) {
    all |= (uint32_t)(channels[i] == ALL_CHANNELS) << i;
    some |= (uint32_t)(channels[i] != 0) << i;
  }
  bool whole = !((some ^ all) & *mask);
  *mask &= all;
  return whole;
}

void pe_ctm_umrt(pe_warp *w, const pe_ctm_site *site, uint32_t mask, uint64_t handle, const uint32_t *red,
                 const uint32_t *green, const uint32_t *blue, const uint32_t *alpha, const uint32_t *channels) {
  target t = target_of(w, site, handle, ONE_FLOAT, PE_UPDATE);
  points p = {red, green, blue, alpha, channels};
  uint32_t writing = mask, shared[2][32];
  bool simple =
      t.plain && !t.ctx->policy.strict && site->op == PE_ATOM_XCHG && t.desc->width <= EXACT && t.desc->height <= EXACT;
  if (!simple || pe_observed(w) || !whole_lanes(channels, &writing)) {
    write_points(&t, site, &p, mask);
    return;
  }
  if (site->flags & PE_CTM_SAME_INDEX) {
    share_indices(site->group, writing, &p, shared[0], shared[1]);
    green = shared[0], blue = shared[1];
  }
  scatter(&t, red, green, blue, writing);
}

/* ---- the conditional test --------------------------------------------------------------------------------------------- */

/* Subnormals count as zero. */
static float compared(uint32_t bits) { return is_zero(bits) ? 0 : pe_float(bits); }

static bool passes(uint32_t condition, float v, float b) {
  switch (condition) {
    case 0: return false;
    case 1: return v < b;
    case 2: return v <= b;
    case 3: return v == b;
    case 4: return v >= b;
    case 5: return v > b;
    case 6: return v != b;
    default: return true;
  }
}

uint32_t pe_ctm_test(pe_warp *w, const pe_ctm_site *site, uint32_t mask, uint64_t handle, const uint32_t *x,
                     const uint32_t *y, const uint32_t *values) {
  target t = target_of(w, site, handle, ANY_FORMAT, PE_READ);
  uint32_t passed = 0;
  PE_FOR_LANES(i, mask) {
    uint8_t *address = place(&t, i, x[i], y[i]);
    uint32_t b[CHANNELS] = {0}, v[CHANNELS] = {values[i]};
    if (address) read_texel(&t, address, b);
    if (!passes(site->condition, compared(values[i]), compared(b[0]))) continue;
    passed |= 1u << i;
    if (!address || !(site->flags & PE_CTM_UPDATE)) continue;
    convert(&t, v, CHANNELS);
    tell(&t, PE_WRITE, i, address);
    write_texel(&t, address, v, 1);
  }
  return passed;
}
