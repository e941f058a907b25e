/* texture_footprint.h: the texels under a sample of each lane of a run: byte offsets, weights, which are outside. */
#ifndef PTXEMU_TEXTURE_FOOTPRINT_H
#define PTXEMU_TEXTURE_FOOTPRINT_H
#include "layout.h"
#include "surface_access.h"
#include "texture_axis.h"
#include "texture_run.h"

#define PE_CORNERS 8

/* The texels under one sample of every lane. */
typedef struct pe_footprint {
  uint32_t corners;
  bool border; /* some may be outside */
  uint64_t offset[PE_CORNERS][32];
  uint32_t outside[PE_CORNERS][32];
  uint32_t shared;                /* lanes of which a corner lies over one of the cube, where no texel is */
  int32_t weight[PE_CORNERS][32]; /* in 256ths */
} pe_footprint;

PE_INLINE pe_axis_rule pe_rule_of(const pe_tex_run *r, const pe_surface_level *level, uint32_t k) {
  uint32_t extents[3] = {level->width, level->height, level->depth};
  return pe_rule(r->cube && r->sampler.seamless ? PE_ADDRESS_CLAMP : r->sampler.address[k], r->sampler.normalized,
                 extents[k], r->in.offset[k]);
}

PE_INLINE bool pe_is_linear(const pe_tex_run *r) {
  return !r->site->integer && (r->site->gather || r->sampler.filter == PE_FILTER_LINEAR);
}
PE_INLINE bool pe_is_seamless(const pe_tex_run *r) { return r->cube && r->sampler.seamless && pe_is_linear(r); }

/* The texels of one axis. */
PE_INLINE void pe_find_axis(const pe_tex_run *r, pe_axis *axis, const pe_surface_level *level, uint32_t k) {
  pe_axis_rule rule = pe_rule_of(r, level, k);
  double p[32];
  if (r->site->integer) {
    const uint32_t *rows[] = {r->in.x, r->in.y, r->in.z};
    pe_axis_integer(axis, rows[k], &rule, r->site->lod == PE_LOD_LEVEL);
    return;
  }
  pe_positions(p, r->u[k], &rule);
  if (pe_is_linear(r))
    pe_axis_linear(axis, p);
  else
    pe_axis_point(axis, p);
  if (pe_is_seamless(r)) return; /* placed corner by corner */
  for (uint32_t n = 0; n < (pe_is_linear(r) ? 2 : 1); n++) pe_place_indices(axis->at[n], axis->outside[n], &rule);
}

/* Byte offsets in the memory of lines of texels along x, without their layer. */
PE_INLINE void pe_line_offsets(const pe_tex_run *r, const pe_surface_level *level, uint64_t *restrict to,
                               const int32_t *restrict y, const int32_t *restrict z) {
  const pe_surface_desc *d = &r->texture->memory;
  uint64_t pitch = level->pitch, slice = level->slice_stride, first = level->offset;
  if (d->layout == PE_LAYOUT_BLOCK_LINEAR)
    for (uint32_t i = 0; i < 32; i++) to[i] = pe_row_offset(d, level, (uint32_t)y[i], (uint32_t)z[i]);
  else
    for (uint32_t i = 0; i < 32; i++) to[i] = first + (uint32_t)y[i] * pitch + (uint32_t)z[i] * slice;
}

PE_INLINE void pe_column_offsets(const pe_tex_run *r, const pe_surface_level *level, uint64_t *restrict to,
                                 const int32_t *restrict x) {
  const pe_surface_desc *d = &r->texture->memory;
  uint64_t bytes = d->elem_bytes;
  if (d->layout == PE_LAYOUT_BLOCK_LINEAR)
    for (uint32_t i = 0; i < 32; i++) to[i] = pe_column_offset(d, level, (uint32_t)x[i] * bytes);
  else
    for (uint32_t i = 0; i < 32; i++) to[i] = (uint32_t)x[i] * bytes;
}

/* The corners of a footprint: bit 0 of a corner's number is its x, bit 1 y, bit 2 z. */
PE_INLINE void pe_plain_corners(const pe_tex_run *r, pe_footprint *f, const pe_surface_level *level, const pe_axis axis[3]) {
  const pe_surface_desc *d = &r->texture->memory;
  uint64_t column[2][32], line[32], layers[32];
  uint32_t steps = pe_is_linear(r) ? 2 : 1;
  for (uint32_t i = 0; i < 32; i++) layers[i] = (uint64_t)(r->layer[i] + (r->cube ? r->face[i] : 0)) * d->layer_stride;
  for (uint32_t n = 0; n < steps; n++) pe_column_offsets(r, level, column[n], axis[0].at[n]);
  for (uint32_t c = 0; c < f->corners; c += steps) {
    uint32_t y = c >> 1 & 1, z = c >> 2 & 1;
    pe_line_offsets(r, level, line, r->dims > 1 ? axis[1].at[y] : (const int32_t *)pe_no_operand,
                    r->dims > 2 ? axis[2].at[z] : (const int32_t *)pe_no_operand);
    for (uint32_t n = 0; n < steps; n++)
      for (uint32_t i = 0; i < 32; i++) f->offset[c + n][i] = layers[i] + line[i] + column[n][i];
  }
  if (!f->border) return;
  for (uint32_t c = 0; c < f->corners; c++)
    for (uint32_t i = 0; i < 32; i++) {
      uint32_t outside = r->lost[i] | axis[0].outside[c & 1][i];
      if (r->dims > 1) outside |= axis[1].outside[c >> 1 & 1][i];
      if (r->dims > 2) outside |= axis[2].outside[c >> 2 & 1][i];
      f->outside[c][i] = outside;
    }
}

/* A part of a weight: rounded to nearest, ties up or down. */
PE_INLINE int32_t pe_part_up(int32_t weight, int32_t part) { return (weight * part + 128) >> 8; }
PE_INLINE int32_t pe_part_down(int32_t weight, int32_t part) { return (weight * part + 127) >> 8; }

/* The weight of the second texel of each lane; where both are one, all is the first's. */
PE_INLINE void pe_parts(int32_t *restrict part, const pe_axis *axis, bool border) {
  for (uint32_t i = 0; i < 32; i++) {
    bool one = axis->at[0][i] == axis->at[1][i] && (!border || axis->outside[0][i] == axis->outside[1][i]);
    part[i] = one ? 0 : axis->part[i];
  }
}

/* Weights of the corners, `whole` in all: it is divided along z, then x, then y. */
PE_INLINE void pe_corner_weights(const pe_tex_run *r, pe_footprint *f, const pe_axis axis[3],
                                 const int32_t *restrict whole) {
  int32_t part[3][32] = {{0}};
  for (uint32_t k = 0; k < r->dims; k++) pe_parts(part[k], &axis[k], f->border);
  for (uint32_t c = 0; c < f->corners; c += 4)
    for (uint32_t i = 0; i < 32; i++) {
      int32_t deep = pe_part_down(whole[i], part[2][i]), plane = c ? deep : whole[i] - deep;
      int32_t right = pe_part_up(plane, part[0][i]), left = plane - right;
      int32_t right_up = pe_part_up(right, part[1][i]), left_up = pe_part_down(left, part[1][i]);
      f->weight[c][i] = left - left_up;
      f->weight[c + 1][i] = right - right_up;
      if (r->dims == 1) continue;
      f->weight[c + 2][i] = left_up;
      f->weight[c + 3][i] = right_up;
    }
}

/* No texel lies over a corner of the cube: the other three share its weight. One 256th that is left goes to the opposite one, two to
 * its neighbours. A gather has all of a weight there, and none elsewhere. */
PE_INLINE void pe_share_corner(const pe_tex_run *r, pe_footprint *f, uint32_t i, uint32_t c) {
  f->shared |= 1u << i;
  if (r->site->gather) f->weight[c][i] = 256;
  int32_t share = f->weight[c][i] / 3, left = f->weight[c][i] % 3;
  for (uint32_t k = 1; k < 4; k++) f->weight[c ^ k][i] += share + (k == 3 ? left == 1 : left == 2);
  f->weight[c][i] = 0;
}

/* Corners that may lie on other faces. */
static void pe_seamless_corners(const pe_tex_run *r, pe_footprint *f, const pe_surface_level *level, const pe_axis axis[3]) {
  int32_t n = (int32_t)level->width;
  for (uint32_t i = 0; i < 32; i++)
    for (uint32_t c = 0; c < 4; c++) {
      int32_t x = axis[0].at[c & 1][i], y = axis[1].at[c >> 1][i];
      bool x_out = x < 0 || x >= n, y_out = y < 0 || y >= n;
      uint32_t face = r->face[i];
      if (x_out && y_out) {
        x = x < 0 ? 0 : n - 1, y = y < 0 ? 0 : n - 1;
        pe_share_corner(r, f, i, c);
      } else if (x_out || y_out) {
        pe_over_edge(&face, &x, &y, n);
      }
      uint32_t level_index = (uint32_t)(level - r->texture->memory.level);
      f->offset[c][i] = pe_surface_offset(&r->texture->memory, level_index, (uint64_t)x * r->texture->memory.elem_bytes,
                                          (uint64_t)y, 0, r->layer[i] + face);
    }
}

/* The texels of a level; `whole` are the sums of their weights, NULL if nobody adds them up. */
PE_INLINE void pe_find_footprint(const pe_tex_run *r, pe_footprint *f, uint32_t index, const int32_t *whole) {
  const pe_surface_level *level = &r->texture->memory.level[index];
  pe_axis axis[3];
  f->corners = pe_is_linear(r) ? 1u << r->dims : 1;
  f->border = r->site->integer;
  f->shared = 0;
  for (uint32_t k = 0; k < r->dims; k++) {
    pe_find_axis(r, &axis[k], level, k);
    f->border |= pe_rule_of(r, level, k).mode == PE_ADDRESS_BORDER;
  }
  if (f->border && !r->site->integer)
    for (uint32_t k = 0; k < r->dims; k++)
      if (pe_rule_of(r, level, k).mode != PE_ADDRESS_BORDER) memset(axis[k].outside, 0, sizeof axis[k].outside);
  if (whole && pe_is_linear(r))
    pe_corner_weights(r, f, axis, whole);
  else if (whole)
    memcpy(f->weight[0], whole, sizeof f->weight[0]);
  else
    memset(f->weight, 0, sizeof f->weight);
  if (pe_is_seamless(r))
    pe_seamless_corners(r, f, level, axis);
  else
    pe_plain_corners(r, f, level, axis);
}

#endif
