/* texture_slope.h: the gradients of a run as slopes in its texture.
 *
 * Of 1D and 2D textures they are the operands.  For 3D textures and cubes a driver runs the fetch at the corners of a square of
 * pixels, P, P + dPdx and P + dPdy, so that gradients are differences of coordinates, which were rounded to f32.
 */
#ifndef PTXEMU_TEXTURE_SLOPE_H
#define PTXEMU_TEXTURE_SLOPE_H
#include "internal.h"
#include "texture_gradient.h"
#include "texture_run.h"

PE_INLINE void pe_set_slope(pe_slope *slope, uint32_t k, const float *restrict value, uint32_t extent) {
  static const int32_t unscaled[PE_LANES];
  pe_shorten(&slope->size[k], value, unscaled);
  pe_times_extent(&slope->size[k], extent);
  for (uint32_t i = 0; i < PE_LANES; i++) slope->negative[k][i] = pe_float_bits(value[i]) >> 31;
}

PE_INLINE void pe_plain_slope(const pe_tex_run *r, pe_slope *slope, const uint32_t *const along[3]) {
  const pe_surface_desc *d = &r->texture->memory;
  const uint32_t extents[] = {d->width, d->height, d->depth};
  const uint32_t *coordinates[] = {r->in.x, r->in.y, r->in.z};
  for (uint32_t k = 0; k < r->dims; k++) {
    float value[PE_LANES];
    for (uint32_t i = 0; i < PE_LANES; i++) {
      float here = pe_float(coordinates[k][i]), step = pe_float(along[k][i]), there = here + step;
      value[i] = r->dims == 3 ? there - here : step;
    }
    pe_set_slope(slope, k, value, extents[k]);
  }
}

/* ---- cubes ---------------------------------------------------------------------------------------------------------- */

/* A corner of the square on a cube: a direction whose largest component is one, and the face that it points at. */
typedef struct pe_pixel {
  float x, y, z;
  uint32_t face;
} pe_pixel;

static pe_pixel pe_pixel_of(float x, float y, float z) {
  float inverse = 1 / fmaxf(fmaxf(fabsf(x), fabsf(y)), fabsf(z));
  pe_pixel p = {x * inverse, y * inverse, z * inverse, 0};
  p.face = pe_face_of(p.x, p.y, p.z);
  return p;
}

/* Steps along s and t of a face, half its size long, and where they end behind its edge, the parts there. */
typedef struct pe_steps {
  float within[2][PE_LANES], beyond[2][PE_LANES];
  uint32_t over, opposite; /* lanes that end on another face, and on the opposite one */
} pe_steps;

/* The step of lane i between two pixels.  The face of the other one is folded into the plane of the first one's. */
static void pe_find_step(pe_steps *steps, uint32_t i, pe_pixel from, pe_pixel to) {
  double x, y, z;
  pe_direction((pe_facing){to.face, 0, 0, 1}, &x, &y, &z);
  pe_facing here = pe_see(from.face, from.x, from.y, from.z), there = pe_see(from.face, to.x, to.y, to.z);
  pe_facing edge = pe_see(from.face, x, y, z);
  const double start[] = {here.s, here.t}, end[] = {there.s, there.t}, side[] = {edge.s, edge.t};
  for (uint32_t k = 0; k < 2; k++) {
    steps->within[k][i] = side[k] != 0 ? 1 - (float)(side[k] * start[k]) : (float)end[k] - (float)start[k];
    steps->beyond[k][i] = side[k] != 0 ? 1 - (float)there.out : 0;
  }
  steps->over |= (uint32_t)(from.face != to.face) << i;
  steps->opposite |= (uint32_t)(edge.out < 0) << i;
}

static void pe_find_steps(const pe_tex_run *r, pe_steps *steps, const uint32_t *const along[3]) {
  memset(steps, 0, sizeof *steps);
  PE_FOR_LANES(i, r->mask) {
    float x = pe_float(r->in.x[i]), y = pe_float(r->in.y[i]), z = pe_float(r->in.z[i]);
    pe_pixel to = pe_pixel_of(x + pe_float(along[0][i]), y + pe_float(along[1][i]), z + pe_float(along[2][i]));
    pe_find_step(steps, i, pe_pixel_of(x, y, z), to);
  }
}

PE_INLINE void pe_slope_of_steps(pe_slope *slope, const pe_steps *steps, uint32_t extent) {
  static const uint32_t positive[PE_LANES];
  int32_t half[PE_LANES];
  for (uint32_t i = 0; i < PE_LANES; i++) half[i] = -1;
  for (uint32_t k = 0; k < 2; k++) {
    pe_shorts within, beyond;
    pe_shorten(&within, steps->within[k], half);
    pe_shorten(&beyond, steps->beyond[k], half);
    pe_times_extent(&within, extent);
    pe_times_extent(&beyond, extent);
    pe_add_shorts(&slope->size[k], &within, &beyond, positive);
    for (uint32_t i = 0; i < PE_LANES; i++) slope->negative[k][i] = pe_float_bits(steps->within[k][i]) >> 31;
  }
}

/* ---- levels --------------------------------------------------------------------------------------------------------- */

/* The level of each lane that follows from its gradients, in 256ths. */
PE_INLINE void pe_slope_levels(const pe_tex_run *r, int32_t *restrict level) {
  const uint32_t *const *along[] = {r->in.along_x, r->in.along_y};
  pe_slope slope[2];
  uint32_t over = 0, opposite = 0;
  for (uint32_t n = 0; n < 2; n++) {
    if (!r->cube) {
      pe_plain_slope(r, &slope[n], along[n]);
      continue;
    }
    pe_steps steps;
    pe_find_steps(r, &steps, along[n]);
    pe_slope_of_steps(&slope[n], &steps, r->texture->memory.width);
    over |= steps.over, opposite |= steps.opposite;
  }
  if (r->dims == 3)
    pe_gradient_levels(level, slope, 3, over);
  else if (r->dims == 2)
    pe_gradient_levels(level, slope, 2, over);
  else
    pe_gradient_levels(level, slope, 1, over);
  PE_FOR_LANES(i, opposite) level[i] = PE_FAR_LEVEL * 256;
}

#endif
