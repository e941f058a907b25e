/* texture_level.h: the mip levels that the lanes of a run read. */
#ifndef PTXEMU_TEXTURE_LEVEL_H
#define PTXEMU_TEXTURE_LEVEL_H
#include "texture_slope.h"

/* A level in 256ths, cut. */
PE_INLINE int32_t pe_level_units(float level) {
  float near = level > -PE_FAR_LEVEL ? level : -PE_FAR_LEVEL; /* not NaN */
  return (int32_t)((near < PE_FAR_LEVEL ? near : PE_FAR_LEVEL) * 256);
}

#define PE_MOST_BIAS 15

/* The levels in 256ths, before they are limited. */
PE_INLINE void pe_asked_levels(const pe_tex_run *r, int32_t *restrict asked) {
  uint32_t lod = r->site->lod;
  int32_t bias = lod == PE_LOD_LEAST ? 0 : pe_level_units(fminf(r->sampler.bias, PE_MOST_BIAS));
  memset(asked, 0, PE_LANES * sizeof *asked);
  if (lod == PE_LOD_GRADIENT) pe_slope_levels(r, asked);
  if (lod == PE_LOD_LEVEL)
    for (uint32_t i = 0; i < PE_LANES; i++) {
      float level = pe_float(r->in.level[i]);
      asked[i] = pe_level_units(level == level ? level : 0);
    }
  for (uint32_t i = 0; i < PE_LANES; i++) asked[i] += bias;
}

/* Integer levels: those that are not there have no texels. */
static void pe_find_counted_levels(pe_tex_run *r) {
  if (r->site->lod != PE_LOD_LEVEL) return;
  for (uint32_t i = 0; i < 32; i++) {
    r->lost[i] = r->in.level[i] >= r->texture->memory.levels;
    r->level[i] = r->lost[i] ? 0 : r->in.level[i];
  }
}

PE_INLINE void pe_find_levels(pe_tex_run *r) {
  const pe_sampler *s = &r->sampler;
  int32_t last = (int32_t)(r->texture->memory.levels - 1) * 256, asked[PE_LANES];
  int32_t least = pe_level_units(s->min_level), most = pe_level_units(s->max_level);
  memset(r->level, 0, sizeof r->level);
  memset(r->level_part, 0, sizeof r->level_part);
  memset(r->lost, 0, sizeof r->lost);
  if (r->site->integer) {
    pe_find_counted_levels(r);
    return;
  }
  if (!last || r->site->gather) return; /* a gather reads level 0 */
  pe_asked_levels(r, asked);
  bool between = s->mip_filter == PE_FILTER_LINEAR;
  for (uint32_t i = 0; i < PE_LANES; i++) {
    int32_t at = asked[i];
    at = at < most ? at : most;
    at = at > least ? at : least;
    at = at < 0 ? 0 : at < last ? at : last;
    r->level[i] = (uint32_t)(between ? at : at + 128) >> 8;
    r->level_part[i] = between ? at & 255 : 0;
  }
}

#endif
