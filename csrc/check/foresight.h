/* foresight.h: what a CTA is expected to list of shared memory (race_claims.c), turn by turn, as one before it in the launch has.
 *
 * Whether a turn's list has a race depends on nothing but the sites, bases and warps in it, and where there was none, there is none if
 * some are left out.  So compiled code goes on as long as it finds what is expected. */
#ifndef PTXEMU_FORESIGHT_H
#define PTXEMU_FORESIGHT_H
#include "order.h"

typedef struct pe_foresight pe_foresight;

/* What is listed in this turn, and behind it the warp's access, are expected in this order, maybe among others: compiled code looks for
 * the rest from now on. */
bool pe_foresight_begin(pe_order_block *b, const pe_warp *w, const pe_pattern_site *site, uint64_t base);
/* The same of the access alone, where what is listed is known to be expected. */
bool pe_foresight_skip(pe_order_block *b, const pe_warp *w, const pe_pattern_site *site, uint64_t base);
/* The next turn comes, or the next CTA. */
void pe_foresight_turn(pe_order *order, pe_order_block *b);
/* A turn begins, and all warps have their stamps: if what was expected of it has come in the CTA before, compiled code looks for that
 * from the first access on; if that had to give up what it had claimed, nothing is claimed. */
void pe_foresight_ahead(pe_order_block *b);
void pe_foresight_free(pe_order *order, pe_order_block *b);

#endif
