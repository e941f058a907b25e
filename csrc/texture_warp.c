/* texture_warp.c: one texture instruction of a warp.
 *
 * Lanes with the same texture and sampler form a run.  A run is served level by level: coordinates become texel indices
 * axis by axis (texture_axis.h), those become byte offsets of the texels of each footprint, whose components are read and
 * added up (texture_texel.h).  Every step computes all 32 lanes, on indices that are valid whatever the lane holds; only
 * the results of the run's lanes are kept.
 */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-trapping-math") /* the loops over lanes become vectors */
#endif
#include <stdio.h>
#include "atomic.h"
#include "internal.h"
#include "layout.h"
#include "surface_access.h"
#include "texture.h"
#include "texture_axis.h"
#include "texture_cube.h"
#include "texture_flat.h"
#include "texture_texel.h"

#define LANES PE_INLINE
#define CORNERS 8

/* The operands of an instruction; those it lacks are rows of zeros. */
typedef struct operands {
  const uint32_t *x, *y, *z, *layer, *sample, *level;
  const uint32_t *along_x[3], *along_y[3]; /* gradients */
  const int32_t *offset[3];
} operands;

typedef struct run {
  const pe_texture *texture;
  const pe_texture_site *site;
  operands in;
  pe_sampler sampler;     /* in force */
  uint32_t mask;
  uint32_t wanted;        /* components to compute */
  uint32_t dims;          /* axes of a footprint */
  bool cube;
  double u[3][32];        /* coordinates; on cubes those in the face */
  uint32_t layer[32];     /* a layer of memory */
  uint32_t face[32];
  uint32_t level[32];
  double level_part[32];  /* weight of the next level */
  uint32_t *out;
} run;

/* The texels under one sample of every lane. */
typedef struct footprint {
  uint32_t corners;
  bool border;            /* some may be outside */
  uint64_t offset[CORNERS][32];
  uint32_t outside[CORNERS][32];
  double weight[CORNERS][32];
} footprint;

static const uint32_t zeros[32];

/* ---- operands ------------------------------------------------------------------------------------------------------- */

/* Which operands a geometry has. */
typedef struct shape {
  uint32_t coordinates, dims;
  bool array, sample, cube;
} shape;

LANES shape shape_of(uint32_t geom) {
  switch (geom) {
    case PE_GEOM_1D:
    case PE_GEOM_1D_BUFFER: return (shape){1, 1, false, false, false};
    case PE_GEOM_2D: return (shape){2, 2, false, false, false};
    case PE_GEOM_3D: return (shape){3, 3, false, false, false};
    case PE_GEOM_A1D: return (shape){1, 1, true, false, false};
    case PE_GEOM_A2D: return (shape){2, 2, true, false, false};
    case PE_GEOM_CUBE: return (shape){3, 2, false, false, true};
    case PE_GEOM_ACUBE: return (shape){3, 2, true, false, true};
    case PE_GEOM_2DMS: return (shape){2, 2, false, true, false};
    default: return (shape){2, 2, true, true, false};
  }
}

static const uint32_t *take(const uint32_t **rows, bool present) {
  const uint32_t *row = *rows;
  if (!present) return zeros;
  *rows += 32;
  return row;
}

static operands operands_of(const pe_texture_site *site, const uint32_t *rows) {
  shape g = shape_of(site->geom);
  bool gradients = site->lod == PE_LOD_GRADIENT;
  operands in;
  in.x = take(&rows, true);
  in.y = take(&rows, g.coordinates > 1);
  in.z = take(&rows, g.coordinates > 2);
  in.layer = take(&rows, g.array);
  in.sample = take(&rows, g.sample);
  in.level = take(&rows, site->lod == PE_LOD_LEVEL);
  for (uint32_t k = 0; k < 3; k++) in.along_x[k] = take(&rows, gradients && k < g.coordinates);
  for (uint32_t k = 0; k < 3; k++) in.along_y[k] = take(&rows, gradients && k < g.coordinates);
  for (uint32_t k = 0; k < 3; k++) in.offset[k] = (const int32_t *)take(&rows, site->offsets && k < g.dims);
  return in;
}

/* ---- mip levels ----------------------------------------------------------------------------------------------------- */

static double squared(double value) { return value * value; }

/* The gradients of lane i's position, in texels of level 0, along one direction on the screen: their length squared. */
static double stretch(const run *r, const uint32_t *const along[3], uint32_t i) {
  const pe_surface_desc *d = &r->texture->memory;
  double extents[3] = {d->width, d->height, d->depth}, sum = 0, slope[3];
  for (uint32_t k = 0; k < 3; k++) slope[k] = pe_float(along[k][i]);
  if (r->cube) { /* the quotient rule, as s = (component / out + 1) / 2 */
    pe_facing at = pe_see(r->face[i], pe_float(r->in.x[i]), pe_float(r->in.y[i]), pe_float(r->in.z[i]));
    pe_facing by = pe_see(r->face[i], slope[0], slope[1], slope[2]);
    slope[0] = 0.5 * (by.s * at.out - at.s * by.out) / squared(at.out);
    slope[1] = 0.5 * (by.t * at.out - at.t * by.out) / squared(at.out);
  }
  for (uint32_t k = 0; k < r->dims; k++) sum += squared(slope[k] * (r->sampler.normalized ? extents[k] : 1));
  return sum;
}

/* log2 of the longer gradient. */
static double gradient_level(const run *r, uint32_t i) {
  double x = stretch(r, r->in.along_x, i), y = stretch(r, r->in.along_y, i);
  return 0.5 * log2(x > y ? x : y);
}

static void find_levels(run *r) {
  const pe_sampler *s = &r->sampler;
  uint32_t levels = r->texture->memory.levels;
  double most = s->max_level < levels - 1 ? s->max_level : levels - 1;
  double least = s->min_level > 0 ? s->min_level : 0;
  memset(r->level, 0, sizeof r->level);
  memset(r->level_part, 0, sizeof r->level_part);
  if (levels == 1) return;
  if (least > most) least = most;
  PE_FOR_LANES(i, r->mask) {
    double at = r->site->integer ? 0 : least;
    if (r->site->integer && r->site->lod == PE_LOD_LEVEL)
      at = (int32_t)r->in.level[i];
    else if (r->site->lod == PE_LOD_LEVEL)
      at = pe_float(r->in.level[i]) + s->bias;
    else if (r->site->lod == PE_LOD_GRADIENT)
      at = gradient_level(r, i) + s->bias;
    double low = r->site->integer ? 0 : least, high = r->site->integer ? levels - 1 : most;
    at = at > low ? at : low; /* and NaN */
    at = at < high ? at : high;
    if (s->mip_filter == PE_FILTER_LINEAR && !r->site->integer) {
      double fixed = floor(at * 256 + 0.5);
      r->level[i] = (uint32_t)(fixed / 256);
      r->level_part[i] = fixed / 256 - r->level[i];
    } else {
      r->level[i] = (uint32_t)(at + 0.5);
    }
  }
}

/* ---- coordinates ---------------------------------------------------------------------------------------------------- */

static void face_coordinates(run *r) {
  for (uint32_t i = 0; i < 32; i++) {
    double x = pe_float(r->in.x[i]), y = pe_float(r->in.y[i]), z = pe_float(r->in.z[i]);
    r->face[i] = pe_face_of(x, y, z);
    pe_facing f = pe_see(r->face[i], x, y, z);
    double s = (f.s / f.out + 1) / 2, t = (f.t / f.out + 1) / 2;
    r->u[0][i] = s == s ? s : 0.5; /* no direction at all */
    r->u[1][i] = t == t ? t : 0.5;
  }
}

LANES void read_coordinates(run *r) {
  if (r->site->integer) return;
  if (r->cube) {
    face_coordinates(r);
    return;
  }
  const uint32_t *rows[] = {r->in.x, r->in.y, r->in.z};
  for (uint32_t k = 0; k < r->dims; k++)
    for (uint32_t i = 0; i < 32; i++) r->u[k][i] = pe_float(rows[k][i]);
}

/* Layers of memory: array indices and samples are clamped. */
LANES void find_layers(run *r) {
  const pe_texture *t = r->texture;
  uint32_t inner = r->cube ? 6 : t->samples, last = t->memory.layers / inner - 1, most = inner - 1;
  if (t->memory.layers == 1) {
    memset(r->layer, 0, sizeof r->layer);
    return;
  }
  for (uint32_t i = 0; i < 32; i++) {
    uint32_t index = r->in.layer[i] < last ? r->in.layer[i] : last;
    uint32_t within = r->in.sample[i] < most ? r->in.sample[i] : most;
    r->layer[i] = index * inner + (r->cube ? 0 : within);
  }
}

/* ---- footprints ----------------------------------------------------------------------------------------------------- */

LANES pe_axis_rule rule_of(const run *r, const pe_surface_level *level, uint32_t k) {
  uint32_t extents[3] = {level->width, level->height, level->depth};
  return pe_rule(r->cube ? PE_ADDRESS_CLAMP : r->sampler.address[k], r->sampler.normalized, extents[k], r->in.offset[k]);
}

LANES bool is_linear(const run *r) { return !r->site->integer && (r->site->gather || r->sampler.filter == PE_FILTER_LINEAR); }
LANES bool is_seamless(const run *r) { return r->cube && r->sampler.seamless && is_linear(r); }

/* The texels of one axis. */
LANES void find_axis(const run *r, pe_axis *axis, const pe_surface_level *level, uint32_t k) {
  pe_axis_rule rule = rule_of(r, level, k);
  double p[32];
  if (r->site->integer) {
    const uint32_t *rows[] = {r->in.x, r->in.y, r->in.z};
    pe_axis_integer(axis, rows[k], &rule);
    return;
  }
  pe_positions(p, r->u[k], &rule);
  if (!is_linear(r))
    pe_axis_point(axis, p);
  else if (r->site->gather)
    pe_axis_gather(axis, p);
  else
    pe_axis_linear(axis, p);
  if (is_seamless(r)) return; /* placed corner by corner */
  for (uint32_t n = 0; n < (is_linear(r) ? 2 : 1); n++) pe_place_indices(axis->at[n], axis->outside[n], &rule);
}

/* Byte offsets in the memory of lines of texels along x, without their layer. */
LANES void line_offsets(const run *r, const pe_surface_level *level, uint64_t *restrict to, const int32_t *restrict y,
                        const int32_t *restrict z) {
  const pe_surface_desc *d = &r->texture->memory;
  uint64_t pitch = level->pitch, slice = level->slice_stride, first = level->offset;
  if (d->layout == PE_LAYOUT_BLOCK_LINEAR)
    for (uint32_t i = 0; i < 32; i++) to[i] = pe_row_offset(d, level, (uint32_t)y[i], (uint32_t)z[i]);
  else
    for (uint32_t i = 0; i < 32; i++) to[i] = first + (uint32_t)y[i] * pitch + (uint32_t)z[i] * slice;
}

LANES void column_offsets(const run *r, const pe_surface_level *level, uint64_t *restrict to, const int32_t *restrict x) {
  const pe_surface_desc *d = &r->texture->memory;
  uint64_t bytes = d->elem_bytes;
  if (d->layout == PE_LAYOUT_BLOCK_LINEAR)
    for (uint32_t i = 0; i < 32; i++) to[i] = pe_column_offset(d, level, (uint32_t)x[i] * bytes);
  else
    for (uint32_t i = 0; i < 32; i++) to[i] = (uint32_t)x[i] * bytes;
}

/* The corners of a footprint: bit 0 of a corner's number is its x, bit 1 y, bit 2 z. */
LANES void plain_corners(const run *r, footprint *f, const pe_surface_level *level, const pe_axis axis[3]) {
  const pe_surface_desc *d = &r->texture->memory;
  uint64_t column[2][32], line[32], layers[32];
  uint32_t steps = is_linear(r) ? 2 : 1;
  for (uint32_t i = 0; i < 32; i++) layers[i] = (uint64_t)(r->layer[i] + (r->cube ? r->face[i] : 0)) * d->layer_stride;
  for (uint32_t n = 0; n < steps; n++) column_offsets(r, level, column[n], axis[0].at[n]);
  for (uint32_t c = 0; c < f->corners; c += steps) {
    uint32_t y = c >> 1 & 1, z = c >> 2 & 1;
    line_offsets(r, level, line, r->dims > 1 ? axis[1].at[y] : (const int32_t *)zeros,
                 r->dims > 2 ? axis[2].at[z] : (const int32_t *)zeros);
    for (uint32_t n = 0; n < steps; n++)
      for (uint32_t i = 0; i < 32; i++) f->offset[c + n][i] = layers[i] + line[i] + column[n][i];
  }
  if (!f->border) return;
  for (uint32_t c = 0; c < f->corners; c++)
    for (uint32_t i = 0; i < 32; i++) {
      uint32_t outside = axis[0].outside[c & 1][i];
      if (r->dims > 1) outside |= axis[1].outside[c >> 1 & 1][i];
      if (r->dims > 2) outside |= axis[2].outside[c >> 2 & 1][i];
      f->outside[c][i] = outside;
    }
}

LANES void corner_weights(const run *r, footprint *f, const pe_axis axis[3]) {
  for (uint32_t c = 0; c < f->corners; c++)
    for (uint32_t i = 0; i < 32; i++) {
      double weight = c & 1 ? axis[0].part[i] : 1 - axis[0].part[i];
      if (r->dims > 1) weight *= c & 2 ? axis[1].part[i] : 1 - axis[1].part[i];
      if (r->dims > 2) weight *= c & 4 ? axis[2].part[i] : 1 - axis[2].part[i];
      f->weight[c][i] = weight;
    }
}

/* Corners that may lie on other faces.  No texel lies over a corner of the cube: the other three share its weight. */
static void seamless_corners(const run *r, footprint *f, const pe_surface_level *level, const pe_axis axis[3]) {
  int32_t n = (int32_t)level->width;
  for (uint32_t i = 0; i < 32; i++)
    for (uint32_t c = 0; c < 4; c++) {
      int32_t x = axis[0].at[c & 1][i], y = axis[1].at[c >> 1][i];
      bool x_out = x < 0 || x >= n, y_out = y < 0 || y >= n;
      uint32_t face = r->face[i];
      if (x_out && y_out) {
        x = x < 0 ? 0 : n - 1, y = y < 0 ? 0 : n - 1;
        double share = f->weight[c][i] / 3;
        for (uint32_t other = 0; other < 4; other++) f->weight[other][i] += share;
        f->weight[c][i] = 0;
      } else if (x_out || y_out) {
        pe_over_edge(&face, &x, &y, n);
      }
      uint32_t level_index = (uint32_t)(level - r->texture->memory.level);
      f->offset[c][i] = pe_surface_offset(&r->texture->memory, level_index, (uint64_t)x * r->texture->memory.elem_bytes,
                                          (uint64_t)y, 0, r->layer[i] + face);
    }
}

LANES void find_footprint(const run *r, footprint *f, uint32_t index) {
  const pe_surface_level *level = &r->texture->memory.level[index];
  pe_axis axis[3];
  f->corners = is_linear(r) ? 1u << r->dims : 1;
  f->border = r->site->integer;
  for (uint32_t k = 0; k < r->dims; k++) {
    find_axis(r, &axis[k], level, k);
    f->border |= rule_of(r, level, k).mode == PE_ADDRESS_BORDER;
  }
  if (f->border && !r->site->integer)
    for (uint32_t k = 0; k < r->dims; k++)
      if (rule_of(r, level, k).mode != PE_ADDRESS_BORDER) memset(axis[k].outside, 0, sizeof axis[k].outside);
  if (is_linear(r) && !r->site->gather) corner_weights(r, f, axis);
  if (is_seamless(r))
    seamless_corners(r, f, level, axis);
  else
    plain_corners(r, f, level, axis);
}

/* ---- components ----------------------------------------------------------------------------------------------------- */

LANES bool is_srgb(const run *r, uint32_t component) { return r->texture->srgb && component < 3; }

/* What reads of texels outside give: nothing at integer coordinates, else the border colour. */
LANES float border_of(const run *r, uint32_t component) { return r->site->integer ? 0 : r->sampler.border[component]; }

/* The value of a component of one corner, in register bits. */
LANES void corner_bits(const run *r, const footprint *f, const pe_words *words, uint32_t corner, uint32_t component,
                       uint32_t *restrict bits) {
  const pe_texture *t = r->texture;
  int32_t place = pe_component_place(&t->memory, component);
  if (place < 0) {
    for (uint32_t i = 0; i < 32; i++) bits[i] = pe_absent_bits(r->texture, component);
  } else {
    pe_texel_bits(bits, words, (uint32_t)place, t->memory.bits, t->kind);
    if (t->kind == PE_KIND_UNORM || t->kind == PE_KIND_SNORM) {
      double number[32];
      pe_texel_number(number, bits, t->kind, is_srgb(r, component));
      pe_number_bits(bits, number, pe_kind_scale(t, is_srgb(r, component)));
    }
    if (f->border) {
      bool integers = t->kind == PE_KIND_UINT || t->kind == PE_KIND_SINT;
      uint32_t border = integers ? 0 : pe_float_bits(border_of(r, component));
      for (uint32_t i = 0; i < 32; i++) bits[i] = f->outside[corner][i] ? border : bits[i];
    }
  }
  if (r->site->integer)
    for (uint32_t i = 0; i < 32; i++) bits[i] = f->outside[corner][i] ? 0 : bits[i];
}

/* Add the filtered value of every wanted component, as a number, to sum. */
LANES void add_filtered(const run *r, const footprint *f, const double *restrict part, double sum[4][32]) {
  const pe_texture *t = r->texture;
  for (uint32_t c = 0; c < f->corners; c++) {
    pe_words words;
    double weight[32];
    for (uint32_t i = 0; i < 32; i++) weight[i] = f->corners == 1 ? part[i] : f->weight[c][i] * part[i];
    pe_read_texels(&words, t->memory.base, f->offset[c], t->memory.elem_bytes);
    for (uint32_t k = 0; k < 4; k++) {
      int32_t place = pe_component_place(&t->memory, k);
      if (place < 0 || !(r->wanted >> k & 1)) continue;
      uint32_t bits[32];
      double number[32];
      pe_texel_bits(bits, &words, (uint32_t)place, t->memory.bits, t->kind);
      pe_texel_number(number, bits, t->kind, is_srgb(r, k));
      if (f->border) {
        double border = border_of(r, k) * pe_kind_scale(t, is_srgb(r, k));
        for (uint32_t i = 0; i < 32; i++) number[i] = f->outside[c][i] ? border : number[i];
      }
      for (uint32_t i = 0; i < 32; i++) sum[k][i] += weight[i] != 0 ? weight[i] * number[i] : 0;
    }
  }
}

/* ---- results -------------------------------------------------------------------------------------------------------- */

/* Keep component k of the lanes of mask, in ascending order of k. */
LANES void keep(const run *r, uint32_t k, uint32_t mask, const uint32_t *restrict bits) {
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
    default:
      PE_FOR_LANES(i, mask) pair[i] = k & 1 ? pair[i] | (uint32_t)pe_f16_bits(bits[i]) << 16 : pe_f16_bits(bits[i]);
  }
}

/* Lanes of one level, nothing to add up. */
LANES void sample_point(const run *r, uint32_t level, uint32_t mask) {
  footprint f;
  pe_words words;
  find_footprint(r, &f, level);
  pe_read_texels(&words, r->texture->memory.base, f.offset[0], r->texture->memory.elem_bytes);
  for (uint32_t k = 0; k < 4; k++) {
    uint32_t bits[32];
    if (!(r->wanted >> k & 1)) continue;
    corner_bits(r, &f, &words, 0, k, bits);
    keep(r, k, mask, bits);
  }
}

/* tld4: one component of four texels, counter-clockwise from the lower left. */
LANES void sample_gather(const run *r, uint32_t level, uint32_t mask) {
  static const uint32_t order[] = {2, 3, 1, 0};
  footprint f;
  find_footprint(r, &f, level);
  for (uint32_t k = 0; k < 4; k++) {
    pe_words words;
    uint32_t bits[32];
    if (!(r->wanted >> k & 1)) continue;
    pe_read_texels(&words, r->texture->memory.base, f.offset[order[k]], r->texture->memory.elem_bytes);
    corner_bits(r, &f, &words, order[k], r->site->gather - 1u, bits);
    keep(r, k, mask, bits);
  }
}

/* Levels from `level` on that lanes of the mask use; the first of them is taken out of the mask. */
static uint32_t same_level(const run *r, uint32_t *mask, uint32_t *level) {
  uint32_t found = 0;
  *level = r->level[__builtin_ctz(*mask)];
  if (r->texture->memory.levels == 1) {
    found = *mask;
    *mask = 0;
    return found;
  }
  PE_FOR_LANES(i, *mask) if (r->level[i] == *level) found |= 1u << i;
  *mask &= ~found;
  return found;
}

/* Weighted sums, over both levels where a lane lies between two. */
LANES void sample_filtered(const run *r) {
  double sum[4][32] = {{0}}, part[32], next[32];
  footprint f;
  uint32_t bits[32];
  for (uint32_t rest = r->mask; rest;) {
    uint32_t level, between = 0, lanes = same_level(r, &rest, &level);
    for (uint32_t i = 0; i < 32; i++) {
      uint32_t here = lanes >> i & 1;
      part[i] = here ? 1 - r->level_part[i] : 0;
      next[i] = here ? r->level_part[i] : 0;
      between |= next[i] != 0;
    }
    find_footprint(r, &f, level);
    add_filtered(r, &f, part, sum);
    if (!between) continue;
    find_footprint(r, &f, level + 1);
    add_filtered(r, &f, next, sum);
  }
  for (uint32_t k = 0; k < 4; k++) {
    if (!(r->wanted >> k & 1)) continue;
    if (pe_component_place(&r->texture->memory, k) >= 0)
      pe_number_bits(bits, sum[k], pe_kind_scale(r->texture, is_srgb(r, k)));
    else
      for (uint32_t i = 0; i < 32; i++) bits[i] = pe_absent_bits(r->texture, k);
    keep(r, k, r->mask, bits);
  }
}

static bool sample_flat(const run *r) {
  if (!pe_flat_fits(r->site, r->texture, &r->sampler)) return false;
  return pe_flat_fetch(&(pe_flat){r->texture, &r->sampler, r->mask, r->wanted, r->in.x, r->in.y, r->out});
}

PE_WIDE static void sample(run *r) {
  read_coordinates(r);
  find_layers(r);
  find_levels(r);
  bool filters = r->sampler.filter == PE_FILTER_LINEAR || r->sampler.mip_filter == PE_FILTER_LINEAR;
  if (filters && !r->site->integer && !r->site->gather) {
    sample_filtered(r);
    return;
  }
  for (uint32_t rest = r->mask; rest;) {
    uint32_t level, lanes = same_level(r, &rest, &level);
    if (r->site->gather)
      sample_gather(r, level, lanes);
    else
      sample_point(r, level, lanes);
  }
}

/* ---- one run -------------------------------------------------------------------------------------------------------- */

/* May an instruction of geometry `access` read a texture of geometry `texture`?  Coordinates beyond the texture's find an
 * extent of one; a cube can be read face by face. */
static bool geometry_fits(uint32_t access, uint32_t texture) {
  shape a = shape_of(access), t = shape_of(texture);
  if (a.cube || a.sample || t.sample) return access == texture;
  if (t.cube) return access == PE_GEOM_A2D;
  return a.dims >= t.dims && (a.array || !t.array);
}

/* PE_OK, or what keeps the sampler in force from reading the texture. */
static uint32_t admit(const run *r, const pe_texture *sampler) {
  if (!r->texture || r->texture->state == PE_TEXTURE_SAMPLER) return PE_INVALID_TEXTURE;
  if (r->texture->state == PE_TEXTURE_UNBOUND) return PE_UNBOUND_TEXTURE;
  if (!sampler) return PE_INVALID_TEXTURE;
  if (sampler->state == PE_TEXTURE_UNBOUND) return PE_UNBOUND_TEXTURE;
  if (sampler != r->texture && sampler->state != PE_TEXTURE_SAMPLER) return PE_INVALID_TEXTURE;
  if (!geometry_fits(r->site->geom, r->texture->geom)) return PE_TEXTURE_GEOMETRY;
  bool integers = r->texture->kind == PE_KIND_UINT || r->texture->kind == PE_KIND_SINT;
  bool filters = sampler->sampler.filter == PE_FILTER_LINEAR || sampler->sampler.mip_filter == PE_FILTER_LINEAR;
  if (integers && (r->site->result != PE_RESULT_B32 || (filters && !r->site->integer && !r->site->gather)))
    return PE_TEXTURE_FORMAT;
  return PE_OK;
}

static void raise_fault(pe_warp *w, const run *r, uint32_t kind, uint64_t texture, const uint64_t *sampler) {
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

void pe_tex(pe_warp *w, const pe_texture_site *site, uint32_t mask, const uint64_t *texture, const uint64_t *sampler,
            const uint32_t *rows, uint32_t *out) {
  const pe_texture_table *table = table_of(w);
  run r; /* not all of it is needed, and most is large */
  r.site = site, r.in = operands_of(site, rows), r.wanted = site->wanted, r.out = out;
  r.dims = shape_of(site->geom).dims, r.cube = shape_of(site->geom).cube;
  while (mask) {
    uint32_t first = (uint32_t)__builtin_ctz(mask);
    r.mask = pe_same_handle(texture, mask);
    if (sampler) r.mask = pe_same_handle(sampler, r.mask);
    mask &= ~r.mask;
    r.texture = pe_texture_lookup(table, texture[first]);
    const pe_texture *used = sampler ? pe_texture_lookup(table, sampler[first]) : r.texture;
    uint32_t status = admit(&r, used);
    if (status != PE_OK) raise_fault(w, &r, status, texture[first], sampler);
    r.sampler = used->sampler;
    r.sampler.normalized &= r.texture->sampler.normalized;
    if (!sample_flat(&r)) sample(&r);
  }
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
