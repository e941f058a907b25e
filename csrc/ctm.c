/* ctm.c: inputs, outputs and the conditional test of a warp of CTM points, lanes ascending. */
#include "ctm.h"
#include "format.h"
#include "internal.h"
#include "surface_access.h"

#define CHANNELS 4
#define ALL_CHANNELS 15
#define ALPHA 3
#define ONE 0x3f800000

#define FOR_LANES(i, mask) for (uint32_t rest = (mask), i; rest && (i = (uint32_t)__builtin_ctz(rest), 1); rest &= rest - 1)

/* A surface during one instruction. */
typedef struct target {
  pe_warp *w;
  uint32_t pos;
  uint64_t handle;
  pe_su_context *ctx;
  const pe_surface_desc *desc;
} target;

/* A launch without surfaces has an empty table. */
static target target_of(pe_warp *w, const pe_ctm_site *site, uint64_t handle) {
  static pe_su_context none;
  pe_su_context *ctx = pe_launch_surfaces(w);
  if (!ctx) ctx = &none;
  return (target){w, site->pos, handle, ctx, pe_surface_lookup(ctx->table, handle)};
}

static noreturn void fail(const target *t, uint32_t kind, uint32_t lane, int64_t x, int64_t y) {
  const int64_t coord[4] = {x, y};
  uint32_t size = t->desc ? t->desc->elem_bytes : 0;
  pe_fault_surface(t->w, kind, t->pos, (int32_t)lane, (uint32_t)t->handle & 0xfffff, coord, size);
}

/* ---- formats and coordinates ---------------------------------------------------------------------------------------- */

/* UINT16_1, UINT8_4, FLOAT32_1, _2, _4; the integers are UNORM unless the policy says that they hold plain integers. */
static bool format_exists(const target *t) {
  const pe_surface_desc *d = t->desc;
  if (d->kind == PE_KIND_FLOAT) return d->bits == 32;
  bool integers = t->ctx->policy.float_to_uint;
  if (d->kind != (integers ? PE_KIND_UINT : PE_KIND_UNORM)) return false;
  return d->bits == 16 ? d->components == 1 : d->bits == 8 && d->order == PE_ORDER_RGBA;
}

static bool is_single_float(const pe_surface_desc *d) {
  return d->kind == PE_KIND_FLOAT && d->bits == 32 && d->components == 1;
}

/* The address of a texel, or NULL where there is none. */
static uint8_t *place(const target *t, uint32_t lane, int64_t x, int64_t y) {
  static const pe_su_access access = {PE_GEOM_2D, PE_COORD_TEXEL, 0, PE_CLAMP_ZERO, PE_FORMAT_ANY};
  uint8_t *address;
  int status = pe_su_resolve(t->ctx, t->desc, &access, &(pe_su_coord){x, y, 0, 0, 0}, &address);
  if (status == PE_SU_NONE) return NULL;
  if (status == PE_OK && !format_exists(t)) status = PE_FORMAT_MISMATCH;
  if (status != PE_OK) fail(t, (uint32_t)status, lane, x, y);
  return address;
}

/* The whole part of a coordinate; -1, which lies outside, for NaN, infinities and what no surface reaches. */
static int64_t coordinate(uint32_t bits) {
  float value = pe_float(bits);
  return value > -0x1p31f && value < 0x1p31f ? (int64_t)value : -1;
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

static void write_texel(const target *t, uint8_t *texel, const uint32_t *values, uint32_t channels) {
  pe_su_policy policy = t->ctx->policy;
  policy.missing_component = PE_MISSING_PRESERVE;
  uint32_t v[CHANNELS];
  memcpy(v, values, sizeof v);
  pe_format_convert(&policy, t->desc, v, CHANNELS);
  pe_format_pack(&policy, t->desc, texel, v, channels);
}

/* ---- inputs ----------------------------------------------------------------------------------------------------------- */

/* Elements (x+1,y), (x,y+1), (x+1,y+1), (x,y) of a single-channel input. */
static void load_2x2(const target *t, uint32_t lane, int64_t x, int64_t y, uint32_t *texel) {
  static const uint8_t dx[] = {1, 0, 1, 0}, dy[] = {0, 1, 1, 0};
  for (uint32_t i = 0; i < CHANNELS; i++) {
    const uint8_t *address = place(t, lane, x + dx[i], y + dy[i]);
    if (address && t->desc->components != 1) fail(t, PE_FORMAT_MISMATCH, lane, x, y);
    texel[i] = address ? component(t, address, 0) : 0;
  }
}

void pe_ctm_load(pe_warp *w, const pe_ctm_site *site, uint32_t mask, uint64_t handle, const uint32_t *x, const uint32_t *y,
                 uint32_t *texels) {
  target t = target_of(w, site, handle);
  FOR_LANES(i, mask) {
    uint32_t *texel = texels + CHANNELS * i;
    int64_t at_x = coordinate(x[i]), at_y = coordinate(y[i]);
    memset(texel, 0, CHANNELS * sizeof *texel);
    if (site->flags & PE_CTM_2X2) {
      load_2x2(&t, i, at_x, at_y, texel);
      continue;
    }
    const uint8_t *address = place(&t, i, at_x, at_y);
    if (address) read_texel(&t, address, texel);
  }
}

/* ---- outputs ---------------------------------------------------------------------------------------------------------- */

void pe_ctm_store(pe_warp *w, const pe_ctm_site *site, uint32_t mask, uint64_t handle, const uint32_t *x, const uint32_t *y,
                  const uint32_t *values, const uint32_t *channels) {
  target t = target_of(w, site, handle);
  FOR_LANES(i, mask) {
    uint8_t *address = channels[i] ? place(&t, i, x[i], y[i]) : NULL;
    if (address) write_texel(&t, address, values + CHANNELS * i, channels[i]);
  }
}

static bool is_zero(uint32_t bits) { return (bits & 0x7f800000) == 0; }

/* Whether the lane takes part in the write; a write of some channels is no write, alpha must be zero. */
static bool umrt_writes(const target *t, uint32_t lane, const uint32_t *v, uint32_t channels) {
  if (!channels) return false;
  bool strict = t->ctx->policy.strict;
  if (channels != ALL_CHANNELS) {
    if (strict) fail(t, PE_PARTIAL_UMRT, lane, coordinate(v[1]), coordinate(v[2]));
    __atomic_fetch_add(&t->ctx->umrt_partial, 1, __ATOMIC_RELAXED);
    return false;
  }
  if (strict && !is_zero(v[ALPHA])) fail(t, PE_UMRT_ALPHA, lane, coordinate(v[1]), coordinate(v[2]));
  return true;
}

void pe_ctm_umrt(pe_warp *w, const pe_ctm_site *site, uint32_t mask, uint64_t handle, const uint32_t *values,
                 const uint32_t *channels) {
  target t = target_of(w, site, handle);
  uint32_t group = ~0u;
  int64_t x = 0, y = 0;
  FOR_LANES(i, mask) {
    const uint32_t *v = values + CHANNELS * i;
    if (!umrt_writes(&t, i, v, channels[i])) continue;
    int64_t own_x = coordinate(v[1]), own_y = coordinate(v[2]);
    if (!(site->flags & PE_CTM_SAME_INDEX) || i / site->group != group)
      x = own_x, y = own_y;
    else if (t.ctx->policy.strict && (x != own_x || y != own_y))
      fail(&t, PE_UMRT_INDEX, i, own_x, own_y);
    group = i / site->group;
    uint8_t *address = place(&t, i, x, y);
    if (!address)
      __atomic_fetch_add(&t.ctx->umrt_dropped, 1, __ATOMIC_RELAXED);
    else if (!is_single_float(t.desc))
      fail(&t, PE_FORMAT_MISMATCH, i, x, y);
    else
      pe_atom_update(address, site->op, PE_TYPE_B32, 0, &v[0], NULL, NULL, 1);
  }
}

/* ---- the conditional test --------------------------------------------------------------------------------------------- */

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
  target t = target_of(w, site, handle);
  uint32_t passed = 0;
  FOR_LANES(i, mask) {
    uint8_t *address = place(&t, i, x[i], y[i]);
    uint32_t b[CHANNELS] = {0};
    if (address) read_texel(&t, address, b);
    if (!passes(site->condition, pe_float(values[i]), pe_float(b[0]))) continue;
    passed |= 1u << i;
    if (address && site->flags & PE_CTM_UPDATE) write_texel(&t, address, (uint32_t[CHANNELS]){values[i]}, 1);
  }
  return passed;
}
