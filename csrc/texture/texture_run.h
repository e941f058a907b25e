/* texture_run.h: the lanes of a texture instruction that share texture and sampler: operands and coordinates. */
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
  }
  if (!counted) return;
  for (uint32_t i = 0; i < 32; i++) r->lost[i] |= r->in.layer[i] > last;
}

#endif
