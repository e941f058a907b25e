/* race_copies.c: the checker `race` (race.c) at asynchronous copies that nobody has waited for yet. */
#include <stdlib.h>
#include <string.h>
#include "copies.h"
#include "race_access.h"

#define STAYS (PE_STAMP_LANE - 1) /* the bits of a stamp that completion does not change */

/* ---- stamps ---- */

/* Whether a stamp was left by a side that is under way. */
static bool is_of(pe_stamp stamp, const pe_copy_side *side, uint32_t warp) {
  return pe_stamp_is_pending(stamp) && pe_stamp_lane(stamp) == side->lane && pe_stamp_warp(stamp) == warp;
}

static void complete_one(const pe_copy_side *side, pe_stamp *at, pe_stamp now) {
  pe_stamp before = __atomic_load_n(at, __ATOMIC_RELAXED);
  if (is_of(before, side, pe_stamp_warp(now)))
    __atomic_compare_exchange_n(at, &before, (now & ~STAYS) | (before & STAYS), false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* The stamps of a side become those of its thread at a time. */
static void complete(pe_race *race, const pe_copy_side *side, pe_stamp now) {
  const pe_shadow *shadow = side->writes ? &race->writes : &race->reads;
  uint64_t end = side->address + side->size;
  for (uint64_t word = side->address & ~3ull; word < end; word += 4) {
    uint64_t *at = pe_shadow_find(shadow, word);
    if (!at) continue;
    if (__atomic_load_n(at, __ATOMIC_ACQUIRE) == PE_STAMP_SPLIT) {
      pe_stamp *bytes = pe_race_bytes(race, side->writes ? PE_OF_WRITES : PE_OF_READS, word);
      for (uint32_t i = 0; bytes && i < 4; i++) complete_one(side, &bytes[i], now);
    } else {
      complete_one(side, at, now);
    }
  }
}

static pe_stamp stamp_now(const pe_order_block *b, uint32_t warp, uint32_t lane) {
  return b->stamping[warp].now + lane * PE_STAMP_LANE;
}

/* ---- the list ---- */

/* Other CTAs may look for who has left a stamp while the list changes. */
static bool keep(pe_race *race, pe_copies *copies, const pe_copy_side *side) {
  pthread_mutex_lock(&race->order.mutex);
  bool kept = pe_copies_keep(copies, side);
  pthread_mutex_unlock(&race->order.mutex);
  return kept;
}

typedef struct completion {
  pe_race *race;
  const pe_order_block *b;
  uint32_t warp;
} completion;

static void done(void *context, const pe_copy_side *side) {
  const completion *c = context;
  complete(c->race, side, side->issued);
}

/* The thread that has issued it has waited for it. */
static void done_by_thread(void *context, const pe_copy_side *side) {
  const completion *c = context;
  complete(c->race, side, stamp_now(c->b, c->warp, side->lane));
}

/* Take those off the list that are complete. */
static void settle(pe_race *race, pe_order_block *b, uint32_t warp, const pe_copies_wait *wait, pe_copies_test *test) {
  completion c = {race, b, warp};
  pe_require_stack();
  pthread_mutex_lock(&race->order.mutex);
  pe_copies_settle(&b->copies[warp], wait, test, test == pe_copies_are_awaited ? done_by_thread : done, &c);
  pthread_mutex_unlock(&race->order.mutex);
}

/* ---- issue ---- */

void pe_copies_issue(pe_race_use *u, uint32_t mask) {
  const pe_memory_event *e = u->event;
  pe_race *race = &u->checker->race;
  uint32_t warp = u->w->warpid;
  pe_copies *copies = &u->b->copies[warp];
  u->stamp |= PE_STAMP_NEVER;
  u->b->has_copies = true;
  u->b->log.written = u->b->log.read = PE_STAMP_NEVER;
  u->b->log.exact = UINT64_MAX;
  pe_require_stack();
  if (u->proxied && u->writes) pe_race_note_proxy(u);
  pe_race_visit(u, mask, PE_LEAVE | PE_LOOK);
  PE_FOR_LANES(lane, mask) {
    uint64_t address;
    bool shared;
    if (!pe_race_locate(u->w, e, lane, e->size, &address, &shared)) continue;
    pe_copy_side side = pe_copies_side(copies, e, lane, address);
    side.issued = stamp_now(u->b, warp, lane);
    if (!keep(race, copies, &side)) complete(race, &side, side.issued);
  }
}

void pe_copies_order(pe_race *race, pe_order_block *b, uint32_t warp, uint32_t what, uint32_t mask) {
  pe_copies *copies = &b->copies[warp];
  pe_copies_wait wait = pe_copies_asked(what, mask);
  b->has_copies = true;
  if (!pe_copies_end_group(copies, what, mask) && copies->count) settle(race, b, warp, &wait, pe_copies_are_awaited);
}

/* ---- mbarrier objects ---- */

/* What the use of an object means for the copies of a CTA. */
static void meet(const pe_race_use *u, pe_order_block *b, uint64_t mbarrier, uint8_t phase) {
  pe_copies_wait wait = {.mbarrier = mbarrier};
  for (uint32_t i = 0; i < b->warps; i++) {
    if (!b->copies[i].count) continue;
    pe_copies_notice(&b->copies[i], mbarrier, phase);
    if (!u->writes) settle(&u->checker->race, b, i, &wait, pe_copies_have_passed);
  }
}

void pe_copies_meet(const pe_race_use *u, uint32_t mask) {
  const pe_memory_event *e = u->event;
  if (e->size != sizeof(uint64_t)) return;
  PE_FOR_LANES(lane, mask) {
    uint64_t address;
    bool shared;
    if (!pe_race_locate(u->w, e, lane, e->size, &address, &shared) || !shared) continue;
    uint8_t phase = pe_mbarrier_phase(address);
    pe_order_block *each = u->b; /* others of the cluster may have told the object */
    do meet(u, each, address, phase);
    while ((each = each->peer) != u->b);
    if (u->writes) pe_copies_track(&u->b->copies[u->w->warpid], e, lane, address, phase);
  }
}

/* ---- the end of a CTA ---- */

void pe_copies_end(pe_race *race, pe_order_block *b) {
  for (uint32_t i = 0; b->has_copies && i < PE_MAX_WARPS; i++) {
    if (b->copies[i].count) settle(race, b, i, NULL, pe_copies_are_over);
    memset(b->copies[i].groups, 0, sizeof b->copies[i].groups);
  }
  b->has_copies = false;
}

void pe_copies_free(pe_order_block *b) {
  for (uint32_t i = 0; i < PE_MAX_WARPS; i++) free(b->copies[i].sides);
}

/* ---- whose they are ---- */

static bool has_left(const pe_order_block *b, pe_stamp stamp, uint64_t address) {
  const pe_copies *copies = &b->copies[pe_stamp_warp(stamp)];
  for (uint32_t i = 0; i < copies->count; i++) {
    const pe_copy_side *side = &copies->sides[i];
    uint64_t first = side->address & ~3ull;
    bool there = (address & ~3ull) - first < pe_sum(side->size, side->address - first);
    if (there && is_of(stamp, side, pe_stamp_warp(stamp))) return true;
  }
  return false;
}

uint64_t pe_copies_block(pe_race *race, pe_stamp stamp, uint64_t address, uint64_t own) {
  uint64_t number = own;
  pthread_mutex_lock(&race->order.mutex);
  for (const pe_order_block *b = race->order.blocks; b; b = b->next)
    if (has_left(b, stamp, address)) number = b->number;
  pthread_mutex_unlock(&race->order.mutex);
  return number;
}
