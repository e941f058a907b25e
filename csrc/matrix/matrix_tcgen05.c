/* matrix_tcgen05.c: tcgen05.mma of a CTA or a pair, 16 rows at a time, as an m16nNkK of `mma` (PTX ISA, "tcgen05.mma").
 *
 * Sums are in tensor memory: a row in each lane, or of 64 rows 16 in every other half of a warp's lanes; a column in each column. Where
 * panels are spread, a row of each is in lanes of its own (matrix_product.h).
 */
#include "atomic.h"
#include "cta.h"
#include "matrix_product.h"
#include "matrix_scaled.h"

enum {
  DOWN = PE_TENSOR_BLOCK / TILE,
  AT_ONCE = 64 /* columns */,
  LINE_WORDS = 4,
  B_ALONG = 4 /* the most tiles along k, beside a sparse A */,
  ALL_ZERO = 0xff /* columns of a tile */
};
enum { EXPONENT_BIAS = 127, FRACTION_BITS = 23 }; /* of f32 */
enum { ADDRESS = 0x3fffffff };

/* The first lane of the panel that is multiplied. */
static uint32_t first_lane(const pe_tensor_product *p) { return p->spread ? p->panel * p->rows : 0; }

/* The lane of a row of what is at an address. */
static uint32_t lane_of(const pe_tensor_product *p, uint32_t address, uint32_t row) {
  uint32_t blocks = p->gaps ? row / PE_TENSOR_BLOCK * PE_TENSOR_BLOCK : 0;
  return (address >> 16) + first_lane(p) + blocks + row;
}

static pe_tmem *memory_of(const pe_tensor_product *p) { return p->cta[p->side].memory; }

/* Tell of columns of a lane that it reads or writes. */
PE_INLINE void tell(const pe_tensor_product *p, uint32_t kind, uint32_t lane, uint32_t column, uint32_t count, bool each) {
  pe_tmem *memory = memory_of(p);
  if (memory->told) pe_tmem_tell(p->w, p->site->pos, p->lane, memory, kind, lane, column, count, each);
}

/* ---- multiplicands ---- */

/* The tiles of 16 rows, down, then along k, and then those of the next. */
typedef pe_halves left_tiles[PE_TENSOR_ROWS / TILE * PE_TENSOR_MOST_ALONG];

static void read_a(const pe_tensor_product *p, left_tiles to) {
  pe_shared_matrix from = p->a;
  uint32_t tiles = DOWN * p->along;
  from.away = p->cta[p->side].away;
  for (uint32_t i = 0; i < p->rows / TILE * p->along; i++) {
    uint32_t row = i / tiles * DOWN + i % DOWN, column = i % tiles / DOWN;
    if (!p->site->a_columns) {
      pe_read_tile(p->w, p->site->pos, &from, p->a_across, row, column, to + i);
      pe_spread_tile(to + i, pe_tensor_product_bits(p, p->mma.a));
      continue;
    }
    for (uint32_t j = 0; j < TILE; j++) {
      uint32_t lane = lane_of(p, p->a_at, row * TILE + j), first = (p->a_at & 0xffff) + column * LINE_WORDS;
      tell(p, PE_READ, lane, first, LINE_WORDS, false);
      memcpy(to[i].at[j], &memory_of(p)->cell[lane][first], sizeof to[i].at[j]);
    }
  }
}

/* A tile of the columns from one on, which is no multiple of eight if columns before are left out. */
static void read_columns(const pe_tensor_product *p, const pe_shared_matrix *from, uint32_t first, uint32_t along,
                         pe_halves *to) {
  uint32_t skipped = first % TILE, row = first / TILE;
  pe_read_tile(p->w, p->site->pos, from, p->b_across, row, along, to);
  if (!skipped) return;
  pe_halves next;
  if (p->b_across)
    pe_read_tile(p->w, p->site->pos, from, p->b_across, row + 1, along, &next);
  else
    pe_read_rows(p->w, p->site->pos, from, row + 1, along, skipped, &next);
  memmove(to->at[0], to->at[skipped], (TILE - skipped) * sizeof to->at[0]);
  memcpy(to->at[TILE - skipped], next.at[0], skipped * sizeof to->at[0]);
}

/* Of a pair, the matrix of each CTA has one panel. */
static void read_b(const pe_tensor_product *p, uint32_t first, uint32_t columns, uint32_t along, pe_halves *to) {
  pe_shared_matrix from = p->b;
  bool pair = p->site->ctas > 1;
  if (pair) from.away = p->cta[p->panel].away;
  uint32_t start = (pair ? 0 : p->panel * pe_tensor_product_width(p)) + pe_tensor_product_ahead(p);
  for (uint32_t x = 0; x < columns; x += TILE) {
    uint32_t zeros = pe_tensor_product_zeros(p, first + x);
    for (uint32_t i = 0; i < along; i++, to++) {
      if (zeros == ALL_ZERO)
        memset(to, 0, sizeof *to);
      else
        read_columns(p, &from, start + first + x, i, to);
      pe_spread_tile(to, pe_tensor_product_bits(p, p->mma.b));
      for (uint32_t j = 0; j < TILE; j++)
        if (zeros >> j & 1) memset(to->at[j], 0, sizeof to->at[j]);
    }
  }
}

/* Those of 16 rows, in the words of the lanes where mma.sp has them. Of elements of 16 bits and more, a lane has the words of two rows
 * that are eight apart, in halves, and lanes that are eight apart those of halves of k; of narrower ones two columns have those. */
static void read_metadata(const pe_tensor_product *p, uint32_t first_row, uint32_t to[PE_WARP_LANES]) {
  bool wide = p->size > 1;
  uint32_t column = (p->metadata & 0xffff) + (wide ? p->selector : 0);
  memset(to, 0, PE_WARP_LANES * sizeof *to);
  for (uint32_t row = 0; row < PE_TENSOR_BLOCK; row++) {
    uint32_t lane = lane_of(p, p->metadata, first_row + row), *words = to + row % TILE * (TILE / 2);
    const uint32_t *from = &memory_of(p)->cell[lane][column];
    tell(p, PE_READ, lane, column, pe_tensor_product_metadata_columns(p), true);
    for (uint32_t i = 0; i < pe_tensor_product_metadata_columns(p); i++) words[2 * i + row / TILE] = from[i];
  }
}

/* ---- sums: a register has two columns of each of eight rows if they are f16, else every second column ---- */

typedef uint32_t sums[AT_ONCE / TILE * 4][PE_WARP_LANES];

/* Whether the lane of a row keeps what it has. */
static bool stays(const pe_tensor_product *p, uint32_t row) {
  uint32_t lane = p->side * PE_TENSOR_ROWS + lane_of(p, p->at, row);
  return p->disabled && p->disabled[lane / 32 * PE_WARP_LANES] >> lane % 32 & 1;
}

/* The first of so many columns in which a row's sums of the panel are, which are read or written. */
PE_INLINE uint32_t *row_of(const pe_tensor_product *p, uint32_t kind, uint32_t row, uint32_t first, uint32_t count) {
  uint32_t before = p->spread ? 0 : p->panel * pe_tensor_product_width(p);
  uint32_t lane = lane_of(p, p->at, row), column = (p->at & 0xffff) + before + first;
  if (memory_of(p)->told && !stays(p, row)) tell(p, kind, lane, column, count, true);
  return &memory_of(p)->cell[lane][column];
}

/* Of a tile, the registers that eight rows and eight columns have, from those of one row on. */
PE_INLINE void read_halves(const uint32_t *from, uint32_t *to) {
  for (uint32_t i = 0; i < TILE / 2; i++) to[i] = (from[2 * i] & 0xffff) | from[2 * i + 1] << 16;
}

PE_INLINE void read_words(const uint32_t *from, uint32_t *even, uint32_t *odd) {
  for (uint32_t i = 0; i < TILE / 2; i++) even[i] = from[2 * i], odd[i] = from[2 * i + 1];
}

PE_INLINE void write_halves(uint32_t *to, const uint32_t *from) {
  for (uint32_t i = 0; i < TILE / 2; i++) to[2 * i] = from[i] & 0xffff, to[2 * i + 1] = from[i] >> 16;
}

PE_INLINE void write_words(uint32_t *to, const uint32_t *even, const uint32_t *odd) {
  for (uint32_t i = 0; i < TILE / 2; i++) to[2 * i] = even[i], to[2 * i + 1] = odd[i];
}

static void read_sums(const pe_tensor_product *p, uint32_t first_row, uint32_t first, uint32_t columns, sums to) {
  for (uint32_t row = 0; row < PE_TENSOR_BLOCK; row++) {
    const uint32_t *from = row_of(p, PE_READ, first_row + row, first, columns);
    uint32_t half = row / TILE, lane = row % TILE * (TILE / 2);
    for (uint32_t tile = 0; tile < columns / TILE; tile++, from += TILE) {
      uint32_t at = tile * 2 + half;
      if (p->mma.d == PE_TYPE_F16)
        read_halves(from, to[at] + lane);
      else
        read_words(from, to[at * 2] + lane, to[at * 2 + 1] + lane);
    }
  }
}

static void write_sums(const pe_tensor_product *p, uint32_t first_row, uint32_t first, uint32_t columns, sums from) {
  for (uint32_t row = 0; row < PE_TENSOR_BLOCK; row++) {
    uint32_t *to = row_of(p, PE_WRITE, first_row + row, first, columns), half = row / TILE, lane = row % TILE * (TILE / 2);
    if (stays(p, first_row + row)) continue;
    for (uint32_t tile = 0; tile < columns / TILE; tile++, to += TILE) {
      uint32_t at = tile * 2 + half;
      if (p->mma.d == PE_TYPE_F16)
        write_halves(to, from[at] + lane);
      else
        write_words(to, from[at * 2] + lane, from[at * 2 + 1] + lane);
    }
  }
}

static uint32_t scaled_half(uint32_t bits, float by) {
  return pe_f16_bits(pe_float_bits(pe_f16_value((uint16_t)bits) * by));
}

/* Divide sums by the power of two that the instruction names. */
static void divide(const pe_tensor_product *p, sums all) {
  uint32_t *word = all[0];
  float by = pe_float((uint32_t)(EXPONENT_BIAS - p->site->shift) << FRACTION_BITS);
  for (uint32_t i = 0; i < sizeof(sums) / sizeof *word; i++)
    word[i] = p->mma.d == PE_TYPE_F16 ? scaled_half(word[i] & 0xffff, by) | scaled_half(word[i] >> 16, by) << 16
                                      : pe_float_bits(pe_float(word[i]) * by);
}

/* Words with the factors of rows or columns, 32 in each column from an address on. Of k 96 there are second words in the columns
 * behind those of all 128 lines, or 256. */
static void read_factors(const pe_tensor_product *p, uint32_t address, uint32_t first, uint32_t count, uint32_t all,
                         uint64_t *to) {
  enum { LANES = 32, WORD_BITS = 32 };
  uint32_t behind = p->along < PE_TENSOR_MOST_ALONG ? 0
                    : all > PE_TENSOR_ROWS          ? 2 * PE_TENSOR_ROWS / LANES
                                                    : PE_TENSOR_ROWS / LANES;
  address &= ADDRESS; /* what is above may say which byte it is, as the descriptor does */
  if (address >> 16) pe_tensor_product_misuse(p, "factors start at lane 0");
  const pe_tmem *memory = memory_of(p);
  pe_tmem_expect(p->w, p->site->pos, p->lane, memory, address, behind + (first + count + LANES - 1) / LANES);
  for (uint32_t i = 0, at = first; i < count; i++, at++) {
    uint32_t lane = first_lane(p) + at % LANES, column = address + at / LANES;
    const uint32_t *word = &memory->cell[lane][column];
    tell(p, PE_READ, lane, column, 1, true);
    if (behind) tell(p, PE_READ, lane, column + behind, 1, true);
    to[i] = word[0] | (uint64_t)word[behind] << WORD_BITS;
  }
}

static void multiply_scaled(pe_tensor_product *p, bool adds, const pe_halves *left) {
  pe_halves right[AT_ONCE / TILE * B_ALONG];
  uint32_t metadata[PE_WARP_LANES], along = p->sparse ? 2 * p->along : p->along, width = pe_tensor_product_width(p);
  uint64_t a_factors[PE_TENSOR_ROWS], b_factors[PE_TENSOR_COLUMNS];
  sums all;
  read_factors(p, p->a_factors, 0, p->rows, p->rows, a_factors);
  read_factors(p, p->b_factors, p->spread ? 0 : p->panel * width, width, p->columns, b_factors);
  for (uint32_t x = 0; x < width; x += AT_ONCE) {
    uint32_t columns = width - x < AT_ONCE ? width - x : AT_ONCE;
    pe_scaled_side b = {right, b_factors + x, p->b_byte};
    read_b(p, x, columns, along, right);
    for (uint32_t row = 0; row < p->rows; row += PE_TENSOR_BLOCK) {
      pe_scaled_side a = {left + row / TILE * p->along, a_factors + row, p->a_byte};
      if (adds)
        read_sums(p, row, x, columns, all);
      else
        memset(all, 0, sizeof all);
      if (p->sparse) read_metadata(p, row, metadata);
      pe_scaled_tiles(&p->scaled, &a, &b, p->sparse ? metadata : NULL, columns, p->mma.flags & PE_MMA_NEGATE, all);
      write_sums(p, row, x, columns, all);
    }
  }
}

static void multiply(pe_tensor_product *p, bool adds, pe_halves *left) {
  static const uint16_t IN_ORDER[32] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                        16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
  _Alignas(64) pe_halves right[AT_ONCE / TILE * B_ALONG];
  _Alignas(64) sums all;
  uint32_t metadata[PE_WARP_LANES], along = p->sparse ? 2 * p->along : p->along;
  uint32_t most = MAX_B / p->mma.k < AT_ONCE ? MAX_B / p->mma.k : AT_ONCE, width = pe_tensor_product_width(p);
  for (uint32_t x = 0; x < width; x += most) {
    uint32_t columns = width - x < most ? width - x : most;
    p->mma.n = (uint16_t)columns;
    read_b(p, x, columns, along, right);
    for (uint32_t row = 0; row < p->rows; row += PE_TENSOR_BLOCK) {
      fragment c = {(uint8_t *)all, IN_ORDER};
      pe_operands on = {.d = c,
                        .c = c,
                        .a = {(uint8_t *)(left + row / TILE * p->along), IN_ORDER},
                        .b = {(uint8_t *)right, IN_ORDER},
                        .metadata = metadata};
      if (p->sparse) read_metadata(p, row, metadata);
      if (adds)
        read_sums(p, row, x, columns, all);
      else
        memset(all, 0, sizeof all);
      if (adds && p->site->shift) divide(p, all);
      pe_multiply(&p->mma, &on);
      write_sums(p, row, x, columns, all);
    }
  }
}

/* All panels of all CTAs. */
static void multiply_all(pe_tensor_product *p, bool adds) {
  _Alignas(64) left_tiles left;
  for (p->side = 0; p->side < p->site->ctas; p->side++)
    for (p->panel = 0; p->panel < p->panels; p->panel++) {
      if (p->panel == 0 || p->site->a_columns) read_a(p, left); /* in tensor memory the lanes of each panel have it */
      if (pe_tensor_product_is_scaled(p->site))
        multiply_scaled(p, adds, left);
      else
        multiply(p, adds, left);
    }
  for (uint32_t i = 0; p->site->moves_a && i < p->site->ctas; i++) pe_tmem_move_rows(p->cta[i].memory, p->a_at & 0xffff);
}

static void expect_columns(const pe_tensor_product *p, uint32_t address, uint32_t columns) {
  uint32_t start = address >> 16;
  if (start && (start != PE_TENSOR_BLOCK || !p->gaps))
    pe_tensor_product_misuse(p, "a matrix starts at lane 0, or one of 64 rows at lane 16");
  if (start != p->at >> 16) pe_tensor_product_misuse(p, "matrices and metadata are in the lanes of the sums");
  for (uint32_t i = 0; i < p->site->ctas; i++)
    pe_tmem_expect(p->w, p->site->pos, p->lane, p->cta[i].memory, address, columns);
}

static void find_ctas(pe_tensor_product *p) {
  pe_cta *cta[PE_TMEM_PAIR];
  pe_tmem_ctas(p->w, p->site->pos, p->site->ctas, cta);
  for (uint32_t i = 0; i < p->site->ctas; i++) p->cta[i] = (pe_tensor_cta){cta[i]->tensors, pe_tmem_away(p->w, cta[i])};
}

void pe_tmem_mma(pe_warp *w, const pe_tmem_mma_site *site, uint32_t mask, const uint32_t *sums, const uint64_t *a,
                 const uint64_t *b, const uint32_t *descriptor, uint32_t adds, const uint32_t *disabled,
                 const uint32_t *a_factors, const uint32_t *b_factors, const uint32_t *metadata, const uint64_t *zeros) {
  PE_FOR_LANES(lane, mask) {
    pe_tensor_product p = {.site = site, .w = w, .lane = (int32_t)lane, .at = sums[lane], .a_at = (uint32_t)a[lane]};
    p.disabled = disabled ? disabled + lane : NULL;
    p.sparse = metadata != NULL;
    if (metadata) p.metadata = metadata[lane];
    if (pe_tensor_product_is_scaled(site)) p.a_factors = a_factors[lane], p.b_factors = b_factors[lane];
    pe_tensor_product_decode(&p, descriptor[lane]);
    if (zeros) pe_tensor_product_decode_zeros(&p, zeros[lane]);
    find_ctas(&p);
    if (metadata) expect_columns(&p, p.metadata, p.selector + pe_tensor_product_metadata_columns(&p));
    expect_columns(&p, p.at, p.spread ? pe_tensor_product_width(&p) : p.columns);
    if (site->a_columns) expect_columns(&p, p.a_at, p.along * LINE_WORDS);
    p.a = pe_tcgen05_matrix(a[lane], p.a_across, p.along == PE_TENSOR_MOST_ALONG);
    p.b = pe_tcgen05_matrix(b[lane], p.b_across, p.along == PE_TENSOR_MOST_ALONG);
    if (!p.b.wide || (!site->a_columns && !p.a.wide))
      pe_tensor_product_misuse(&p, "the layout of a matrix in shared memory is not supported");
    multiply_all(&p, adds >> lane & 1);
  }
}
