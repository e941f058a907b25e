/* spread.h: which threads of a CTA are a warp. As a rule they follow each other, by x, y and z. Code for which that makes no
 * difference has them *spread*, if rows of threads would lie across warps otherwise: each row begins at a multiple of the lanes
 * that it takes, a part of a warp or several. */
#ifndef PTXEMU_SPREAD_H
#define PTXEMU_SPREAD_H
#include <stdint.h>
#include "internal.h"

/* The lanes that a row of threads takes, if they are spread: x, rounded up to a power of two below a warp, else to warps. */
static inline uint32_t pe_spread_width(uint32_t x) {
  uint32_t width = 1;
  while (width < x && width < PE_WARP_LANES) width *= 2;
  return x <= width ? width : (x + PE_WARP_LANES - 1) / PE_WARP_LANES * PE_WARP_LANES;
}

/* Warps of threads in rows of so many lanes, some of which may be off. */
static inline uint32_t pe_warps_of_rows(const uint32_t *block, uint32_t width) {
  return (uint32_t)(((uint64_t)width * block[1] * block[2] + PE_WARP_LANES - 1) / PE_WARP_LANES);
}

/* The lanes from one row to the next. */
static inline uint32_t pe_row_lanes(const uint32_t *block, uint32_t spread) {
  return spread ? pe_spread_width(block[0]) : block[0];
}

#endif
