/* surface.c: descriptors: creation checks and queries. */
#include <stdbool.h>
#include <stddef.h>
#include "layout.h"
#include "surface_access.h"

#define MAX_LEVELS 16
#define DEFAULT_ALIGN 16
#define MAX_BLOCK_LOG2 5

const char *pe_layout_place(pe_surface_desc *desc);

static bool power_of_two(uint32_t value) { return value && !(value & (value - 1)); }

static const char *check_geometry(const pe_surface_desc *d) {
  if (!d->width || !d->height || !d->depth || !d->layers) return "every extent must be at least 1";
  bool flat = d->depth == 1, single = d->layers == 1;
  switch (d->geom) {
    case PE_GEOM_1D:
    case PE_GEOM_1D_BUFFER:
      return d->height == 1 && flat && single ? NULL : "a 1d surface has height, depth and layers of 1";
    case PE_GEOM_2D: return flat && single ? NULL : "a 2d surface has depth and layers of 1";
    case PE_GEOM_3D: return single ? NULL : "a 3d surface has one layer";
    case PE_GEOM_A1D: return d->height == 1 && flat ? NULL : "a 1d array surface has height and depth of 1";
    case PE_GEOM_A2D: return flat ? NULL : "a 2d array surface has depth 1";
    case PE_GEOM_CUBE:
      return d->width == d->height && flat && d->layers == 6 ? NULL : "a cube surface is square with depth 1 and 6 layers";
    case PE_GEOM_ACUBE:
      return d->width == d->height && flat && d->layers % 6 == 0
                 ? NULL
                 : "a cube array surface is square with depth 1 and a multiple of 6 layers";
    default: return "unknown geometry";
  }
}

static bool kind_legal(uint32_t kind, uint32_t bits) {
  switch (bits) {
    case 8:
    case 10: return kind <= PE_KIND_SINT;
    case 16: return kind <= PE_KIND_FLOAT;
    case 32: return kind >= PE_KIND_UINT && kind <= PE_KIND_FLOAT;
    default: return false;
  }
}

static bool order_legal(const pe_surface_desc *d) {
  if (d->bits == 10) return d->order == PE_ORDER_RGB10A2 && d->components == 4;
  switch (d->order) {
    case PE_ORDER_R: return d->components == 1;
    case PE_ORDER_RG: return d->components == 2;
    case PE_ORDER_RGBA: return d->components == 4;
    case PE_ORDER_BGRA: return d->components == 4 && d->bits == 8;
    case PE_ORDER_A: return d->components == 1 && d->bits == 8 && d->kind == PE_KIND_UNORM;
    default: return false;
  }
}

static const char *check_layout(const pe_surface_desc *d) {
  bool one_row = d->geom == PE_GEOM_1D || d->geom == PE_GEOM_1D_BUFFER;
  if (d->layout > PE_LAYOUT_BLOCK_LINEAR || d->gob_order > PE_GOB_LINEAR) return "unknown layout";
  if (d->layout == PE_LAYOUT_LINEAR && !one_row) return "linear layout is for 1d surfaces only";
  if (d->layout == PE_LAYOUT_LINEAR && d->levels != 1) return "linear layout has one mip level";
  if (d->block_h_log2 > MAX_BLOCK_LOG2 || d->block_d_log2 > MAX_BLOCK_LOG2) return "block size is out of range";
  if (!power_of_two(d->base_align) || !power_of_two(d->pitch_align)) return "alignments must be powers of two";
  if (d->pitch_align % d->elem_bytes && d->pitch_align < DEFAULT_ALIGN) return "pitch alignment is smaller than a texel";
  return NULL;
}

static const char *check_levels(const pe_surface_desc *d) {
  uint32_t largest = d->width | d->height | d->depth; /* its top bit is that of the largest extent */
  uint32_t most = 32 - (uint32_t)__builtin_clz(largest);
  if (!d->levels || d->levels > MAX_LEVELS || d->levels > most) return "too many mip levels for the extents";
  return NULL;
}

const char *pe_surface_layout(pe_surface_desc *desc) {
  const char *wrong = check_geometry(desc);
  if (wrong) return wrong;
  if (!kind_legal(desc->kind, desc->bits) || !order_legal(desc)) return "no such surface format";
  if (desc->enum_family > PE_ENUM_CUDA) return "unknown enumeration family";
  desc->elem_bytes = desc->order == PE_ORDER_RGB10A2 ? 4 : desc->components * desc->bits / 8;
  if (!desc->base_align) desc->base_align = DEFAULT_ALIGN;
  if (!desc->pitch_align) desc->pitch_align = DEFAULT_ALIGN;
  if ((wrong = check_layout(desc)) || (wrong = check_levels(desc))) return wrong;
  if (desc->layout == PE_LAYOUT_LINEAR) {
    desc->pitch = (uint64_t)desc->width * desc->elem_bytes;
    desc->slice_stride = desc->layer_stride = 0;
  }
  return pe_layout_place(desc);
}

const char *pe_surface_check(const pe_surface_desc *desc) {
  if (!desc->base) return "surface has no memory";
  if ((uintptr_t)desc->base % desc->base_align) return "base address is not aligned";
  if (desc->size < desc->total_bytes) return "memory is smaller than the surface";
  return NULL;
}

/* Both enumerations know packed components as UNORM only. */
static uint32_t packed_type(const pe_surface_desc *d) {
  if (d->kind != PE_KIND_UNORM) return 0;
  return d->enum_family == PE_ENUM_CUDA ? 0x50 : 0x10E0;
}

static uint32_t opencl_type(const pe_surface_desc *d) {
  uint32_t wide = d->bits == 8 ? 0 : d->bits == 16 ? 1 : 2;
  switch (d->kind) {
    case PE_KIND_SNORM: return 0x10D0 + wide;
    case PE_KIND_UNORM: return 0x10D2 + wide;
    case PE_KIND_SINT: return 0x10D7 + wide;
    case PE_KIND_UINT: return 0x10DA + wide;
    default: return d->bits == 16 ? 0x10DD : 0x10DE;
  }
}

static uint32_t cuda_type(const pe_surface_desc *d) {
  uint32_t wide = d->bits == 8 ? 0 : d->bits == 16 ? 1 : 2;
  if (d->kind == PE_KIND_FLOAT) return d->bits == 16 ? 0x10 : 0x20;
  return (d->kind == PE_KIND_SNORM || d->kind == PE_KIND_SINT ? 0x08 : 0x01) + wide;
}

static uint32_t channel_type(const pe_surface_desc *d) {
  if (d->order == PE_ORDER_RGB10A2) return packed_type(d);
  return d->enum_family == PE_ENUM_CUDA ? cuda_type(d) : opencl_type(d);
}

static uint32_t channel_order(const pe_surface_desc *d) {
  static const uint32_t opencl[] = {0x10B0, 0x10B2, 0x10B5, 0x10B6, 0x10B1, 0x10B5};
  return d->enum_family == PE_ENUM_CUDA ? d->components : opencl[d->order];
}

uint32_t pe_su_query(const pe_su_context *ctx, const pe_surface_desc *desc, uint32_t which) {
  if (which >= PE_SUQ_COUNT) return 0;
  if (desc->suq_mask >> which & 1) return desc->suq_value[which];
  if (desc->state == PE_SURFACE_UNBOUND) return 0;
  uint32_t absent = ctx->policy.absent_dim;
  switch (which) {
    case PE_SUQ_WIDTH: return desc->width;
    case PE_SUQ_HEIGHT: return pe_geom_has_y(desc->geom) ? desc->height : absent;
    case PE_SUQ_DEPTH: return pe_geom_has_z(desc->geom) ? desc->depth : absent;
    case PE_SUQ_CHANNEL_DATA_TYPE: return channel_type(desc);
    case PE_SUQ_CHANNEL_ORDER: return channel_order(desc);
    case PE_SUQ_ARRAY_SIZE: return pe_geom_is_array(desc->geom) ? desc->layers : 0;
    default: return desc->layout != PE_LAYOUT_BLOCK_LINEAR;
  }
}
