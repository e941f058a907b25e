/* tmem_copy.c: copies from shared to tensor memory, of one CTA or in both of a pair (PTX ISA, "tcgen05.cp"). */
#include "atomic.h"
#include "cta.h"
#include "matrix_shared.h"
#include "tmem.h"

enum { LINE_WORDS = 4 };

static uint32_t rows_at_once(const pe_tmem_copy_site *site) { return site->rows < TILE ? site->rows : TILE; }

/* The rows of a tile go to a column of lines. */
static void store(pe_warp *w, const pe_tmem_copy_site *site, pe_tmem *memory, uint32_t row, uint32_t to,
                  const pe_halves *tile) {
  for (uint32_t copy = 0; copy < site->copies; copy++)
    for (uint32_t i = 0; i < rows_at_once(site); i++) {
      uint32_t lane = (to >> 16) + (row + i) * site->every + (row >= site->rows / 2 ? site->behind : 0) + copy * site->apart;
      memcpy(&memory->cell[lane][to & 0xffff], tile->at[i], sizeof tile->at[i]);
      if (memory->told) pe_tmem_tell(w, site->pos, -1, memory, PE_WRITE, lane, to & 0xffff, LINE_WORDS, false);
    }
}

/* Within one CTA. */
static void copy(pe_warp *w, const pe_tmem_copy_site *site, const pe_shared_matrix *from, pe_tmem *memory, uint32_t to) {
  for (uint32_t row = 0; row < site->rows; row += TILE)
    for (uint32_t line = 0; line < site->lines; line++) {
      pe_halves tile = {{{0}}};
      pe_read_rows(w, site->pos, from, row / TILE, line, rows_at_once(site), &tile);
      pe_spread_tile(&tile, site->bits);
      store(w, site, memory, row, to + line * LINE_WORDS, &tile);
    }
}

void pe_tmem_copy(pe_warp *w, const pe_tmem_copy_site *site, uint32_t mask, const uint32_t *to, const uint64_t *from) {
  PE_FOR_LANES(lane, mask) {
    pe_shared_matrix m = pe_tcgen05_matrix(from[lane], false, false);
    if (!m.wide)
      pe_tmem_misuse(w, site->pos, (int32_t)lane, to[lane], "the layout of a matrix in shared memory is not supported");
    if (to[lane] >> 16 >= site->every)
      pe_tmem_misuse(w, site->pos, (int32_t)lane, to[lane], "a copy starts at lane 0, or one of 4 rows at a lane below 32");
    pe_cta *cta[PE_TMEM_PAIR];
    pe_tmem_ctas(w, site->pos, site->ctas, cta);
    for (uint32_t i = 0; i < site->ctas; i++) {
      pe_tmem_expect(w, site->pos, (int32_t)lane, cta[i]->tensors, to[lane], site->lines * LINE_WORDS);
      m.away = pe_tmem_away(w, cta[i]);
      copy(w, site, &m, cta[i]->tensors, to[lane]);
    }
  }
}
