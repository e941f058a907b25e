/* texture_warp.c: one texture instruction of a warp.
 *
 * Lanes with the same texture and sampler form a run.  A run is served level by level: coordinates become texel indices
 * axis by axis (texture_axis.h), those become byte offsets of the texels of each footprint (texture_footprint.h), whose
 * components are read and added up (texture_texel.h).  Every step computes all 32 lanes, on indices that are valid
 * whatever the lane holds; only the results of the run's lanes are kept.
 */
#if defined(__GNUC__) && !defined(__clang__)
#ifdef __OPTIMIZE__
#pragma GCC optimize("O3", "no-trapping-math") /* the loops over lanes become vectors */
#endif
#endif
#include <stdio.h>
#include "atomic.h"
#include "fault.h"
#include "internal.h"
#include "launch.h"
#include "place.h"
#include "texture.h"
#include "texture_flat.h"
#include "texture_border.h"
#include "texture_footprint.h"
#include "texture_level.h"
#include "texture_sum.h"
#include "texture_texel.h"

/* ---- components ----------------------------------------------------------------------------------------------------- */

/* SNORM bytes that are gathered are 16 bits: their seven, repeated. */
PE_INLINE bool widens(const pe_tex_run *r) {
  return r->site->gather && r->texture->kind == PE_KIND_SNORM && r->texture->memory.bits == 8;
}

PE_INLINE void widen(double *restrict number) {
  for (uint32_t i = 0; i < 32; i++) {
    int32_t n = number[i] < -127 ? -127 : (int32_t)number[i];
    number[i] = n * 258 + n / 64;
  }
}

/* A component's numbers in register bits. */
PE_INLINE void number_bits(const pe_tex_run *r, uint32_t component, double *restrict number, uint32_t *restrict bits) {
  if (widens(r)) widen(number);
  pe_number_bits(bits, number, widens(r) ? 32767 : pe_kind_scale(r->texture, pe_is_srgb(r->texture, component)));
}

/* The value of a component of one corner, in register bits. */
PE_INLINE void corner_bits(const pe_tex_run *r, const pe_footprint *f, const pe_words *words, uint32_t corner,
                           uint32_t component, uint32_t *restrict bits) {
  const pe_texture *t = r->texture;
  int32_t place = pe_component_place(&t->memory, component);
  if (place < 0) {
    memset(bits, 0, 32 * sizeof *bits);
  } else {
    pe_texel_bits(bits, words, (uint32_t)place, t->memory.bits, t->kind);
    double number[32], border = r->site->integer || !f->border ? 0 : pe_border_of(t, &r->sampler, component).number;
    if (t->kind == PE_KIND_UNORM || t->kind == PE_KIND_SNORM) {
      pe_texel_number(number, bits, t->kind, pe_is_srgb(t, component));
      number_bits(r, component, number, bits);
    }
    if (f->border) {
      uint32_t given[32];
      for (uint32_t i = 0; i < 32; i++) number[i] = border;
      number_bits(r, component, number, given);
      for (uint32_t i = 0; i < 32; i++) bits[i] = f->outside[corner][i] ? given[i] : bits[i];
    }
  }
}

/* Read the texels of one corner, which lanes of mask use. */
PE_INLINE void read_corner(const pe_tex_run *r, const pe_footprint *f, uint32_t corner, uint32_t mask, pe_words *words) {
  const pe_surface_desc *memory = &r->texture->memory;
  pe_read_texels(words, memory->base, f->offset[corner], memory->elem_bytes);
  if (!pe_texels_observed(r->w)) return;
  pe_access access = {.pos = r->site->pos, .space = PE_TEXEL, .kind = PE_READ};
  uint64_t address[PE_WARP_LANES];
  for (uint32_t i = 0; i < PE_WARP_LANES; i++) {
    address[i] = (uint64_t)(uintptr_t)memory->base + f->offset[corner][i];
    if ((f->border || r->site->integer) && f->outside[corner][i]) mask &= ~(1u << i);
  }
  pe_tell_texels(r->w, &access, mask, address, memory->elem_bytes, memory);
}

/* Lanes with a weight. */
PE_INLINE uint32_t weighted(const int32_t *restrict weight) {
  uint32_t mask = 0;
  for (uint32_t i = 0; i < 32; i++) mask |= (uint32_t)(weight[i] != 0) << i;
  return mask;
}

/* What the wanted components of all lanes add up to: normalized integers, or floats. */
typedef struct sums {
  int32_t counted[4][32];
  pe_texel_sum measured[4];
} sums;

PE_INLINE bool is_counted(const pe_tex_run *r, uint32_t component) {
  return (r->texture->kind == PE_KIND_UNORM || r->texture->kind == PE_KIND_SNORM) && !pe_is_srgb(r->texture, component);
}

static void begin_sums(sums *sum) {
  memset(sum->counted, 0, sizeof sum->counted);
  for (uint32_t k = 0; k < 4; k++) pe_begin_sum(&sum->measured[k]);
}

/* The numbers of a component in a plane's texels, and their exponents. */
PE_INLINE void plane_numbers(const pe_tex_run *r, const pe_footprint *f, uint32_t first, uint32_t count,
                             const pe_words *words, uint32_t component, double number[][32], int32_t exponent[][32]) {
  const pe_texture *t = r->texture;
  uint32_t bits[32], place = (uint32_t)pe_component_place(&t->memory, component);
  pe_border border = {0};
  if (f->border) border = pe_border_of(t, &r->sampler, component);
  for (uint32_t c = 0; c < count; c++) {
    pe_texel_bits(bits, &words[c], place, t->memory.bits, t->kind);
    pe_texel_number(number[c], bits, t->kind, pe_is_srgb(t, component));
    if (pe_is_srgb(t, component))
      for (uint32_t i = 0; i < 32; i++) exponent[c][i] = pe_srgb_exponent[bits[i] & 255];
    else
      pe_exponents(exponent[c], bits);
    if (!f->border) continue;
    for (uint32_t i = 0; i < 32; i++) {
      bool outside = f->outside[first + c][i];
      number[c][i] = outside ? border.number : number[c][i];
      exponent[c][i] = outside ? border.exponent : exponent[c][i];
    }
  }
}

/* The same of components that are f32, as bits. */
PE_INLINE void plane_words(const pe_tex_run *r, const pe_footprint *f, uint32_t first, uint32_t count, const pe_words *words,
                           uint32_t component, uint32_t word[][32]) {
  uint32_t place = (uint32_t)pe_component_place(&r->texture->memory, component);
  uint32_t border = f->border ? pe_float_bits(r->sampler.border[component]) : 0;
  for (uint32_t c = 0; c < count; c++)
    for (uint32_t i = 0; i < 32; i++) {
      uint32_t given = words[c].word[place][i];
      word[c][i] = f->border && f->outside[first + c][i] ? border : given;
    }
}

/* Add a component of a plane, its texels from `first` on. */
PE_INLINE void add_component(const pe_tex_run *r, pe_footprint *f, uint32_t first, uint32_t count, const pe_words *words,
                             uint32_t k, const pe_shares *shares, sums *sum) {
  double number[PE_PLANE][32];
  int32_t exponent[PE_PLANE][32];
  uint32_t word[PE_PLANE][32];
  pe_fineness fine = pe_fineness_of(r->texture, pe_is_srgb(r->texture, k));
  bool counted = is_counted(r, k);
  if (!counted && fine.words) {
    plane_words(r, f, first, count, words, k, word);
    pe_add_plane_of_words(&sum->measured[k], count, word, &f->weight[first], shares, fine);
    return;
  }
  plane_numbers(r, f, first, count, words, k, number, exponent);
  if (!counted) {
    pe_add_plane(&sum->measured[k], count, number, exponent, &f->weight[first], fine);
    return;
  }
  for (uint32_t c = 0; c < count; c++)
    for (uint32_t i = 0; i < 32; i++) sum->counted[k][i] += f->weight[first + c][i] * (int32_t)number[c][i];
}

/* Add a plane of a footprint, its texels from `first` on. */
PE_INLINE void add_plane(const pe_tex_run *r, pe_footprint *f, uint32_t first, sums *sum) {
  pe_words words[PE_PLANE];
  pe_shares shares;
  uint32_t count = f->corners < PE_PLANE ? f->corners : PE_PLANE;
  for (uint32_t c = 0; c < count; c++)
    read_corner(r, f, first + c, pe_texels_observed(r->w) ? weighted(f->weight[first + c]) : 0, &words[c]);
  pe_find_shares(&shares, count, &f->weight[first]);
  for (uint32_t k = 0; k < 4; k++)
    if (pe_component_place(&r->texture->memory, k) >= 0 && r->wanted >> k & 1)
      add_component(r, f, first, count, words, k, &shares, sum);
}

/* ---- results -------------------------------------------------------------------------------------------------------- */

/* Keep component k of the lanes of mask, in ascending order of k. */
PE_INLINE void keep(const pe_tex_run *r, uint32_t k, uint32_t mask, const uint32_t *restrict bits) {
  uint32_t *row = r->out + k * 32, *pair = r->out + k / 2 * 32;
  switch (r->site->result) {
    case PE_RESULT_B32:
      if (mask == PE_ALL_LANES)
        memcpy(row, bits, 32 * sizeof *row);
      else
        PE_FOR_LANES(i, mask) row[i] = bits[i];
      break;
    case PE_RESULT_F16:
      PE_FOR_LANES(i, mask) row[i] = pe_f16_bits(bits[i]);
      break;
    default: PE_FOR_LANES(i, mask) pair[i] = k & 1 ? pair[i] | (uint32_t)pe_f16_bits(bits[i]) << 16 : pe_f16_bits(bits[i]);
  }
}

/* The value of a component, from its sum. */
PE_INLINE void sum_bits(const pe_tex_run *r, uint32_t k, const sums *sum, uint32_t *restrict bits) {
  const pe_texture *t = r->texture;
  if (pe_component_place(&t->memory, k) < 0)
    memset(bits, 0, 32 * sizeof *bits);
  else if (is_counted(r, k))
    pe_normalized_sum(bits, sum->counted[k], t->memory.bits, t->kind == PE_KIND_SNORM);
  else
    pe_round_sum(bits, &sum->measured[k], pe_fineness_of(t, pe_is_srgb(t, k)));
}

/* A component of integers that three corners share: the weighted mean, rounded down. */
PE_INLINE void shared_integers(const pe_tex_run *r, const pe_footprint *f, uint32_t place, uint32_t *restrict bits) {
  const pe_texture *t = r->texture;
  int64_t total[32] = {0};
  for (uint32_t c = 0; c < f->corners; c++) {
    pe_words words;
    read_corner(r, f, c, 0, &words);
    pe_texel_bits(bits, &words, place, t->memory.bits, t->kind);
    for (uint32_t i = 0; i < 32; i++)
      total[i] += f->weight[c][i] * (t->kind == PE_KIND_SINT ? (int64_t)(int32_t)bits[i] : (int64_t)bits[i]);
  }
  for (uint32_t i = 0; i < 32; i++) bits[i] = (uint32_t)(total[i] >> 8);
}

/* A gathered component where no texel is over a corner of the cube: what the other three share, as if it were filtered. */
static void share_gathered(const pe_tex_run *r, pe_footprint *f, uint32_t corner, uint32_t component,
                           uint32_t *restrict bits) {
  int32_t place = pe_component_place(&r->texture->memory, component);
  uint32_t lanes = f->shared & ~weighted(f->weight[corner]), found[32];
  if (!lanes || place < 0) return;
  if (r->texture->kind == PE_KIND_UINT || r->texture->kind == PE_KIND_SINT) {
    shared_integers(r, f, (uint32_t)place, found);
  } else {
    pe_tex_run own = *r;
    sums sum;
    own.wanted = 1u << component;
    begin_sums(&sum);
    add_plane(&own, f, 0, &sum);
    sum_bits(&own, component, &sum, found);
  }
  PE_FOR_LANES(i, lanes) bits[i] = found[i];
}

/* Lanes of one level, nothing to add up: each component of the one texel of a lane; of tld4, one component of four texels,
 * counter-clockwise from the lower left. */
PE_INLINE void sample_texels(const pe_tex_run *r, uint32_t level, uint32_t mask) {
  static const uint32_t order[] = {2, 3, 1, 0};
  bool gathers = r->site->gather != 0;
  pe_footprint f;
  pe_words words;
  pe_find_footprint(r, &f, level, NULL);
  for (uint32_t k = 0; k < 4; k++) {
    uint32_t bits[32], corner = gathers ? order[k] : 0;
    bool wanted = r->wanted >> k & 1;
    if (gathers ? wanted : k == 0) read_corner(r, &f, corner, mask, &words);
    if (!wanted) continue;
    corner_bits(r, &f, &words, corner, gathers ? r->site->gather - 1u : k, bits);
    if (gathers && f.shared) share_gathered(r, &f, corner, r->site->gather - 1u, bits);
    keep(r, k, mask, bits);
  }
}

/* Levels from `level` on that lanes of the mask use; the first of them is taken out of the mask. */
static uint32_t same_level(const pe_tex_run *r, uint32_t *mask, uint32_t *level) {
  uint32_t found = 0;
  *level = r->level[__builtin_ctz(*mask)];
  if (r->texture->memory.levels == 1) {
    found = *mask;
    *mask = 0;
    return found;
  }
  PE_FOR_LANES(i, *mask)
    if (r->level[i] == *level) found |= 1u << i;
  *mask &= ~found;
  return found;
}

/* Weighted sums, over both levels where a lane lies between two. */
PE_INLINE void sample_filtered(const pe_tex_run *r) {
  sums sum;
  pe_footprint f;
  uint32_t bits[32];
  int32_t whole[32];
  begin_sums(&sum);
  for (uint32_t rest = r->mask; rest;) {
    uint32_t level, between = 0, lanes = same_level(r, &rest, &level);
    for (uint32_t i = 0; i < 32; i++) between |= (lanes >> i & 1) && r->level_part[i] != 0;
    for (uint32_t upper = 0; upper <= between; upper++) {
      for (uint32_t i = 0; i < 32; i++) {
        int32_t share = upper ? r->level_part[i] : 256 - r->level_part[i];
        whole[i] = lanes >> i & 1 ? share : 0;
      }
      pe_find_footprint(r, &f, level + upper, whole);
      for (uint32_t first = 0; first < f.corners; first += PE_PLANE) add_plane(r, &f, first, &sum);
    }
  }
  for (uint32_t k = 0; k < 4; k++) {
    if (!(r->wanted >> k & 1)) continue;
    sum_bits(r, k, &sum, bits);
    keep(r, k, r->mask, bits);
  }
}

PE_WIDEST static void sample(pe_tex_run *r) {
  pe_read_coordinates(r);
  pe_find_levels(r);
  pe_find_layers(r);
  bool filters = r->sampler.filter == PE_FILTER_LINEAR || r->sampler.mip_filter == PE_FILTER_LINEAR;
  if (filters && !r->site->integer && !r->site->gather) {
    sample_filtered(r);
    return;
  }
  for (uint32_t rest = r->mask; rest;) {
    uint32_t level, lanes = same_level(r, &rest, &level);
    sample_texels(r, level, lanes);
  }
}

/* ---- one run -------------------------------------------------------------------------------------------------------- */

/* May an instruction of geometry `access` read a texture of geometry `texture`?  Coordinates beyond the texture's find an
 * extent of one; a cube can be read face by face. */
static bool geometry_fits(uint32_t access, uint32_t texture) {
  pe_tex_shape a = pe_tex_shape_of(access), t = pe_tex_shape_of(texture);
  if (a.cube || a.sample || t.sample) return access == texture;
  if (t.cube) return access == PE_GEOM_A2D;
  return a.dims >= t.dims && (a.array || !t.array);
}

/* Whether a fetch depends on the sampler's anisotropy: levels without gradients do because they are rounded otherwise. */
static bool is_anisotropic(const pe_tex_run *r, const pe_sampler *s) {
  bool levels = r->site->lod == PE_LOD_LEVEL && r->texture->memory.levels > 1;
  return s->anisotropy > 1 && !r->site->integer && (levels || r->site->lod == PE_LOD_GRADIENT);
}

/* PE_OK, or what keeps the sampler in force from reading the texture. */
static uint32_t admit(const pe_tex_run *r, const pe_texture *sampler) {
  if (!r->texture || r->texture->state == PE_TEXTURE_SAMPLER) return PE_INVALID_TEXTURE;
  if (r->texture->state == PE_TEXTURE_UNBOUND) return PE_UNBOUND_TEXTURE;
  if (!sampler) return PE_INVALID_TEXTURE;
  if (sampler->state == PE_TEXTURE_UNBOUND) return PE_UNBOUND_TEXTURE;
  if (sampler != r->texture && sampler->state != PE_TEXTURE_SAMPLER) return PE_INVALID_TEXTURE;
  if (!geometry_fits(r->site->geom, r->texture->geom)) return PE_TEXTURE_GEOMETRY;
  if (is_anisotropic(r, &sampler->sampler)) return PE_UNSUPPORTED_ANISOTROPY;
  bool integers = r->texture->kind == PE_KIND_UINT || r->texture->kind == PE_KIND_SINT;
  bool filters = sampler->sampler.filter == PE_FILTER_LINEAR || sampler->sampler.mip_filter == PE_FILTER_LINEAR;
  if (integers && (r->site->result != PE_RESULT_B32 || (filters && !r->site->integer && !r->site->gather)))
    return PE_TEXTURE_FORMAT;
  return PE_OK;
}

/* Put a sampler in force.  A 1D texture is read as a 2D one, at y = 0, which shows at its border only. */
static void use_sampler(pe_tex_run *r, const pe_sampler *sampler) {
  pe_sampler *s = &r->sampler;
  pe_tex_shape shape = pe_tex_shape_of(r->site->geom);
  *s = pe_in_force(sampler, r->texture);
  bool line = r->site->geom == PE_GEOM_1D && !r->site->integer;
  r->cube = shape.cube;
  r->dims = line && s->filter == PE_FILTER_LINEAR && s->address[1] == PE_ADDRESS_BORDER ? 2 : shape.dims;
}

static void raise_fault(pe_warp *w, const pe_tex_run *r, uint32_t kind, uint64_t texture, const uint64_t *sampler) {
  char note[96];
  int32_t lane = __builtin_ctz(r->mask);
  if (sampler)
    snprintf(note, sizeof note, "texture handle 0x%llx, sampler handle 0x%llx", (unsigned long long)texture,
             (unsigned long long)sampler[lane]);
  else
    snprintf(note, sizeof note, "texture handle 0x%llx", (unsigned long long)texture);
  pe_fault_note(w, kind, r->site->pos, lane, PE_GLOBAL, 0, 0, note);
}

/* A launch without textures has an empty table. */
static const pe_texture_table *table_of(const pe_warp *w) {
  const pe_su_context *ctx = pe_launch_surfaces(w);
  return ctx ? ctx->textures : NULL;
}

/* The common fetch; false: this is none. */
PE_INLINE bool fetch_flat(const pe_warp *w, const pe_texture_site *site, const uint32_t *rows, uint32_t mask,
                          const pe_texture *texture, const pe_sampler *sampler, uint32_t ways, uint32_t *out) {
  uint32_t way = ways & pe_flat_way(site, texture);
  if (!way || pe_texels_observed(w)) return false;
  bool line = pe_is_line(site->geom);
  const uint32_t *y = line ? pe_no_operand : rows + PE_LANES, *layer = site->geom == PE_GEOM_A2D ? y + PE_LANES : NULL;
  return pe_flat_fetch(&(pe_flat){texture, sampler, mask, site->wanted, rows, y, layer, out}, way);
}

/* The lanes of `mask`, which share a texture and a sampler; `sampler` is NULL where it is the texture's own, else that of each lane. */
static void fetch_run(pe_warp *w, const pe_texture_site *site, const uint32_t *rows, uint32_t mask, uint64_t handle,
                      const uint64_t *sampler, uint32_t *out) {
  const pe_texture_table *table = table_of(w);
  pe_tex_run r; /* not all of it is needed, and most is large */
  r.w = w, r.site = site, r.in = pe_tex_operands_of(site, rows), r.mask = mask, r.wanted = site->wanted, r.out = out;
  r.texture = pe_texture_lookup(table, handle);
  const pe_texture *used = sampler ? pe_texture_lookup(table, sampler[__builtin_ctz(mask)]) : r.texture;
  uint32_t status = admit(&r, used);
  if (status != PE_OK) raise_fault(w, &r, status, handle, sampler);
  use_sampler(&r, &used->sampler);
  uint32_t ways = sampler ? pe_flat_ways(r.texture, &r.sampler) : r.texture->ways;
  if (!fetch_flat(w, site, rows, mask, r.texture, &r.sampler, ways, out)) sample(&r);
}

void pe_tex(pe_warp *w, const pe_texture_site *site, uint32_t mask, const uint64_t *texture, const uint64_t *sampler,
            const uint32_t *rows, uint32_t *out) {
  while (mask) {
    uint32_t run = pe_same_handle(texture, mask), first = (uint32_t)__builtin_ctz(mask);
    if (sampler) run = pe_same_handle(sampler, run);
    mask &= ~run;
    fetch_run(w, site, rows, run, texture[first], sampler, out);
  }
}

void pe_tex_lanes(pe_warp *w, const pe_texture_site *site, uint32_t mask, uint64_t handle, const uint32_t *rows,
                  uint32_t *out) {
  const pe_texture *texture = pe_texture_lookup(table_of(w), handle);
  bool done = texture && fetch_flat(w, site, rows, mask, texture, &texture->own, texture->ways, out);
  if (!done && mask) fetch_run(w, site, rows, mask, handle, NULL, out);
}

/* ---- queries -------------------------------------------------------------------------------------------------------- */

void pe_txq(pe_warp *w, uint32_t pos, uint32_t which, uint32_t mask, const uint64_t *handle, const int32_t *level,
            uint32_t *result) {
  PE_FOR_LANES(i, mask) {
    const pe_texture *texture = pe_texture_lookup(table_of(w), handle[i]);
    char note[48];
    if (!texture) {
      snprintf(note, sizeof note, "texture handle 0x%llx", (unsigned long long)handle[i]);
      pe_fault_note(w, PE_INVALID_TEXTURE, pos, (int32_t)i, PE_GLOBAL, 0, 0, note);
    }
    int32_t asked = level ? level[i] < 0 ? INT32_MIN : level[i] : -1;
    result[i] = pe_texture_query(texture, which, asked);
  }
}

uint32_t pe_is_texture(pe_warp *w, uint32_t sampler, uint32_t mask, const uint64_t *handle) {
  uint32_t live = 0, wanted = sampler ? PE_TEXTURE_SAMPLER : PE_TEXTURE_IMAGE;
  PE_FOR_LANES(i, mask) {
    const pe_texture *texture = pe_texture_lookup(table_of(w), handle[i]);
    if (texture && texture->state == wanted) live |= 1u << i;
  }
  return live;
}
