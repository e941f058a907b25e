/* matrix_tcgen05.c: tcgen05.mma of a CTA, 16 rows at a time, as an m16nNkK of `mma` (PTX ISA, "tcgen05.mma").
 *
 * Sums are in tensor memory: a row in each lane, or of 64 rows 16 in every other half of a warp's lanes; a column in each column.
 */
#include "atomic.h"
#include "matrix_scaled.h"
#include "matrix_shared.h"
#include "tmem.h"

enum { BLOCK = 16, TILES = 4, MOST_ROWS = 128, AT_ONCE = 64, WIDTH = 32 /* bytes of k */, NIBBLES = 64, LINE_WORDS = 4 };
enum { EXPONENT_BIAS = 127, FRACTION_BITS = 23 }; /* of f32 */
enum { F16_SUMS, F32_SUMS, S32_SUMS };
enum { MOST_COLUMNS = 256, ADDRESS = 0x3fffffff };

/* An instruction descriptor, decoded. */
typedef struct product {
  const pe_tmem_mma_site *site;
  pe_warp *w;
  int32_t lane;
  uint32_t rows, columns, size; /* bytes of an element */
  pe_mma_site mma;
  pe_shared_matrix a, b;
  uint32_t a_across, b_across, a_at, at;
  pe_tmem *memory;
  const uint32_t *disabled;
  pe_scaled_site scaled; /* of a kind with factors, which are at these addresses */
  uint32_t a_factors, b_factors, a_byte, b_byte;
} product;

static noreturn void misuse(const product *p, const char *what) { pe_tmem_misuse(p->w, p->site->pos, p->lane, p->at, what); }

/* The type of multiplicands of a kind with this number. */
static uint32_t type_of(const product *p, uint32_t number) {
  enum { NO_TYPE = UINT8_MAX, NUMBERS = 6 };
  static const uint8_t types[][NUMBERS] = {
    [PE_KIND_F16] = {PE_TYPE_F16, PE_TYPE_BF16, NO_TYPE, NO_TYPE, NO_TYPE, NO_TYPE},
    [PE_KIND_TF32] = {NO_TYPE, NO_TYPE, PE_TYPE_TF32, NO_TYPE, NO_TYPE, NO_TYPE},
    [PE_KIND_F8F6F4] = {PE_TYPE_E4M3, PE_TYPE_E5M2, NO_TYPE, PE_TYPE_E2M3, PE_TYPE_E3M2, PE_TYPE_E2M1},
    [PE_KIND_I8] = {PE_TYPE_U8, PE_TYPE_S8, NO_TYPE, NO_TYPE, NO_TYPE, NO_TYPE},
    [PE_KIND_MXF8F6F4] = {PE_TYPE_E4M3, PE_TYPE_E5M2, NO_TYPE, PE_TYPE_E2M3, PE_TYPE_E3M2, PE_TYPE_E2M1},
    [PE_KIND_MXF4] = {NO_TYPE, PE_TYPE_E2M1, NO_TYPE, NO_TYPE, NO_TYPE, NO_TYPE},
    [PE_KIND_MXF4NVF4] = {NO_TYPE, PE_TYPE_E2M1, NO_TYPE, NO_TYPE, NO_TYPE, NO_TYPE},
  };
  uint32_t type = number < NUMBERS ? types[p->site->kind][number] : NO_TYPE;
  if (type == NO_TYPE) misuse(p, "its kind has no such elements");
  return type;
}

/* Of an element in shared memory that a byte is made of; 8 if elements stay as they are. */
static uint32_t bits_of(const product *p, uint32_t type) {
  if (p->site->kind != PE_KIND_F8F6F4 && p->site->kind != PE_KIND_MXF8F6F4) return 8;
  return type == PE_TYPE_E2M1 ? 4 : type == PE_TYPE_E2M3 || type == PE_TYPE_E3M2 ? 6 : 8;
}

static void decode_sides(product *p, uint32_t descriptor) {
  p->mma.a = (uint16_t)type_of(p, descriptor >> 7 & 7);
  p->mma.b = (uint16_t)type_of(p, descriptor >> 10 & 7);
  p->a_across = descriptor >> 15 & 1 ? p->size : 0;
  p->b_across = descriptor >> 16 & 1 ? p->size : 0;
  bool narrow = p->scaled.k == NIBBLES;
  if ((p->a_across && (narrow || bits_of(p, p->mma.a) < 8)) || (p->b_across && (narrow || bits_of(p, p->mma.b) < 8)))
    misuse(p, "matrices of elements of 6 and 4 bits are not transposed");
  if (p->site->a_columns && bits_of(p, p->mma.a) < 8)
    misuse(p, "elements of 6 and 4 bits in tensor memory are not supported");
}

static bool is_negated(uint32_t descriptor) { return (descriptor >> 13 & 1) != (descriptor >> 14 & 1); }

/* The descriptor of a kind with factors. */
static void decode_scaled(product *p, uint32_t descriptor) {
  const pe_tmem_mma_site *site = p->site;
  bool powers = descriptor >> 23 & 1;
  p->size = 1;
  p->rows = (descriptor >> 24 & 31) * BLOCK;
  p->columns = (descriptor >> 17 & 63) * TILE;
  p->a_byte = descriptor >> 29 & 3;
  p->b_byte = descriptor >> 4 & 3;
  if (p->rows != MOST_ROWS) misuse(p, "it has not 128 rows");
  if (!p->columns || p->columns > 256) misuse(p, "its columns are not 8 to 256");
  if (descriptor & 4) misuse(p, "a sparse matrix needs .sp");
  if (!powers && (site->kind != PE_KIND_MXF4NVF4 || site->each != 16)) misuse(p, "its kind has no such factors");
  if (descriptor >> 31) misuse(p, "multiplications of k 96 are not supported");
  p->scaled = (pe_scaled_site){.k = site->kind == PE_KIND_MXF8F6F4 ? WIDTH : NIBBLES, .each = site->each, .e4m3 = !powers};
  p->mma = (pe_mma_site){.k = WIDTH, .d = PE_TYPE_F32, .flags = is_negated(descriptor) ? PE_MMA_NEGATE : 0};
  decode_sides(p, descriptor);
  p->scaled.a = p->mma.a, p->scaled.b = p->mma.b;
}

static void decode(product *p, uint32_t descriptor) {
  static const uint8_t sizes[] = {[PE_KIND_F16] = 2, [PE_KIND_TF32] = 4, [PE_KIND_F8F6F4] = 1, [PE_KIND_I8] = 1};
  static const uint8_t results[] = {PE_TYPE_F16, PE_TYPE_F32, PE_TYPE_S32};
  const pe_tmem_mma_site *site = p->site;
  uint32_t sums = descriptor >> 4 & 3;
  bool floats = site->kind != PE_KIND_I8;
  p->size = sizes[site->kind];
  p->rows = (descriptor >> 24 & 31) * BLOCK;
  p->columns = (descriptor >> 17 & 63) * TILE;
  if (p->rows != MOST_ROWS && p->rows != MOST_ROWS / 2) misuse(p, "it has not 64 or 128 rows");
  if (!p->columns || p->columns > 256 || (p->rows == MOST_ROWS && p->columns % 16))
    misuse(p, "its columns are not 8 to 256");
  if (descriptor & 4) misuse(p, "a sparse matrix needs .sp");
  if (floats ? sums > F32_SUMS || (site->kind == PE_KIND_TF32 && sums != F32_SUMS) : sums != S32_SUMS)
    misuse(p, "its kind has no such sums");
  bool negated = is_negated(descriptor);
  if (negated && !floats) misuse(p, "integers are not negated");
  p->mma =
      (pe_mma_site){.pos = site->pos,
                    .m = BLOCK,
                    .k = (uint16_t)(WIDTH / p->size),
                    .c = results[sums],
                    .d = results[sums],
                    .flags = (uint16_t)((negated ? PE_MMA_NEGATE : 0) | (!floats && descriptor & 8 ? PE_MMA_SATURATE : 0)),
                    .fraction = site->fraction,
                    .block = site->block,
                    .result = site->result,
                    .least = sums == F16_SUMS ? site->least_half : site->least};
  decode_sides(p, descriptor);
}

/* The lane of a row of what is at an address. */
static uint32_t lane_of(const product *p, uint32_t address, uint32_t row) {
  return (address >> 16) + (p->rows == MOST_ROWS ? row : row / BLOCK * 2 * BLOCK + row % BLOCK);
}

/* ---- multiplicands ---- */

static void read_a(const product *p, pe_halves to[MOST_ROWS / TILE * 2]) {
  for (uint32_t i = 0; i < p->rows / TILE * 2; i++) {
    uint32_t row = i / TILES * 2 + i % 2, column = i % TILES / 2; /* four tiles of 16 rows: down, then along k */
    if (!p->site->a_columns) {
      pe_read_tile(p->w, p->site->pos, &p->a, p->a_across, row, column, to + i);
      pe_spread_tile(to + i, bits_of(p, p->mma.a));
      continue;
    }
    for (uint32_t j = 0; j < TILE; j++)
      memcpy(to[i].at[j], &p->memory->cell[lane_of(p, p->a_at, row * TILE + j)][(p->a_at & 0xffff) + column * LINE_WORDS],
             sizeof to[i].at[j]);
  }
}

static void read_b(const product *p, uint32_t first, uint32_t columns, pe_halves *to) {
  for (uint32_t i = 0; i < columns / TILE * 2; i++) {
    pe_read_tile(p->w, p->site->pos, &p->b, p->b_across, first / TILE + i / 2, i % 2, to + i);
    pe_spread_tile(to + i, bits_of(p, p->mma.b));
  }
}

/* ---- sums: a register has two columns of each of eight rows if they are f16, else every second column ---- */

typedef uint32_t sums[AT_ONCE / TILE * 4][PE_WARP_LANES];

/* The first of the columns in which a row's sums are. */
static uint32_t *row_of(const product *p, uint32_t row, uint32_t first) {
  return &p->memory->cell[lane_of(p, p->at, row)][(p->at & 0xffff) + first];
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

static void read_sums(const product *p, uint32_t first_row, uint32_t first, uint32_t columns, sums to) {
  for (uint32_t row = 0; row < BLOCK; row++) {
    const uint32_t *from = row_of(p, first_row + row, first);
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

/* Whether the lane of a row keeps what it has. */
static bool stays(const product *p, uint32_t row) {
  uint32_t lane = lane_of(p, p->at, row);
  return p->disabled && p->disabled[lane / 32 * PE_WARP_LANES] >> lane % 32 & 1;
}

static void write_sums(const product *p, uint32_t first_row, uint32_t first, uint32_t columns, sums from) {
  for (uint32_t row = 0; row < BLOCK; row++) {
    uint32_t *to = row_of(p, first_row + row, first), half = row / TILE, lane = row % TILE * (TILE / 2);
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
static void divide(const product *p, sums all) {
  uint32_t *word = all[0];
  float by = pe_float((uint32_t)(EXPONENT_BIAS - p->site->shift) << FRACTION_BITS);
  for (uint32_t i = 0; i < sizeof(sums) / sizeof *word; i++)
    word[i] = p->mma.d == PE_TYPE_F16 ? scaled_half(word[i] & 0xffff, by) | scaled_half(word[i] >> 16, by) << 16
                                      : pe_float_bits(pe_float(word[i]) * by);
}

/* Words with the factors of rows or columns, 32 in each column from an address on. */
static void read_factors(const product *p, uint32_t address, uint32_t count, uint32_t *to) {
  enum { LANES = 32 };
  address &= ADDRESS; /* what is above may say which byte it is, as the descriptor does */
  if (address >> 16) misuse(p, "factors start at lane 0");
  const pe_tmem *memory = pe_tmem_columns(p->w, p->site->pos, p->lane, address, (count + LANES - 1) / LANES);
  for (uint32_t i = 0; i < count; i++) to[i] = memory->cell[i % LANES][address + i / LANES];
}

static void multiply_scaled(product *p, bool adds) {
  pe_halves left[MOST_ROWS / TILE * 2], right[AT_ONCE / TILE * 2];
  uint32_t a_factors[MOST_ROWS], b_factors[MOST_COLUMNS];
  sums all;
  read_factors(p, p->a_factors, p->rows, a_factors);
  read_factors(p, p->b_factors, p->columns, b_factors);
  read_a(p, left);
  for (uint32_t x = 0; x < p->columns; x += AT_ONCE) {
    uint32_t columns = p->columns - x < AT_ONCE ? p->columns - x : AT_ONCE;
    pe_scaled_side b = {right, b_factors + x, p->b_byte};
    read_b(p, x, columns, right);
    for (uint32_t row = 0; row < p->rows; row += BLOCK) {
      pe_scaled_side a = {left + row / BLOCK * TILES, a_factors + row, p->a_byte};
      if (adds)
        read_sums(p, row, x, columns, all);
      else
        memset(all, 0, sizeof all);
      pe_scaled_tiles(&p->scaled, &a, &b, columns, p->mma.flags & PE_MMA_NEGATE, all);
      write_sums(p, row, x, columns, all);
    }
  }
}

static void multiply(product *p, bool adds) {
  static const uint16_t IN_ORDER[32] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                        16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
  _Alignas(64) pe_halves left[MOST_ROWS / TILE * 2], right[AT_ONCE / TILE * 2];
  _Alignas(64) sums all;
  uint32_t most = MAX_B / p->mma.k < AT_ONCE ? MAX_B / p->mma.k : AT_ONCE;
  read_a(p, left);
  for (uint32_t x = 0; x < p->columns; x += most) {
    uint32_t columns = p->columns - x < most ? p->columns - x : most;
    p->mma.n = (uint16_t)columns;
    read_b(p, x, columns, right);
    for (uint32_t row = 0; row < p->rows; row += BLOCK) {
      fragment c = {(uint8_t *)all, IN_ORDER};
      pe_operands on = {
        .d = c, .c = c, .a = {(uint8_t *)(left + row / BLOCK * TILES), IN_ORDER}, .b = {(uint8_t *)right, IN_ORDER}};
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

static pe_tmem *columns_at(const product *p, uint32_t address, uint32_t columns) {
  uint32_t start = address >> 16;
  if (start && (start != BLOCK || p->rows == MOST_ROWS))
    misuse(p, "a matrix starts at lane 0, or one of 64 rows at lane 16");
  return pe_tmem_columns(p->w, p->site->pos, p->lane, address, columns);
}

void pe_tmem_mma(pe_warp *w, const pe_tmem_mma_site *site, uint32_t mask, const uint32_t *sums, const uint64_t *a,
                 const uint64_t *b, const uint32_t *descriptor, uint32_t adds, const uint32_t *disabled,
                 const uint32_t *a_factors, const uint32_t *b_factors) {
  PE_FOR_LANES(lane, mask) {
    product p = {.site = site, .w = w, .lane = (int32_t)lane, .at = sums[lane], .a_at = (uint32_t)a[lane]};
    p.disabled = disabled ? disabled + lane : NULL;
    bool scaled = site->kind >= PE_KIND_MXF8F6F4;
    if (scaled) {
      p.a_factors = a_factors[lane], p.b_factors = b_factors[lane];
      decode_scaled(&p, descriptor[lane]);
    } else {
      decode(&p, descriptor[lane]);
    }
    p.memory = columns_at(&p, p.at, p.columns);
    if (site->a_columns) columns_at(&p, p.a_at, WIDTH / 4);
    p.a = pe_tcgen05_matrix(a[lane], p.a_across);
    p.b = pe_tcgen05_matrix(b[lane], p.b_across);
    if (!p.b.wide || (!site->a_columns && !p.a.wide)) misuse(&p, "the layout of a matrix in shared memory is not supported");
    if (scaled)
      multiply_scaled(&p, adds >> lane & 1);
    else
      multiply(&p, adds >> lane & 1);
  }
}
