/* tensor_walk.c: which rows of a tensor a box has, in the order in which they lie in shared memory.
 *
 * A row is what lies side by side along the innermost dimension.  A tiled copy goes through all rows of its box; an im2col
 * copy through so many pixels, from one line of its box to the next, and from one image to the next.
 */
#include <stdbool.h>
#include "checked.h"
#include "tensor_types.h"

enum { ROWS = 4, LINE = 32, W128_PIXELS = 128, MOST_HALO = 512, MOST_HALO_OF_LINE = 32, MOST_W_OFFSET = 32 };

/* ---- beginning ---- */

static void begin_tile(pe_tensor_walk *walk) {
  const pe_tensor_map *map = walk->map;
  walk->rows = 1;
  for (uint32_t d = 1; d < map->rank; d++) {
    uint32_t count = (map->box[d] + map->step[d] - 1u) / map->step[d];
    walk->last[d] = walk->first[d] + (int64_t)(count - 1) * map->step[d];
    walk->rows *= count;
  }
}

static void begin_rows(pe_tensor_walk *walk, const int32_t *coords) {
  walk->rows = ROWS;
  for (uint32_t i = 0; i < ROWS; i++) walk->chosen[i] = coords[i + 1];
}

/* The pixels of a box begin again at its lower corner; images go on without end. */
static void begin_pixels(pe_tensor_walk *walk, const uint16_t *offsets, bool wide) {
  const pe_tensor_map *map = walk->map;
  uint32_t last = map->rank - 1u;
  int64_t shift = wide ? offsets[1] : 0;
  for (uint32_t d = 1; d < last; d++) {
    bool fixed = wide && d > 1;
    if (!fixed) {
      walk->first[d] = map->lower[d - 1] + shift;
      walk->last[d] = (int64_t)pe_tensor_dim(map, d) - 1 + map->upper[d - 1] + shift;
      walk->at[d] += shift;
    }
    walk->offset[d] = wide ? 0 : offsets[d - 1];
  }
  walk->step[last] = 1;
  walk->last[last] = INT64_MAX;
  walk->rows = map->pixels;
}

static void add_halo(pe_tensor_walk *walk, uint32_t halo, uint32_t run) {
  walk->run = run, walk->halo = halo;
  walk->rows += walk->rows / run * halo;
}

/* What kind of map the way through a tensor needs. */
static uint32_t kind_of(uint32_t mode) {
  static const uint32_t kinds[] = {PE_TENSOR_TILED, PE_TENSOR_TILED, PE_TENSOR_IM2COL, PE_TENSOR_IM2COL_W,
                                   PE_TENSOR_IM2COL_W128};
  return kinds[mode];
}

static const char *flaw_of(const pe_tensor_site *site, const pe_tensor_map *map, const int32_t *coords,
                           const uint16_t *offsets) {
  uint32_t elements = pe_tensor_type_of(map).elements;
  if (map->rank != site->dims) return "the tensor has another number of dimensions than the instruction";
  if (map->kind != kind_of(site->mode)) return "the tensor map is for copies of another mode";
  if (map->interleave) return "interleaved layouts are not supported";
  if (coords[0] % (int32_t)elements) return "the first coordinate is not a multiple of what packed elements need";
  if (site->mode == PE_LOAD_ROWS && map->box[1] != 1) return "the boxes of single rows have one row";
  if (site->mode == PE_LOAD_IM2COL_W && offsets[0] >= MOST_HALO) return "wHalo is more than 511";
  if (site->mode == PE_LOAD_IM2COL_W128 && offsets[0] >= MOST_HALO_OF_LINE) return "wHalo is more than 31";
  if (site->mode >= PE_LOAD_IM2COL_W && offsets[1] >= MOST_W_OFFSET) return "wOffset is more than 31";
  return NULL;
}

pe_tensor_walk pe_tensor_begin(const pe_tensor_site *site, const pe_tensor_map *map, const int32_t coords[5],
                               const uint16_t offsets[3]) {
  pe_tensor_type type = pe_tensor_type_of(map);
  pe_tensor_walk walk = {.map = map, .mode = site->mode, .flaw = flaw_of(site, map, coords, offsets)};
  if (walk.flaw) return walk;
  walk.width = map->box[0] / type.elements * type.bytes;
  walk.wide = map->box[0] / type.elements * type.wide;
  for (uint32_t d = 0; d < map->rank; d++) {
    walk.at[d] = walk.first[d] = walk.last[d] = coords[d];
    walk.step[d] = map->step[d];
  }
  switch (site->mode) {
    case PE_LOAD_TILE: begin_tile(&walk); break;
    case PE_LOAD_ROWS: begin_rows(&walk, coords); break;
    case PE_LOAD_IM2COL: begin_pixels(&walk, offsets, false); break;
    case PE_LOAD_IM2COL_W:
      begin_pixels(&walk, offsets, true);
      add_halo(&walk, offsets[0], map->pixels);
      break;
    default:
      begin_pixels(&walk, offsets, true);
      walk.rows = W128_PIXELS;
      add_halo(&walk, offsets[0], LINE);
      break;
  }
  return walk;
}

/* ---- going on ---- */

static void advance(pe_tensor_walk *walk) {
  for (uint32_t d = 1; d < walk->map->rank; d++) {
    walk->at[d] += walk->step[d];
    if (walk->at[d] <= walk->last[d]) return;
    walk->at[d] = walk->first[d];
  }
}

/* The coordinates of this row, and those of the next one in `at`. */
static void coordinates(pe_tensor_walk *walk, int64_t here[5]) {
  for (uint32_t d = 0; d < walk->map->rank; d++) here[d] = walk->at[d] + walk->offset[d];
  if (walk->mode == PE_LOAD_ROWS) {
    here[1] = walk->chosen[walk->number];
  } else {
    advance(walk);
  }
}

/* A pixel of a halo: behind the one before, whatever the box. */
static bool in_halo(const pe_tensor_walk *walk) {
  return walk->halo && walk->number % (walk->run + walk->halo) >= walk->run;
}

static pe_tensor_row row_at(const pe_tensor_walk *walk, const int64_t here[5]) {
  const pe_tensor_map *map = walk->map;
  pe_tensor_type type = pe_tensor_type_of(map);
  int64_t begin = here[0] / type.elements * type.bytes;
  int64_t extent = (int64_t)(pe_tensor_dim(map, 0) / type.elements) * type.bytes;
  int64_t from = begin < 0 ? -begin : 0, to = extent - begin < walk->width ? extent - begin : walk->width;
  uint64_t address = pe_sum(map->address, (uint64_t)(begin + from));
  bool inside = from < to;
  for (uint32_t d = 1; d < map->rank; d++) {
    inside &= here[d] >= 0 && (uint64_t)here[d] < pe_tensor_dim(map, d);
    address = pe_sum(address, pe_product((uint64_t)here[d], map->stride[d - 1]));
  }
  return inside ? (pe_tensor_row){address, (uint32_t)from, (uint32_t)(to - from)} : (pe_tensor_row){0, walk->width, 0};
}

pe_tensor_row pe_tensor_next(pe_tensor_walk *walk) {
  int64_t here[5];
  if (in_halo(walk)) {
    uint32_t behind = walk->number % (walk->run + walk->halo) - walk->run + 1;
    for (uint32_t d = 0; d < walk->map->rank; d++) here[d] = walk->before[d];
    here[1] += behind * walk->step[1];
  } else {
    coordinates(walk, here);
    for (uint32_t d = 0; d < walk->map->rank; d++) walk->before[d] = here[d];
  }
  walk->number++;
  walk->rows--;
  return row_at(walk, here);
}
