/* texture_cube.h: directions, faces of a cube, and what lies over the edge of a face. */
#ifndef PTXEMU_TEXTURE_CUBE_H
#define PTXEMU_TEXTURE_CUBE_H
#include <math.h>
#include "format.h"

/* A direction seen from a face (+x -x +y -y +z -z): along the face's s and t, and out of it. */
typedef struct pe_facing {
  uint32_t face;
  double s, t, out;
} pe_facing;

static inline pe_facing pe_see(uint32_t face, double x, double y, double z) {
  switch (face) {
    case 0: return (pe_facing){0, -z, -y, x};
    case 1: return (pe_facing){1, z, -y, -x};
    case 2: return (pe_facing){2, x, z, y};
    case 3: return (pe_facing){3, x, -z, -y};
    case 4: return (pe_facing){4, x, -y, z};
    default: return (pe_facing){5, -x, -y, -z};
  }
}

/* The face that a direction points at: of its largest component; z before y before x where they are equal. */
static inline uint32_t pe_face_of(double x, double y, double z) {
  double ax = fabs(x), ay = fabs(y), az = fabs(z);
  if (az >= ax && az >= ay) return z < 0 ? 5 : 4;
  if (ay >= ax) return y < 0 ? 3 : 2;
  return x < 0 ? 1 : 0;
}

/* The inverse of pe_see. */
static inline void pe_direction(pe_facing f, double *x, double *y, double *z) {
  switch (f.face) {
    case 0: *x = f.out, *y = -f.t, *z = -f.s; break;
    case 1: *x = -f.out, *y = -f.t, *z = f.s; break;
    case 2: *x = f.s, *y = f.out, *z = f.t; break;
    case 3: *x = f.s, *y = -f.out, *z = -f.t; break;
    case 4: *x = f.s, *y = -f.t, *z = f.out; break;
    default: *x = -f.s, *y = -f.t, *z = -f.out; break;
  }
}

/* Replace a texel one step over an edge of a face of n by n texels by its neighbour on the next face: the direction of
 * its centre, in units of half texels, which are exact. */
static inline void pe_over_edge(uint32_t *face, int32_t *i, int32_t *j, int32_t n) {
  double x, y, z;
  pe_direction((pe_facing){*face, 2.0 * *i + 1 - n, 2.0 * *j + 1 - n, n}, &x, &y, &z);
  pe_facing f = pe_see(pe_face_of(x, y, z), x, y, z);
  *face = f.face;
  *i = (int32_t)floor((f.s + f.out) * n / (2 * f.out));
  *j = (int32_t)floor((f.t + f.out) * n / (2 * f.out));
}

#endif
