/* matrix_shared.c: matrices in shared memory. They consist of lines of 16 bytes; eight of them are a tile (matrix.h), as they are or
 * transposed (PTX ISA, "Shared Memory Matrix Layout").
 */
#include "matrix_shared.h"
#include "place.h"

#define LINE 16 /* bytes */

static pe_shared_matrix with(uint64_t bits, uint32_t wide) {
  return (pe_shared_matrix){.start = (uint32_t)(bits & 0x3fff) * LINE,
                            .leading = (uint32_t)(bits >> 16 & 0x3fff) * LINE,
                            .stride = (uint32_t)(bits >> 32 & 0x3fff) * LINE,
                            .phase = (uint32_t)(bits >> 49 & 7),
                            .wide = wide,
                            .deep = TILE,
                            .unit = 1};
}

pe_shared_matrix pe_wgmma_matrix(uint64_t bits) {
  static const uint8_t WIDE[] = {1, 8, 4, 2};
  return with(bits, WIDE[bits >> 62]);
}

pe_shared_matrix pe_tcgen05_matrix(uint64_t bits, bool across, bool longest) {
  enum { PAIRS = 1, WHOLE = 2 };
  static const uint8_t WIDE[] = {[0] = 1, [PAIRS] = 8, [2] = 8, [4] = 4, [6] = 2, [7] = 0};
  uint32_t mode = (uint32_t)(bits >> 61);
  bool absolute = bits >> 52 & 1, fits = !absolute || (longest && mode == WHOLE);
  pe_shared_matrix found = with(bits, !fits || (mode == PAIRS && !across) ? 0 : WIDE[mode]);
  found.absolute = absolute;
  if (mode == PAIRS) found.deep = TILE / 2, found.unit = 2;
  return found;
}

static uint32_t swizzled(const pe_shared_matrix *m, uint32_t at) {
  return at ^ (((at >> 7) - m->phase) & (m->wide / m->unit - 1)) * m->unit * LINE;
}

/* The address of a line: the one that is `along`-th in the direction of consecutive elements and `other`-th in the other. */
static uint32_t address_of(const pe_shared_matrix *m, bool across, uint32_t along, uint32_t other) {
  bool swapped = across && m->wide == 1;
  uint32_t blocks = along / m->wide, far = other / m->deep;
  uint32_t width = m->wide * LINE, within = m->start % width + along * LINE, at = other % m->deep * width;
  if (m->absolute && within >= width) return swizzled(m, at + m->leading + within - width + far * m->stride);
  at += m->start + along % m->wide * LINE;
  at += swapped ? blocks * m->stride + far * m->leading : blocks * m->leading + far * m->stride;
  return swizzled(m, at);
}

static void read_line(pe_warp *w, uint32_t pos, const pe_shared_matrix *m, uint32_t address, void *to) {
  uint64_t there = w->shared_base + m->away + address;
  const uint8_t *from = (const uint8_t *)(uintptr_t)there;
  bool inside = pe_within(address, LINE, w->shared_size);
  if (pe_observed(w) || !inside) {
    bool elsewhere = m->away && inside; /* what is in no window is told as it was given */
    pe_access own = {pos, PE_SHARED, PE_ANYWHERE, PE_READ | PE_PROXY, LINE, NULL};
    pe_access other = {pos, PE_GENERIC, PE_IN_SHARED, PE_READ | PE_PROXY, LINE, NULL};
    from = pe_host(w, elsewhere ? &other : &own, 0, elsewhere ? there : address, LINE);
  }
  memcpy(to, from, LINE);
}

/* Elements of 1 or 4 bytes, of which those of a tile's rows that have one k are half a line or two. */
static void read_across(pe_warp *w, uint32_t pos, const pe_shared_matrix *m, uint32_t size, uint32_t row, uint32_t column,
                        pe_halves *to) {
  uint8_t lines[2 * LINE], *out = (uint8_t *)to->at;
  uint32_t first = row * TILE * size / LINE, within = row * TILE * size % LINE, deep = LINE / size;
  for (uint32_t k = 0; k < deep; k++) {
    for (uint32_t i = 0; i == 0 || i < TILE * size / LINE; i++)
      read_line(w, pos, m, address_of(m, true, first + i, column * deep + k), lines + i * LINE);
    for (uint32_t i = 0; i < TILE; i++) memcpy(out + i * LINE + k * size, lines + within + i * size, size);
  }
}

void pe_read_rows(pe_warp *w, uint32_t pos, const pe_shared_matrix *m, uint32_t row, uint32_t column, uint32_t count,
                  pe_halves *to) {
  for (uint32_t i = 0; i < count; i++) read_line(w, pos, m, address_of(m, false, column, row * TILE + i), to->at[i]);
}

void pe_read_tile(pe_warp *w, uint32_t pos, const pe_shared_matrix *m, uint32_t across, uint32_t row, uint32_t column,
                  pe_halves *to) {
  if (!across) {
    pe_read_rows(w, pos, m, row, column, TILE, to);
    return;
  }
  if (across != sizeof to->at[0][0]) {
    read_across(w, pos, m, across, row, column, to);
    return;
  }
  for (uint32_t i = 0; i < TILE; i++) read_line(w, pos, m, address_of(m, true, row, column * TILE + i), to->at[i]);
  *to = pe_transposed(to);
}

void pe_spread_tile(pe_halves *tile, uint32_t bits) {
  for (uint32_t j = 0; bits < 8 && j < TILE; j++) {
    uint8_t line[LINE], *out = (uint8_t *)tile->at[j];
    memcpy(line, out, sizeof line);
    for (uint32_t i = 0, at = 0; i < LINE; i++, at += bits) {
      uint32_t two = line[at / 8] | (uint32_t)line[(at / 8 + 1) % LINE] << 8;
      out[i] = (uint8_t)((two >> at % 8 & ((1u << bits) - 1)) << (bits == 4 ? 2 : 0));
    }
  }
}
