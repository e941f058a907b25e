/* texture_run.h: the lanes of a texture instruction that share texture and sampler: operands, mip levels, coordinates. */
#ifndef PTXEMU_TEXTURE_RUN_H
#define PTXEMU_TEXTURE_RUN_H
#include <math.h>
#include <string.h>
#include "texture.h"
#include "texture_cube.h"

/* The operands of an instruction; those it lacks are rows of zeros. */
typedef struct pe_tex_operands {
  const uint32_t *x, *y, *z, *layer, *sample, *level;
  const uint32_t *along_x[3], *along_y[3]; /* gradients */
  const int32_t *offset[3];
} pe_tex_operands;

typedef struct pe_tex_run {
  const pe_warp *w;
  const pe_texture *texture;
  const pe_texture_site *site;
  pe_tex_operands in;
  pe_sampler sampler; /* in force */
  uint32_t mask;
  uint32_t wanted; /* components to compute */
  uint32_t dims;   /* axes of a footprint */
  bool cube;
  double u[3][32];    /* coordinates; on cubes those in the face */
  uint32_t layer[32]; /* a layer of memory */
  uint32_t face[32];
  uint32_t level[32];
  int32_t level_part[32]; /* weight of the next level in 256ths */
  uint32_t lost[32];      /* whether the lane's level or layer, counted by integers, is not there */
  uint32_t *out;
} pe_tex_run;

static const uint32_t pe_no_operand[32];

/* ---- operands ------------------------------------------------------------------------------------------------------- */

/* Which operands a geometry has. */
typedef struct pe_tex_shape {
  uint32_t coordinates, dims;
  bool array, sample, cube;
} pe_tex_shape;

PE_INLINE pe_tex_shape pe_tex_shape_of(uint32_t geom) {
  switch (geom) {
    case PE_GEOM_1D:
    case PE_GEOM_1D_BUFFER: return (pe_tex_shape){1, 1, false, false, false};
    case PE_GEOM_2D: return (pe_tex_shape){2, 2, false, false, false};
    case PE_GEOM_3D: return (pe_tex_shape){3, 3, false, false, false};
    case PE_GEOM_A1D: return (pe_tex_shape){1, 1, true, false, false};
    case PE_GEOM_A2D: return (pe_tex_shape){2, 2, true, false, false};
    case PE_GEOM_CUBE: return (pe_tex_shape){3, 2, false, false, true};
    case PE_GEOM_ACUBE: return (pe_tex_shape){3, 2, true, false, true};
    case PE_GEOM_2DMS: return (pe_tex_shape){2, 2, false, true, false};
    default: return (pe_tex_shape){2, 2, true, true, false};
  }
}

static const uint32_t *pe_take(const uint32_t **rows, bool present) {
  const uint32_t *row = *rows;
  if (!present) return pe_no_operand;
  *rows += 32;
  return row;
}

static pe_tex_operands pe_tex_operands_of(const pe_texture_site *site, const uint32_t *rows) {
  pe_tex_shape g = pe_tex_shape_of(site->geom);
  bool gradients = site->lod == PE_LOD_GRADIENT;
  pe_tex_operands in;
  in.x = pe_take(&rows, true);
  in.y = pe_take(&rows, g.coordinates > 1);
  in.z = pe_take(&rows, g.coordinates > 2);
  in.layer = pe_take(&rows, g.array);
  in.sample = pe_take(&rows, g.sample);
  in.level = pe_take(&rows, site->lod == PE_LOD_LEVEL);
  for (uint32_t k = 0; k < 3; k++) in.along_x[k] = pe_take(&rows, gradients && k < g.coordinates);
  for (uint32_t k = 0; k < 3; k++) in.along_y[k] = pe_take(&rows, gradients && k < g.coordinates);
  for (uint32_t k = 0; k < 3; k++) in.offset[k] = (const int32_t *)pe_take(&rows, site->offsets && k < g.dims);
  return in;
}

#define PE_FAR_LEVEL 2048 /* beyond every level, and every bias */

/* ---- mip levels ----------------------------------------------------------------------------------------------------- */

static double pe_squared(double value) { return value * value; }

/* The gradients of lane i's position, in texels of level 0, along one direction on the screen: their length squared. */
static double pe_stretch(const pe_tex_run *r, const uint32_t *const along[3], uint32_t i) {
  const pe_surface_desc *d = &r->texture->memory;
  double extents[3] = {d->width, d->height, d->depth}, sum = 0, slope[3];
  for (uint32_t k = 0; k < 3; k++) slope[k] = pe_float(along[k][i]);
  if (r->cube) { /* the quotient rule, as s = (component / out + 1) / 2 */
    pe_facing at = pe_see(r->face[i], pe_float(r->in.x[i]), pe_float(r->in.y[i]), pe_float(r->in.z[i]));
    pe_facing by = pe_see(r->face[i], slope[0], slope[1], slope[2]);
    slope[0] = 0.5 * (by.s * at.out - at.s * by.out) / pe_squared(at.out);
    slope[1] = 0.5 * (by.t * at.out - at.t * by.out) / pe_squared(at.out);
  }
  for (uint32_t k = 0; k < r->dims; k++) sum += pe_squared(slope[k] * (r->sampler.normalized ? extents[k] : 1));
  return sum;
}

/* log2 of the longer gradient. */
static double pe_gradient_level(const pe_tex_run *r, uint32_t i) {
  double x = pe_stretch(r, r->in.along_x, i), y = pe_stretch(r, r->in.along_y, i);
  return 0.5 * log2(x > y ? x : y);
}

/* A level in 256ths. */
static int32_t pe_level_units(double level) {
  double near = level > -PE_FAR_LEVEL ? level : -PE_FAR_LEVEL; /* not NaN */
  return (int32_t)((near < PE_FAR_LEVEL ? near : PE_FAR_LEVEL) * 256);
}

/* The level of lane i in 256ths, before it is limited. */
static int32_t pe_asked_level(const pe_tex_run *r, uint32_t i) {
  float level = pe_float(r->in.level[i]);
  if (r->site->lod == PE_LOD_LEVEL) return pe_level_units(level == level ? level : 0) + pe_level_units(r->sampler.bias);
  if (r->site->lod == PE_LOD_GRADIENT)
    return pe_level_units(floor(pe_gradient_level(r, i) * 256 + 0.5) / 256) + pe_level_units(r->sampler.bias);
  return 0;
}

/* Integer levels: those that are not there have no texels. */
static void pe_find_counted_levels(pe_tex_run *r) {
  if (r->site->lod != PE_LOD_LEVEL) return;
  for (uint32_t i = 0; i < 32; i++) {
    r->lost[i] = r->in.level[i] >= r->texture->memory.levels;
    r->level[i] = r->lost[i] ? 0 : r->in.level[i];
  }
}

static void pe_find_levels(pe_tex_run *r) {
  const pe_sampler *s = &r->sampler;
  int32_t last = (int32_t)(r->texture->memory.levels - 1) * 256;
  int32_t least = pe_level_units(s->min_level), most = pe_level_units(s->max_level);
  memset(r->level, 0, sizeof r->level);
  memset(r->level_part, 0, sizeof r->level_part);
  memset(r->lost, 0, sizeof r->lost);
  if (r->site->integer) {
    pe_find_counted_levels(r);
    return;
  }
  if (!last || r->site->gather) return; /* a gather reads level 0 */
  PE_FOR_LANES(i, r->mask) {
    int32_t at = pe_asked_level(r, i);
    at = at < most ? at : most;
    at = at > least ? at : least;
    at = at < 0 ? 0 : at < last ? at : last;
    if (s->mip_filter == PE_FILTER_LINEAR) {
      r->level[i] = (uint32_t)at >> 8;
      r->level_part[i] = at & 255;
    } else {
      r->level[i] = (uint32_t)(at + 128) >> 8;
    }
  }
}

/* ---- coordinates ---------------------------------------------------------------------------------------------------- */

static void pe_face_coordinates(pe_tex_run *r) {
  for (uint32_t i = 0; i < 32; i++) {
    double x = pe_float(r->in.x[i]), y = pe_float(r->in.y[i]), z = pe_float(r->in.z[i]);
    r->face[i] = pe_face_of(x, y, z);
    pe_facing f = pe_see(r->face[i], x, y, z);
    double s = (f.s / f.out + 1) / 2, t = (f.t / f.out + 1) / 2;
    r->u[0][i] = s == s ? s : 0.5; /* no direction at all */
    r->u[1][i] = t == t ? t : 0.5;
  }
}

PE_INLINE void pe_read_coordinates(pe_tex_run *r) {
  if (r->site->integer) return;
  if (r->cube) {
    pe_face_coordinates(r);
    return;
  }
  const uint32_t *rows[] = {r->in.x, r->in.y, r->in.z};
  for (uint32_t k = 0; k < r->dims; k++)
    for (uint32_t i = 0; i < 32; i++) r->u[k][i] = pe_float(rows[k][i]);
}

/* Layers of memory: array indices and samples are clamped; integer coordinates without a level have no texels in a layer that is
 * not there. */
PE_INLINE void pe_find_layers(pe_tex_run *r) {
  const pe_texture *t = r->texture;
  uint32_t inner = r->cube ? 6 : t->samples, last = t->memory.layers / inner - 1, most = inner - 1;
  bool counted = r->site->integer && r->site->lod != PE_LOD_LEVEL;
  for (uint32_t i = 0; i < 32; i++) {
    uint32_t index = r->in.layer[i] < last ? r->in.layer[i] : last;
    uint32_t within = r->in.sample[i] < most ? r->in.sample[i] : most;
    r->layer[i] = index * inner + (r->cube ? 0 : within);
    r->lost[i] |= counted && r->in.layer[i] > last;
  }
}

#endif
