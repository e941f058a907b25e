/* tensor_walk.c: which rows of a tensor a box has, in the order in which they lie in shared memory.
 *
 * A row is what lies side by side along the innermost dimension.  A tiled copy goes through all rows of its box; an im2col
 * copy through so many pixels, from one line of its box to the next, and from one image to the next.  In an interleaved layout
 * a slice of 16 or 32 bytes is a row: dimension 0 goes along W, and the last but one counts slices of channels.
 */
#include "checked.h"
#include "tensor_types.h"

enum { ROWS = 4, ROW_UNIT = 16, LINE = 32, W128_PIXELS = 128, MOST_HALO = 512, MOST_HALO_OF_LINE = 32, MOST_W_OFFSET = 32 };

/* ---- beginning ---- */

/* How many steps the box has along a dimension; of channels that are interleaved it has one slice, whatever it says. */
static uint32_t steps_of(const pe_tensor *tensor, uint32_t d) {
  if (tensor->interleave && d + 2 == tensor->rank) return 1;
  return (tensor->box[d] + tensor->step[d] - 1) / tensor->step[d];
}

static void begin_tile(pe_tensor_walk *walk) {
  const pe_tensor *tensor = walk->tensor;
  walk->rows = 1;
  for (uint32_t d = walk->fastest; d < tensor->rank; d++) {
    uint32_t count = steps_of(tensor, d);
    walk->last[d] = walk->first[d] + (int64_t)(count - 1) * tensor->step[d];
    walk->rows *= count;
  }
}

static void begin_rows(pe_tensor_walk *walk, const int32_t *coords) {
  walk->rows = ROWS;
  for (uint32_t i = 0; i < ROWS; i++) walk->chosen[i] = coords[i + 1];
}

/* The pixels of a box begin again at its lower corner; images go on without end. */
static void begin_pixels(pe_tensor_walk *walk, const uint16_t *offsets, bool wide) {
  const pe_tensor *tensor = walk->tensor;
  uint32_t last = tensor->rank - 1, side = pe_tensor_side(tensor);
  int64_t shift = wide ? offsets[1] : 0;
  for (uint32_t i = 0; i + 2 < tensor->rank; i++) {
    uint32_t d = side + i;
    bool fixed = wide && i;
    if (!fixed) {
      walk->first[d] = tensor->lower[i] + shift;
      walk->last[d] = (int64_t)tensor->dim[d] - 1 + tensor->upper[i] + shift;
      walk->at[d] += shift;
    }
    walk->offset[d] = wide ? 0 : offsets[i] & ((1u << pe_tensor_corner_bits(tensor->rank)) - 1);
  }
  walk->last[last] = INT64_MAX;
  walk->rows = tensor->pixels;
}

static void add_halo(pe_tensor_walk *walk, uint32_t halo, uint32_t run) {
  walk->run = run, walk->halo = halo;
  walk->rows += walk->rows / run * halo;
}

static bool is_tile(uint32_t mode) { return mode == PE_LOAD_TILE || mode == PE_LOAD_ROWS; }

static const char *flaw_of_coordinates(const pe_tensor *tensor, const int32_t *coords) {
  pe_tensor_type type = pe_tensor_type_of(tensor);
  if (coords[0] % (int32_t)type.elements) return "the first coordinate is not a multiple of what packed elements need";
  bool aligned = tensor->interleave || (int64_t)coords[0] * type.bytes / type.elements % ROW_UNIT == 0;
  return aligned ? NULL : "the first coordinate is not a multiple of 16 bytes";
}

/* Whether the first pixel of an im2col copy is in the box of all of them. */
static bool begins_in_box(const pe_tensor *tensor, const int32_t *coords) {
  for (uint32_t i = 0; i + 2 < tensor->rank; i++) {
    uint32_t d = pe_tensor_side(tensor) + i;
    if (coords[d] < tensor->lower[i] || coords[d] > (int64_t)tensor->dim[d] - 1 + tensor->upper[i]) return false;
  }
  return true;
}

static const char *flaw_of(const pe_tensor_site *site, const pe_tensor *tensor, const int32_t *coords,
                           const uint16_t *offsets) {
  if (tensor->rank != site->dims) return "the tensor has another number of dimensions than the instruction";
  if (tensor->im2col == is_tile(site->mode)) return "the tensor map is for copies of another mode";
  if (tensor->interleave && site->mode != PE_LOAD_TILE && site->mode != PE_LOAD_IM2COL)
    return "only tiles and im2col copies are interleaved";
  if (site->mode == PE_LOAD_ROWS && tensor->box[1] != 1) return "the boxes of single rows have one row";
  if (site->mode == PE_LOAD_IM2COL_W && offsets[0] >= MOST_HALO) return "wHalo is more than 511";
  if (site->mode == PE_LOAD_IM2COL_W128 && offsets[0] >= MOST_HALO_OF_LINE) return "wHalo is more than 31";
  if (site->mode == PE_LOAD_IM2COL && !begins_in_box(tensor, coords)) return "the first pixel is not in the box";
  if (site->mode >= PE_LOAD_IM2COL_W && offsets[1] >= MOST_W_OFFSET) return "wOffset is more than 31";
  return flaw_of_coordinates(tensor, coords);
}

pe_tensor_walk pe_tensor_begin(const pe_tensor_site *site, const pe_tensor *tensor, const int32_t coords[5],
                               const uint16_t offsets[3]) {
  pe_tensor_type type = pe_tensor_type_of(tensor);
  pe_tensor_walk walk = {.tensor = tensor, .mode = site->mode, .flaw = flaw_of(site, tensor, coords, offsets)};
  if (walk.flaw) return walk;
  uint32_t slice = pe_tensor_slice(tensor);
  walk.fastest = pe_tensor_side(tensor);
  walk.width = slice ? slice : tensor->box[0] / type.elements * type.bytes;
  walk.wide = slice ? slice : tensor->box[0] / type.elements * type.wide;
  walk.pitch = pe_tensor_span(tensor) ? pe_tensor_span(tensor) : walk.wide;
  for (uint32_t d = 0; d < tensor->rank; d++) {
    walk.at[d] = walk.first[d] = walk.last[d] = coords[d];
    walk.step[d] = tensor->step[d];
  }
  switch (site->mode) {
    case PE_LOAD_TILE: begin_tile(&walk); break;
    case PE_LOAD_ROWS: begin_rows(&walk, coords); break;
    case PE_LOAD_IM2COL: begin_pixels(&walk, offsets, false); break;
    case PE_LOAD_IM2COL_W:
      begin_pixels(&walk, offsets, true);
      add_halo(&walk, offsets[0], tensor->pixels);
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
  for (uint32_t d = walk->fastest; d < walk->tensor->rank; d++) {
    walk->at[d] += walk->step[d];
    if (walk->at[d] <= walk->last[d]) return;
    walk->at[d] = walk->first[d];
  }
}

/* The coordinates of this row, and those of the next one in `at`. */
static void coordinates(pe_tensor_walk *walk, int64_t here[5]) {
  for (uint32_t d = 0; d < walk->tensor->rank; d++) here[d] = walk->at[d] + walk->offset[d];
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

/* Where a row begins, from the innermost dimension's beginning on, and where that ends. */
static void span(const pe_tensor *tensor, int64_t coordinate, int64_t *begin, int64_t *end) {
  pe_tensor_type type = pe_tensor_type_of(tensor);
  uint32_t slice = pe_tensor_slice(tensor), elements = slice ? 1 : type.elements, bytes = slice ? slice : type.bytes;
  *begin = coordinate / elements * bytes;
  *end = (int64_t)(tensor->dim[0] / elements) * bytes;
}

static pe_tensor_row row_at(const pe_tensor_walk *walk, const int64_t here[5]) {
  const pe_tensor *tensor = walk->tensor;
  int64_t begin, end;
  span(tensor, here[0], &begin, &end);
  int64_t from = begin < 0 ? -begin : 0, to = end - begin < walk->width ? end - begin : walk->width;
  uint64_t address = pe_sum(tensor->address, (uint64_t)(begin + from));
  bool inside = from < to;
  for (uint32_t d = 1; d < tensor->rank; d++) {
    inside &= here[d] >= 0 && (uint64_t)here[d] < tensor->dim[d];
    address = pe_sum(address, pe_product((uint64_t)here[d], tensor->stride[d - 1]));
  }
  return inside ? (pe_tensor_row){address, (uint32_t)from, (uint32_t)(to - from)} : (pe_tensor_row){0, walk->width, 0};
}

pe_tensor_row pe_tensor_next(pe_tensor_walk *walk) {
  int64_t here[5];
  if (in_halo(walk)) {
    uint32_t behind = walk->number % (walk->run + walk->halo) - walk->run + 1;
    for (uint32_t d = 0; d < walk->tensor->rank; d++) here[d] = walk->before[d];
    here[1] += behind * walk->step[1];
  } else {
    coordinates(walk, here);
    for (uint32_t d = 0; d < walk->tensor->rank; d++) walk->before[d] = here[d];
  }
  walk->number++;
  walk->rows--;
  return row_at(walk, here);
}
