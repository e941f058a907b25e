/* tmem_shift.c: rows of 32 bytes that move down by one (PTX ISA, "tcgen05.shift"): a lane gets what the one behind it had. The last
 * lane of each warp keeps its own, as a B200 does.
 */
#include <string.h>
#include "atomic.h"
#include "cta.h"
#include "tmem.h"

enum { WARP_LANES = 32, MOVED = 8 /* columns */ };

/* Of columns of a lane, what an observer keeps becomes what it keeps of those behind. */
static void move_bits(pe_tmem *memory, uint32_t lane, uint32_t column) {
  for (uint32_t i = column; i < column + MOVED; i++) {
    uint32_t *to = &memory->written[lane][i / PE_TMEM_UNIT], bit = 1u << i % PE_TMEM_UNIT;
    *to = (*to & ~bit) | (memory->written[lane + 1][i / PE_TMEM_UNIT] & bit);
  }
}

void pe_tmem_move_rows(pe_tmem *memory, uint32_t column) {
  for (uint32_t lane = 0; lane < PE_TMEM_LANES; lane++) {
    if (lane % WARP_LANES == WARP_LANES - 1) continue;
    memcpy(&memory->cell[lane][column], &memory->cell[lane + 1][column], MOVED * sizeof memory->cell[0][0]);
    if (memory->told) move_bits(memory, lane, column);
  }
}

void pe_tmem_shift(pe_warp *w, uint32_t pos, uint32_t ctas, uint32_t mask, const uint32_t *at) {
  PE_FOR_LANES(lane, mask) {
    if ((at[lane] >> 16) % WARP_LANES)
      pe_tmem_misuse(w, pos, (int32_t)lane, at[lane], "rows move from a multiple of 32 lanes on");
    pe_cta *cta[PE_TMEM_PAIR];
    pe_tmem_ctas(w, pos, ctas, cta);
    for (uint32_t i = 0; i < ctas; i++) {
      pe_tmem_expect(w, pos, (int32_t)lane, cta[i]->tensors, at[lane], MOVED);
      pe_tmem_move_rows(cta[i]->tensors, at[lane] & 0xffff);
    }
  }
}
