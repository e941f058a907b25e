/* surface_access.c: where one access to one texel goes, or why it does not. */
#include "surface_access.h"
#include "layout.h"
#include "internal.h"

static int admit_format(pe_su_context *ctx, const pe_surface_desc *desc, const pe_su_access *access) {
  if (access->format == PE_FORMAT_NEVER) return PE_FORMAT_MISMATCH;
  if (access->format == PE_FORMAT_SINGLE && (desc->components != 1 || desc->elem_bytes != access->size))
    return PE_FORMAT_MISMATCH;
  if (access->format == PE_FORMAT_CONVERTED && desc->order == PE_ORDER_RGB10A2) return PE_UNSUPPORTED_FORMAT;
  if (access->format == PE_FORMAT_INTEGER && desc->kind != PE_KIND_UINT && desc->kind != PE_KIND_SINT) {
    if (ctx->policy.strict) return PE_FORMAT_MISMATCH;
    __atomic_fetch_add(&ctx->format_mismatches, 1, __ATOMIC_RELAXED);
  }
  return PE_OK;
}

int pe_su_admit(pe_su_context *ctx, const pe_surface_desc *desc, const pe_su_access *access) {
  if (desc && desc->state == PE_SURFACE_DISABLED) return PE_SU_NONE;
  if (!desc || desc->state != PE_SURFACE_VALID) {
    bool unbound = desc && desc->state == PE_SURFACE_UNBOUND;
    if (ctx->policy.invalid_header == PE_HEADER_FAULT) return unbound ? PE_UNBOUND_SURFACE : PE_INVALID_SURFACE;
    __atomic_fetch_add(&ctx->dropped, 1, __ATOMIC_RELAXED);
    return PE_SU_NONE;
  }
  return pe_geom_fits(access->geom, desc->geom) ? admit_format(ctx, desc, access) : PE_GEOMETRY_MISMATCH;
}

/* x in bytes, saturated so that an overflow stays out of bounds. */
static int64_t byte_x(int64_t x, uint32_t scale) {
  int64_t bytes;
  if (!__builtin_mul_overflow(x, (int64_t)scale, &bytes)) return bytes;
  return x < 0 ? INT64_MIN : INT64_MAX - (scale - 1);
}

/* The last x at which n bytes may start, or -1 when there is none. */
static int64_t last_x(const pe_su_policy *policy, const pe_surface_level *level, int64_t n) {
  int64_t row = (int64_t)level->row_bytes, stored = (int64_t)level->stored_row_bytes;
  int64_t partial = (row - 1) / n * n;
  if (policy->partial_edge == PE_EDGE_ALLOW && partial + n <= stored) return partial;
  return row < n ? -1 : (row / n - 1) * n;
}

static bool x_inside(const pe_su_policy *policy, const pe_surface_level *level, int64_t x, int64_t n) {
  int64_t row = (int64_t)level->row_bytes;
  if (x < 0) return false;
  if (policy->partial_edge == PE_EDGE_ALLOW) return x < row && x <= (int64_t)level->stored_row_bytes - n;
  return x <= row - n;
}

static int64_t clamped(int64_t value, int64_t limit) { return value < 0 ? 0 : value > limit ? limit : value; }

static int out_of_bounds(uint32_t clamp) { return clamp == PE_CLAMP_TRAP ? PE_SURFACE_TRAP : PE_SU_NONE; }

int pe_su_resolve(pe_su_context *ctx, const pe_surface_desc *desc, const pe_su_access *access, const pe_su_coord *coord,
                  uint8_t **addr) {
  int status = pe_su_admit(ctx, desc, access);
  if (status != PE_OK) return status;
  const pe_su_policy *policy = &ctx->policy;
  int64_t n = access->coord == PE_COORD_TEXEL ? desc->elem_bytes : access->size;
  int64_t x = access->coord == PE_COORD_BYTE ? coord->x : byte_x(coord->x, (uint32_t)n);
  if (x & (n - 1)) {
    if (policy->align == PE_ALIGN_FAULT) return PE_MISALIGNED;
    x &= ~(n - 1);
  }
  if (coord->level >= desc->levels) return out_of_bounds(access->clamp);
  const pe_surface_level *level = &desc->level[coord->level];
  int64_t y = pe_geom_has_y(desc->geom) ? coord->y : 0, z = pe_geom_has_z(desc->geom) ? coord->z : 0;
  uint64_t layer = pe_geom_is_array(desc->geom) ? (uint64_t)coord->layer : 0;
  if (policy->layer_16bit) layer &= 0xffff;
  bool inside =
      x_inside(policy, level, x, n) && (uint64_t)y < level->height && (uint64_t)z < level->depth && layer < desc->layers;
  if (!inside) {
    int64_t limit = last_x(policy, level, n);
    if (access->clamp != PE_CLAMP_NEAREST || limit < 0) return out_of_bounds(access->clamp);
    x = clamped(x, limit);
    y = clamped(y, level->height - 1);
    z = clamped(z, level->depth - 1);
    if (layer >= desc->layers) layer = desc->layers - 1;
  }
  *addr = desc->base + pe_surface_offset(desc, coord->level, (uint64_t)x, (uint64_t)y, (uint64_t)z, layer);
  return PE_OK;
}

uint32_t pe_su_signed_op(const pe_surface_desc *desc, uint32_t op, uint32_t type, uint32_t *format) {
  bool smallest = op == PE_ATOM_UMIN || op == PE_ATOM_SMIN, largest = op == PE_ATOM_UMAX || op == PE_ATOM_SMAX;
  if ((type != PE_TYPE_B32 && type != PE_TYPE_B64) || (!smallest && !largest)) return op;
  *format = PE_FORMAT_INTEGER;
  if (!desc || desc->kind != PE_KIND_SINT) return smallest ? PE_ATOM_UMIN : PE_ATOM_UMAX;
  return smallest ? PE_ATOM_SMIN : PE_ATOM_SMAX;
}
