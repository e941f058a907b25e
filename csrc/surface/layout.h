/* layout.h: where a byte of a surface lies.  Offsets split into a part of x and a part of (y, z), so that a warp computes
 * each once per lane and adds. */
#ifndef PTXEMU_LAYOUT_H
#define PTXEMU_LAYOUT_H
#include "surface.h"

/* A GOB is 64 bytes by 8 rows. */
#define PE_GOB_BYTES 512u
#define PE_GOB_WIDTH 64u
#define PE_GOB_HEIGHT 8u

static inline uint64_t pe_block_bytes(const pe_surface_level *level) {
  return (uint64_t)PE_GOB_BYTES << (level->block_h_log2 + level->block_d_log2);
}

static inline uint64_t pe_gob_x(uint32_t order, uint64_t x) {
  return order == PE_GOB_LINEAR ? x : (x & 15) | (x & 16) << 1 | (x & 32) << 3;
}

static inline uint64_t pe_gob_y(uint32_t order, uint64_t y) {
  return order == PE_GOB_LINEAR ? y << 6 : (y & 1) << 4 | (y & 6) << 5;
}

static inline uint64_t pe_block_linear_x(const pe_surface_level *level, uint32_t order, uint64_t x) {
  return (x >> 6) * pe_block_bytes(level) + pe_gob_x(order, x & 63);
}

static inline uint64_t pe_block_linear_yz(const pe_surface_level *level, uint32_t order, uint64_t y, uint64_t z) {
  uint32_t bh = level->block_h_log2, bd = level->block_d_log2;
  uint64_t row = (z >> bd) * level->blocks_y + (y >> (3 + bh));
  uint64_t gob = ((z & ((1u << bd) - 1)) << bh) + ((y >> 3) & ((1u << bh) - 1));
  return row * level->blocks_x * pe_block_bytes(level) + gob * PE_GOB_BYTES + pe_gob_y(order, y & 7);
}

/* Offset in the layer of the first byte of row (y, z). */
static inline uint64_t pe_row_offset(const pe_surface_desc *desc, const pe_surface_level *level, uint64_t y, uint64_t z) {
  if (desc->layout == PE_LAYOUT_BLOCK_LINEAR) return level->offset + pe_block_linear_yz(level, desc->gob_order, y, z);
  return level->offset + z * level->slice_stride + y * level->pitch;
}

/* What x adds to it. */
static inline uint64_t pe_column_offset(const pe_surface_desc *desc, const pe_surface_level *level, uint64_t x) {
  return desc->layout == PE_LAYOUT_BLOCK_LINEAR ? pe_block_linear_x(level, desc->gob_order, x) : x;
}

#endif
