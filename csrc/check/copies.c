/* copies.c: the asynchronous copies of a warp that nobody has waited for yet. */
#include <stdlib.h>
#include "copies.h"
#include "atomic.h"
#include "checked.h"
#include "race_access.h"

enum { MOST_SIDES = 1 << 14 }; /* of a warp; others count as complete at once */

static bool has_room(pe_copies *copies) {
  if (copies->count < copies->room) return true;
  uint32_t room = copies->room ? 2 * copies->room : 64;
  if (room > MOST_SIDES) return false;
  pe_copy_side *grown = realloc(copies->sides, room * sizeof *grown);
  if (grown) copies->sides = grown, copies->room = room;
  return grown != NULL;
}

bool pe_copies_keep(pe_copies *copies, const pe_copy_side *side) {
  bool kept = has_room(copies);
  if (kept) copies->sides[copies->count++] = *side;
  return kept;
}

pe_copy_side pe_copies_side(const pe_copies *copies, const pe_memory_event *e, uint32_t lane, uint64_t address) {
  bool bulk = e->order & PE_BULK;
  return (pe_copy_side){.address = address,
                        .size = (uint32_t)(e->size < PE_RACE_LONGEST ? e->size : PE_RACE_LONGEST),
                        .group = copies->groups[bulk][lane],
                        .pos = e->pos,
                        .lane = (uint8_t)lane,
                        .writes = e->kind & PE_WRITE ? 1 : 0,
                        .bulk = bulk};
}

void pe_copies_settle(pe_copies *copies, const pe_copies_wait *wait, pe_copies_test *test,
                      void (*done)(void *context, const pe_copy_side *side), void *context) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < copies->count; i++) {
    const pe_copy_side *side = &copies->sides[i];
    if (!test(wait, copies, side))
      copies->sides[kept++] = *side;
    else if (done)
      done(context, side);
  }
  copies->count = kept;
}

/* ---- groups ---- */

pe_copies_wait pe_copies_asked(uint32_t what, uint32_t mask) {
  return (pe_copies_wait){what & ((1u << PE_BUT_AT) - 1), what >> PE_BUT_AT, mask, 0};
}

bool pe_copies_end_group(pe_copies *copies, uint32_t what, uint32_t mask) {
  if ((what & PE_ORDERS) != PE_COPIES_GROUP) return false;
  PE_FOR_LANES(lane, mask) copies->groups[(what & PE_OF_BULK) != 0][lane]++;
  return true;
}

bool pe_copies_are_awaited(const pe_copies_wait *wait, const pe_copies *copies, const pe_copy_side *side) {
  bool bulk = wait->what & PE_OF_BULK;
  if (!(wait->mask >> side->lane & 1) || side->bulk != bulk) return false;
  if ((wait->what & ~PE_OF_BULK) == PE_COPIES_WAIT_READ && side->writes) return false;
  return pe_sum(side->group, wait->but) < copies->groups[bulk][side->lane];
}

/* ---- mbarrier objects ---- */

/* All that no object tracks, or the bulk copy of the same instruction. */
void pe_copies_track(pe_copies *copies, const pe_memory_event *e, uint32_t lane, uint64_t mbarrier, uint8_t phase) {
  for (uint32_t i = 0; i < copies->count; i++) {
    pe_copy_side *side = &copies->sides[i];
    bool mine = side->lane == lane && !side->mbarrier && (side->bulk ? side->pos == e->pos : e->order & PE_ASYNC);
    if (mine) side->mbarrier = mbarrier, side->phase = phase;
  }
}

void pe_copies_notice(pe_copies *copies, uint64_t mbarrier, uint8_t phase) {
  for (uint32_t i = 0; i < copies->count; i++) {
    pe_copy_side *side = &copies->sides[i];
    if (side->mbarrier == mbarrier && side->phase != phase) side->passed = true;
  }
}

bool pe_copies_have_passed(const pe_copies_wait *wait, const pe_copies *copies, const pe_copy_side *side) {
  (void)copies;
  return side->mbarrier == wait->mbarrier && side->passed;
}

/* ---- the end of a CTA ---- */

bool pe_copies_are_over(const pe_copies_wait *wait, const pe_copies *copies, const pe_copy_side *side) {
  (void)wait, (void)copies, (void)side;
  return true;
}
