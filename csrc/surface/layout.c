/* layout.c: extents and placement of mip levels and layers; dense copies. */
#include <stdbool.h>
#include <string.h>
#include "checked.h"
#include "layout.h"

static uint32_t halved(uint32_t extent, uint32_t level) { return extent >> level ? extent >> level : 1; }

/* The largest block that is not more than twice the extent, as the hardware shrinks it. */
static uint32_t shrink(uint32_t log2, uint32_t unit, uint32_t extent) {
  while (log2 > 0 && ((uint64_t)unit << (log2 - 1)) >= extent) log2--;
  return log2;
}

static uint64_t place_pitch_level(const pe_surface_desc *desc, uint32_t index, pe_surface_level *level) {
  bool given = index == 0;
  level->pitch = given && desc->pitch ? desc->pitch : pe_round_up(level->row_bytes, desc->pitch_align);
  level->slice_stride = given && desc->slice_stride ? desc->slice_stride : pe_product(level->pitch, level->height);
  level->stored_row_bytes = level->pitch;
  return pe_product(level->slice_stride, level->depth);
}

static uint64_t place_block_level(const pe_surface_desc *desc, pe_surface_level *level) {
  level->block_h_log2 = shrink(desc->block_h_log2, PE_GOB_HEIGHT, level->height);
  level->block_d_log2 = shrink(desc->block_d_log2, 1, level->depth);
  uint64_t rows = (uint64_t)PE_GOB_HEIGHT << level->block_h_log2, slices = 1ull << level->block_d_log2;
  uint64_t blocks_z = (level->depth + slices - 1) / slices;
  level->blocks_x = (level->row_bytes + PE_GOB_WIDTH - 1) / PE_GOB_WIDTH;
  level->blocks_y = (level->height + rows - 1) / rows;
  level->stored_row_bytes = level->blocks_x * PE_GOB_WIDTH;
  return pe_product(pe_product(pe_product(level->blocks_x, pe_block_bytes(level)), level->blocks_y), blocks_z);
}

/* The bytes of a level. */
static uint64_t place_level(const pe_surface_desc *desc, uint32_t index, pe_surface_level *level) {
  level->width = halved(desc->width, index);
  level->height = halved(desc->height, index);
  level->depth = halved(desc->depth, index);
  level->row_bytes = (uint64_t)level->width * desc->elem_bytes;
  if (desc->layout == PE_LAYOUT_BLOCK_LINEAR) return place_block_level(desc, level);
  return place_pitch_level(desc, index, level);
}

static const char *check_strides(const pe_surface_desc *desc) {
  const pe_surface_level *level = &desc->level[0];
  if (level->pitch % desc->pitch_align || level->slice_stride % desc->pitch_align)
    return "pitch and slice stride must be multiples of the pitch alignment";
  if (level->pitch < level->row_bytes) return "pitch is smaller than a row";
  if (level->slice_stride < pe_product(level->pitch, level->height)) return "slice stride is smaller than a slice";
  return NULL;
}

/* Place every level and layer; the format is known to be legal. */
const char *pe_layout_place(pe_surface_desc *desc) {
  static const char *overflow = "surface is larger than the address space";
  uint64_t end = 0, unit = desc->pitch_align;
  for (uint32_t i = 0; i < desc->levels; i++) {
    desc->level[i].offset = end;
    end = pe_sum(end, place_level(desc, i, &desc->level[i]));
  }
  if (end > INT64_MAX) return overflow;
  if (desc->layout == PE_LAYOUT_PITCH) {
    const char *wrong = check_strides(desc);
    if (wrong) return wrong;
  }
  if (desc->layout == PE_LAYOUT_BLOCK_LINEAR) {
    unit = PE_GOB_BYTES;
    end = pe_round_up(end, pe_block_bytes(&desc->level[0]));
  }
  if (desc->layer_stride == 0) desc->layer_stride = end;
  if (desc->layer_stride < end) return "layer stride is smaller than a layer";
  if (desc->layers > 1 && desc->layer_stride % unit) return "layer stride is not aligned";
  desc->total_bytes = pe_product(desc->layer_stride, desc->layers);
  desc->pitch = desc->level[0].pitch;
  desc->slice_stride = desc->level[0].slice_stride;
  return desc->total_bytes > INT64_MAX ? overflow : NULL;
}

uint64_t pe_surface_offset(const pe_surface_desc *desc, uint32_t level, uint64_t x_byte, uint64_t y, uint64_t z,
                           uint64_t layer) {
  const pe_surface_level *at = &desc->level[level];
  return layer * desc->layer_stride + pe_row_offset(desc, at, y, z) + pe_column_offset(desc, at, x_byte);
}

/* One row; block linear keeps 16 bytes together in either GOB order. */
static void copy_row(const pe_surface_desc *desc, const pe_surface_level *level, uint8_t *row, uint8_t *dense, bool store) {
  uint64_t chunk = desc->layout == PE_LAYOUT_BLOCK_LINEAR ? 16 : level->row_bytes;
  for (uint64_t x = 0; x < level->row_bytes; x += chunk) {
    uint64_t left = level->row_bytes - x, bytes = left < chunk ? left : chunk;
    uint8_t *texels = row + pe_column_offset(desc, level, x);
    if (store)
      memcpy(texels, dense + x, bytes);
    else
      memcpy(dense + x, texels, bytes);
  }
}

static void copy_level(const pe_surface_desc *desc, uint32_t index, uint8_t *dense, bool store) {
  const pe_surface_level *level = &desc->level[index];
  for (uint64_t layer = 0; layer < desc->layers; layer++)
    for (uint64_t z = 0; z < level->depth; z++)
      for (uint64_t y = 0; y < level->height; y++, dense += level->row_bytes)
        copy_row(desc, level, desc->base + layer * desc->layer_stride + pe_row_offset(desc, level, y, z), dense, store);
}

void pe_surface_upload(const pe_surface_desc *desc, uint32_t level, const void *dense) {
  copy_level(desc, level, (uint8_t *)dense, true);
}

void pe_surface_download(const pe_surface_desc *desc, uint32_t level, void *dense) { copy_level(desc, level, dense, false); }
