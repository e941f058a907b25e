/* foresight.h: what a CTA is expected to list of shared memory (race_claims.c), turn by turn, as one before it in the launch has.
 *
 * A turn's list depends on nothing but the sites, bases and warps in it, so that one that was without a race is so again, and compiled
 * code goes on as long as it finds what is expected. */
#ifndef PTXEMU_FORESIGHT_H
#define PTXEMU_FORESIGHT_H
#include "order.h"

typedef struct pe_foresight pe_foresight;

/* The warp's access is the next that is expected behind all that is listed in this turn: compiled code looks for that from now on. */
bool pe_foresight_begin(pe_order_block *b, const pe_warp *w, const pe_pattern_site *site, uint64_t base);
/* The next turn comes. */
void pe_foresight_turn(pe_order *order, pe_order_block *b);
void pe_foresight_free(pe_order *order, pe_order_block *b);

#endif
