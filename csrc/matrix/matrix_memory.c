/* matrix_memory.c: matrices between memory and fragments: wmma.load, wmma.store, ldmatrix, stmatrix, movmatrix. */
#include "fault.h"
#include "matrix.h"
#include "place.h"

#define MAX_LINES 32
#define MAX_LINE_BYTES 256
#define MOST_ALIGNED 16u /* bytes; what the CUDA C++ guide asks of every leading dimension */

bool pe_whole_warp(pe_warp *w, uint32_t pos, uint32_t mask) {
  if (mask == PE_ALL_LANES) return true;
  if (mask)
    pe_fault_note(w, PE_PARTIAL_WARP, pos, -1, 0, 0, 0, "an .aligned matrix instruction must be executed by all 32 lanes");
  return false;
}

/* ---- wmma ----------------------------------------------------------------------------------------------------------- */

/* The matrix in memory: `count` lines of `bytes` bytes. */
typedef struct lines {
  uint32_t count, bytes;
  uint8_t *at[MAX_LINES];
} lines;

static lines lines_of(pe_warp *w, const pe_wmma_site *site, uint16_t kind, uint64_t address, uint32_t stride) {
  uint32_t elements = site->across ? site->rows : site->columns;
  uint32_t fragment = site->registers * (site->bits == 64 ? 8 : 4);
  lines all = {.count = site->across ? site->columns : site->rows, .bytes = elements * site->bits / 8};
  uint64_t step = (uint64_t)stride * site->bits / 8;
  pe_access access = {site->pos, site->space, PE_ANYWHERE, kind, fragment < MOST_ALIGNED ? fragment : MOST_ALIGNED, NULL};
  for (uint32_t i = 0; i < all.count; i++) all.at[i] = pe_host(w, &access, 0, pe_sum(address, i * step), all.bytes);
  return all;
}

/* Where element (row, column) is in the fragment, in bytes. `size` is that of an element. */
PE_INLINE uint32_t place(const pe_wmma_site *site, uint32_t row, uint32_t column, uint32_t size) {
  uint32_t word = size == 8 ? 8 : 4, down = site->rows / TILE;
  if (site->role == PE_WMMA_C) {
    uint32_t tile = pe_tile_c(row / TILE, column / TILE, down), flat = row % TILE * TILE + column % TILE;
    if (size == 2) return tile * TILE * TILE * size + flat * size;
    return ((tile * 2 + flat % 2) * PE_WARP_LANES + flat / 2) * size;
  }
  uint32_t wide = TILE_WORDS * word, at = column * size, along = site->columns * size / wide;
  uint32_t tile = site->role == PE_WMMA_A ? pe_tile_a(row / TILE, at / wide, down) : pe_tile_b(row / TILE, at / wide, along);
  return tile * PE_WARP_LANES * word + row % TILE * wide + at % wide;
}

/* Move each element between the lines and the fragment. */
#define DEFINE_ELEMENTS(SIZE)                                                                                              \
  static void elements_##SIZE(const pe_wmma_site *site, uint8_t *memory, uint8_t *fragment, bool load) {                   \
    uint32_t at = 0, outer = site->across ? site->columns : site->rows, inner = site->across ? site->rows : site->columns; \
    for (uint32_t i = 0; i < outer; i++)                                                                                   \
      for (uint32_t j = 0; j < inner; j++, at += SIZE) {                                                                   \
        uint32_t to = site->across ? place(site, j, i, SIZE) : place(site, i, j, SIZE);                                    \
        memcpy(load ? fragment + to : memory + at, load ? memory + at : fragment + to, SIZE);                              \
      }                                                                                                                    \
  }

DEFINE_ELEMENTS(1)
DEFINE_ELEMENTS(2)
DEFINE_ELEMENTS(4)
DEFINE_ELEMENTS(8)

/* A multiplicand whose lines go along k: rows of tiles as they are. */
static void load_tiles(const pe_wmma_site *site, const uint8_t *memory, uint8_t *fragment) {
  uint32_t line = site->columns * site->bits / 8, wide = TILE_WORDS * (site->bits == 64 ? 8 : 4);
  uint32_t down = site->rows / TILE, along = line / wide;
  for (uint32_t row = 0; row < site->rows; row++)
    for (uint32_t j = 0; j < along; j++) {
      uint32_t i = row / TILE, tile = site->role == PE_WMMA_A ? pe_tile_a(i, j, down) : pe_tile_b(i, j, along);
      memcpy(fragment + (tile * TILE + row % TILE) * wide, memory + row * line + j * wide, wide);
    }
}

static void move_elements(const pe_wmma_site *site, uint8_t *memory, uint8_t *fragment, bool load) {
  switch (site->bits) {
    case 8: elements_1(site, memory, fragment, load); break;
    case 16: elements_2(site, memory, fragment, load); break;
    case 32: elements_4(site, memory, fragment, load); break;
    default: elements_8(site, memory, fragment, load);
  }
}

void pe_wmma_load(pe_warp *w, const pe_wmma_site *site, uint32_t mask, uint64_t address, uint32_t stride, void *fragment) {
  if (!pe_whole_warp(w, site->pos, mask)) return;
  uint8_t memory[MAX_LINES * MAX_LINE_BYTES], *registers = fragment;
  lines all = lines_of(w, site, PE_READ, address, stride);
  for (uint32_t i = 0; i < all.count; i++) memcpy(memory + i * all.bytes, all.at[i], all.bytes);
  if (site->role != PE_WMMA_C && !site->across)
    load_tiles(site, memory, registers);
  else
    move_elements(site, memory, registers, true);
  /* f16 multiplicands have 8 registers whatever their size: repeat the tiles. */
  uint32_t register_bytes = PE_WARP_LANES * (site->bits == 64 ? 8 : 4);
  uint32_t used = site->rows * site->columns * site->bits / 8;
  for (uint32_t at = used; at < site->registers * register_bytes; at += used) memcpy(registers + at, registers, used);
}

void pe_wmma_store(pe_warp *w, const pe_wmma_site *site, uint32_t mask, uint64_t address, uint32_t stride,
                   const void *fragment) {
  if (!pe_whole_warp(w, site->pos, mask)) return;
  uint8_t memory[MAX_LINES * MAX_LINE_BYTES];
  lines all = lines_of(w, site, PE_WRITE, address, stride);
  move_elements(site, memory, (uint8_t *)fragment, false);
  for (uint32_t i = 0; i < all.count; i++) memcpy(all.at[i], memory + i * all.bytes, all.bytes);
}

/* ---- 8x8 matrices of 16-bit elements ---------------------------------------------------------------------------------- */

#define LINE 16 /* bytes, or elements of fewer bits with padding behind them */

/* The rows of matrices, of 16 bytes each, at the addresses of the first lanes. */
static void host_rows(pe_warp *w, uint32_t pos, uint16_t kind, uint32_t space, uint32_t rows, const uint64_t *address,
                      uint64_t row[PE_WARP_LANES]) {
  uint32_t size = LINE, mask = (uint32_t)((1ull << rows) - 1);
  pe_access access = {pos, (uint16_t)space, PE_ANYWHERE, kind, size, NULL};
  uint32_t stopped = mask & ~pe_tell(w, &access, mask, address, size);
  pe_verdict v = pe_locate_lanes(w, &access, mask, address, size, row);
  if (v.lane >= 0) pe_refuse(w, &access, v.kind, (uint32_t)v.lane, address[v.lane], size);
  if (stopped)
    pe_refuse(w, &access, PE_ILLEGAL_ADDRESS, (uint32_t)__builtin_ctz(stopped), address[__builtin_ctz(stopped)], size);
}

void pe_ldmatrix(pe_warp *w, uint32_t pos, uint32_t space, uint32_t count, uint32_t transpose, uint32_t mask,
                 const uint64_t *address, void *fragment) {
  uint64_t from[PE_WARP_LANES];
  if (!pe_whole_warp(w, pos, mask)) return;
  host_rows(w, pos, PE_READ, space, count * TILE, address, from);
  pe_halves *tiles = fragment;
  for (uint32_t i = 0; i < count; i++) {
    pe_halves tile;
    for (uint32_t row = 0; row < TILE; row++)
      memcpy(tile.at[row], (const void *)(uintptr_t)from[i * TILE + row], sizeof tile.at[row]);
    tiles[i] = transpose ? pe_transposed(&tile) : tile;
  }
}

void pe_stmatrix(pe_warp *w, uint32_t pos, uint32_t space, uint32_t count, uint32_t transpose, uint32_t mask,
                 const uint64_t *address, const void *fragment) {
  uint64_t to[PE_WARP_LANES];
  if (!pe_whole_warp(w, pos, mask)) return;
  host_rows(w, pos, PE_WRITE, space, count * TILE, address, to);
  const pe_halves *tiles = fragment;
  for (uint32_t i = 0; i < count; i++) {
    pe_halves tile = transpose ? pe_transposed(&tiles[i]) : tiles[i];
    for (uint32_t row = 0; row < TILE; row++)
      memcpy((void *)(uintptr_t)to[i * TILE + row], tile.at[row], sizeof tile.at[row]);
  }
}

void pe_movmatrix(pe_warp *w, uint32_t pos, uint32_t mask, const void *from, void *to) {
  if (!pe_whole_warp(w, pos, mask)) return;
  *(pe_halves *)to = pe_transposed(from);
}

/* ---- matrices of lines of 16 elements of 8 bits and less ------------------------------------------------------------------ */

/* Elements of so many bits, the first in the lowest, each in the low bits of a byte. */
static void unpack(const uint8_t *from, uint32_t bits, uint8_t to[LINE]) {
  for (uint32_t i = 0; i < LINE; i++) {
    uint32_t at = i * bits, byte = at / 8, word = from[byte] | (byte + 1 < LINE ? from[byte + 1] : 0u) << 8;
    to[i] = (uint8_t)(word >> at % 8 & ((1u << bits) - 1));
  }
}

/* A lane has four neighbours in a line, and the lanes have the lines one after the other: of 8 lines as they are, of 16 after
 * they were transposed. */
void pe_ldmatrix_lines(pe_warp *w, uint32_t pos, uint32_t space, uint32_t count, uint32_t lines, uint32_t bits,
                       uint32_t mask, const uint64_t *address, void *fragment) {
  uint64_t from[PE_WARP_LANES];
  if (!pe_whole_warp(w, pos, mask)) return;
  host_rows(w, pos, PE_READ, space, count * lines, address, from);
  uint8_t *to = fragment;
  for (uint32_t i = 0; i < count; i++, to += lines * LINE)
    for (uint32_t row = 0; row < lines; row++) {
      uint8_t line[LINE];
      unpack((const uint8_t *)(uintptr_t)from[i * lines + row], bits, line);
      for (uint32_t column = 0; column < LINE; column++)
        to[lines == TILE ? row * LINE + column : column * LINE + row] = line[column];
    }
}

/* A lane has two neighbours in a column of 8 and the same two of the column that is 8 further: two lines of the transposed matrix. */
void pe_stmatrix_lines(pe_warp *w, uint32_t pos, uint32_t space, uint32_t count, uint32_t mask, const uint64_t *address,
                       const void *fragment) {
  uint64_t to[PE_WARP_LANES];
  if (!pe_whole_warp(w, pos, mask)) return;
  host_rows(w, pos, PE_WRITE, space, count * TILE, address, to);
  const uint8_t *from = fragment;
  for (uint32_t i = 0; i < count; i++, from += TILE * LINE)
    for (uint32_t row = 0; row < TILE; row++) {
      uint8_t line[LINE];
      for (uint32_t column = 0; column < LINE; column++)
        line[column] = from[column % TILE * LINE + row / 2 * 4 + column / TILE * 2 + row % 2];
      memcpy((void *)(uintptr_t)to[i * TILE + row], line, LINE);
    }
}
