/* texture.c: descriptors of textures: creation checks, handles, queries. */
#include <math.h>
#include <stdbool.h>
#include "slots.h"
#include "texture.h"
#include "texture_axis.h"
#include "texture_flat.h"

/* ---- creation ------------------------------------------------------------------------------------------------------- */

#define MAX_EXTENT (1u << 29) /* twice that fits an int */
#define MAX_LEVEL 1024
#define MAX_ANISOTROPY 16

static bool reads_floats(const pe_texture *t) { return t->kind != PE_KIND_UINT && t->kind != PE_KIND_SINT; }

static const char *check_sampler(const pe_sampler *s) {
  for (int axis = 0; axis < 3; axis++)
    if (s->address[axis] > PE_ADDRESS_BORDER) return "unknown address mode";
  if (s->filter > PE_FILTER_LINEAR || s->mip_filter > PE_FILTER_LINEAR) return "unknown filter mode";
  if (s->anisotropy > MAX_ANISOTROPY) return "max_anisotropy is above 16";
  const float levels[] = {s->bias, s->min_level, s->max_level};
  for (int i = 0; i < 3; i++)
    if (!(fabsf(levels[i]) <= MAX_LEVEL)) return "a bound or the bias of levels is out of range";
  return NULL;
}

/* Does the memory have the layers that the geometry counts on? */
static bool geometry_fits(const pe_texture *t) {
  uint32_t layers = t->memory.layers;
  if (t->samples == 0 || layers % t->samples) return false;
  if (t->geom == PE_GEOM_2DMS) return t->memory.geom == PE_GEOM_A2D && layers == t->samples;
  if (t->geom == PE_GEOM_A2DMS) return t->memory.geom == PE_GEOM_A2D;
  return t->geom == t->memory.geom && t->samples == 1;
}

const char *pe_texture_check(const pe_texture *texture) {
  const char *wrong = check_sampler(&texture->sampler);
  if (wrong) return wrong;
  if (texture->state == PE_TEXTURE_SAMPLER) return NULL;
  if ((texture->sampler.filter == PE_FILTER_LINEAR || texture->sampler.mip_filter == PE_FILTER_LINEAR) &&
      !reads_floats(texture))
    return "linear filtering needs texels that read as floats";
  bool scaled = texture->kind == PE_KIND_UNORM || texture->kind == PE_KIND_SNORM;
  if (scaled && (texture->memory.bits > 16 || texture->memory.kind == PE_KIND_FLOAT))
    return "only 8- and 16-bit integers can be read as normalized floats";
  if (texture->memory.width > MAX_EXTENT || texture->memory.height > MAX_EXTENT || texture->memory.depth > MAX_EXTENT)
    return "an extent is over 2^29 texels";
  if (texture->memory.order == PE_ORDER_RGB10A2) return "packed components cannot be read";
  if (texture->srgb && (texture->kind != PE_KIND_UNORM || texture->memory.bits != 8))
    return "only 8-bit texels that read as normalized floats can be sRGB";
  if (!geometry_fits(texture)) return "the memory has another geometry";
  return NULL;
}

/* ---- handles -------------------------------------------------------------------------------------------------------- */

static pe_slots *slots_of(const pe_texture_table *table) { return (pe_slots *)table; }

pe_texture_table *pe_texture_table_new(void) { return (pe_texture_table *)pe_slots_new(sizeof(pe_texture)); }
void pe_texture_table_free(pe_texture_table *table) { pe_slots_free(slots_of(table)); }

/* The sRGB byte that is nearest to a linear number, NaN as 0. */
static uint8_t srgb_byte(float value) {
  double linear = value > 0 ? fmin(value, 1) : 0;
  return (uint8_t)(255 * (linear <= 0.0031308 ? 12.92 * linear : 1.055 * pow(linear, 1 / 2.4) - 0.055) + 0.5);
}

int pe_texture_table_set(pe_texture_table *table, uint32_t slot, uint32_t tag, const pe_texture *texture) {
  pe_texture kept = *texture;
  for (uint32_t k = 0; k < 4; k++) kept.sampler.encoded_border[k] = srgb_byte(kept.sampler.border[k]);
  kept.own = pe_in_force(&kept.sampler, &kept);
  kept.ways = pe_flat_ways(&kept, &kept.own);
  return pe_slots_set(slots_of(table), slot, tag, &kept);
}

void pe_texture_table_clear(pe_texture_table *table, uint32_t slot) { pe_slots_clear(slots_of(table), slot); }

uint64_t pe_texture_table_take(pe_texture_table *table, uint32_t elements) {
  return pe_slots_take(slots_of(table), elements);
}

uint32_t pe_texture_table_elements(const pe_texture_table *table, uint64_t handle) {
  return pe_slots_elements(slots_of(table), handle);
}

void pe_texture_table_retire(pe_texture_table *table, uint64_t handle) {
  uint32_t elements = pe_slots_elements(slots_of(table), handle);
  for (uint32_t i = 0; i < elements; i++) pe_texture_table_clear(table, (uint32_t)handle + PE_SLOT_STEP * i);
  pe_slots_retire(slots_of(table), handle);
}

const pe_texture *pe_texture_lookup(const pe_texture_table *table, uint64_t handle) {
  uint32_t slot = handle & PE_SLOT_MASK, tag;
  const pe_texture *texture = table && slot ? pe_slots_find(slots_of(table), slot, &tag) : NULL;
  return texture && handle >> 32 == tag && !(handle >> PE_SLOT_BITS & 0xfff) ? texture : NULL;
}

/* ---- queries -------------------------------------------------------------------------------------------------------- */

static uint32_t array_size(const pe_texture *t) {
  switch (t->geom) {
    case PE_GEOM_A1D:
    case PE_GEOM_A2D: return t->memory.layers;
    case PE_GEOM_ACUBE: return t->memory.layers / 6;
    case PE_GEOM_A2DMS: return t->memory.layers / t->samples;
    default: return 0;
  }
}

/* An extent of a level; a level that the texture lacks, and a dimension that its geometry lacks, have none. */
static uint32_t extent(const pe_texture *t, uint32_t which, int32_t level) {
  uint32_t index = level < 0 ? 0 : (uint32_t)level;
  bool flat = t->geom == PE_GEOM_1D || t->geom == PE_GEOM_1D_BUFFER || t->geom == PE_GEOM_A1D;
  if (level < -1 || index >= t->memory.levels) return 0;
  if (which == PE_TXQ_WIDTH) return t->memory.level[index].width;
  if (which == PE_TXQ_HEIGHT) return flat ? 0 : t->memory.level[index].height;
  return t->geom == PE_GEOM_3D ? t->memory.level[index].depth : 0;
}

uint32_t pe_texture_query(const pe_texture *texture, uint32_t which, int32_t level) {
  static const pe_su_context plain;
  const pe_sampler *s = &texture->sampler;
  if (level == -1 && texture->query_mask >> which & 1) return texture->query_value[which];
  if (texture->state == PE_TEXTURE_UNBOUND) return 0;
  if (texture->state == PE_TEXTURE_SAMPLER && which < PE_TXQ_FORCE_UNNORMALIZED_COORDS) return 0;
  switch (which) {
    case PE_TXQ_WIDTH:
    case PE_TXQ_HEIGHT:
    case PE_TXQ_DEPTH: return extent(texture, which, level);
    case PE_TXQ_CHANNEL_DATA_TYPE: return pe_su_query(&plain, &texture->memory, PE_SUQ_CHANNEL_DATA_TYPE);
    case PE_TXQ_CHANNEL_ORDER: return pe_su_query(&plain, &texture->memory, PE_SUQ_CHANNEL_ORDER);
    case PE_TXQ_ARRAY_SIZE: return array_size(texture);
    case PE_TXQ_NUM_MIPMAP_LEVELS: return texture->memory.levels;
    case PE_TXQ_NUM_SAMPLES: return texture->samples;
    case PE_TXQ_NORMALIZED_COORDS: return s->normalized;
    case PE_TXQ_FORCE_UNNORMALIZED_COORDS: return !s->normalized;
    case PE_TXQ_FILTER_MODE: return s->filter;
    default: {
      /* as the enumerators of an initialiser: wrap 0, clamp_to_edge 1, clamp_to_border 2, mirror 3 */
      static const uint32_t codes[] = {0, 1, 3, 2};
      return codes[s->address[which - PE_TXQ_ADDR_MODE_0]];
    }
  }
}
