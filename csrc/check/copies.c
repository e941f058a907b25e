/* copies.c: asynchronous copies that nobody has waited for yet. */
#include <stdlib.h>
#include <string.h>
#include "copies.h"
#include "async.h"
#include "race_access.h"

enum { MOST_SIDES = 1 << 14 }; /* of a warp; others count as complete at once */

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

static bool has_room(pe_copies *copies) {
  if (copies->count < copies->room) return true;
  uint32_t room = copies->room ? 2 * copies->room : 64;
  if (room > MOST_SIDES) return false;
  pe_copy_side *grown = realloc(copies->sides, room * sizeof *grown);
  if (grown) copies->sides = grown, copies->room = room;
  return grown != NULL;
}

/* Other CTAs may look for who has left a stamp while the list changes. */
static bool keep(pe_race *race, pe_copies *copies, const pe_copy_side *side) {
  pthread_mutex_lock(&race->order.mutex);
  bool kept = has_room(copies);
  if (kept) copies->sides[copies->count++] = *side;
  pthread_mutex_unlock(&race->order.mutex);
  return kept;
}

typedef struct completion {
  pe_race *race;
  pe_order_block *b;
  uint32_t warp, what, but, mask;
  uint64_t mbarrier;
} completion;

/* Whether a side is complete, and since when. */
typedef bool is_complete(const completion *c, const pe_copies *copies, const pe_copy_side *side, pe_stamp *when);

/* Take those off the list that are complete. */
static void settle(const completion *c, is_complete *test) {
  pe_copies *copies = &c->b->copies[c->warp];
  uint32_t kept = 0;
  pe_stamp when;
  pe_require_stack();
  pthread_mutex_lock(&c->race->order.mutex);
  for (uint32_t i = 0; i < copies->count; i++) {
    const pe_copy_side *side = &copies->sides[i];
    if (test(c, copies, side, &when))
      complete(c->race, side, when);
    else
      copies->sides[kept++] = *side;
  }
  copies->count = kept;
  pthread_mutex_unlock(&c->race->order.mutex);
}

/* ---- issue ---- */

void pe_copies_issue(pe_race_use *u, uint32_t mask) {
  const pe_memory_event *e = u->event;
  pe_race *race = &u->checker->race;
  uint32_t warp = u->w->warpid;
  pe_copies *copies = &u->b->copies[warp];
  bool bulk = e->order & PE_BULK;
  u->stamp |= PE_STAMP_NEVER;
  u->b->has_copies = true;
  u->b->log.written = u->b->log.read = PE_STAMP_NEVER;
  pe_require_stack();
  if (u->proxied && u->writes) pe_race_note_proxy(u);
  pe_race_visit(u, mask, PE_LEAVE | PE_LOOK);
  PE_FOR_LANES(lane, mask) {
    uint64_t address;
    bool shared;
    if (!pe_race_locate(u->w, e, lane, e->size, &address, &shared)) continue;
    pe_copy_side side = {.address = address,
                         .issued = stamp_now(u->b, warp, lane),
                         .size = (uint32_t)(e->size < PE_RACE_LONGEST ? e->size : PE_RACE_LONGEST),
                         .group = copies->groups[bulk][lane],
                         .pos = e->pos,
                         .lane = (uint8_t)lane,
                         .writes = u->writes,
                         .bulk = bulk};
    if (!keep(race, copies, &side)) complete(race, &side, side.issued);
  }
}

/* ---- groups ---- */

static bool is_awaited(const completion *c, const pe_copies *copies, const pe_copy_side *side, pe_stamp *when) {
  bool bulk = c->what & PE_OF_BULK;
  if (!(c->mask >> side->lane & 1) || side->bulk != bulk) return false;
  if ((c->what & ~PE_OF_BULK) == PE_COPIES_WAIT_READ && side->writes) return false;
  *when = stamp_now(c->b, c->warp, side->lane);
  return pe_sum(side->group, c->but) < copies->groups[bulk][side->lane];
}

void pe_copies_order(pe_race *race, pe_order_block *b, uint32_t warp, uint32_t what, uint32_t mask) {
  pe_copies *copies = &b->copies[warp];
  b->has_copies = true;
  uint32_t which = what & ((1u << PE_BUT_AT) - 1);
  if ((which & ~PE_OF_BULK) == PE_COPIES_GROUP) {
    PE_FOR_LANES(lane, mask) copies->groups[(which & PE_OF_BULK) != 0][lane]++;
  } else if (copies->count) {
    settle(&(completion){race, b, warp, which, what >> PE_BUT_AT, mask, 0}, is_awaited);
  }
}

/* ---- mbarrier objects ---- */

/* An object begins to track copies of a lane: all that no object tracks, or the bulk copy of the same instruction. */
static void track(pe_copies *copies, const pe_memory_event *e, uint32_t lane, uint64_t mbarrier, uint8_t phase) {
  for (uint32_t i = 0; i < copies->count; i++) {
    pe_copy_side *side = &copies->sides[i];
    bool mine = side->lane == lane && !side->mbarrier && (side->bulk ? side->pos == e->pos : e->order & PE_ASYNC);
    if (mine) side->mbarrier = mbarrier, side->phase = phase;
  }
}

static void notice_phase(pe_copies *copies, uint64_t mbarrier, uint8_t phase) {
  for (uint32_t i = 0; i < copies->count; i++) {
    pe_copy_side *side = &copies->sides[i];
    if (side->mbarrier == mbarrier && side->phase != phase) side->passed = true;
  }
}

static bool has_passed(const completion *c, const pe_copies *copies, const pe_copy_side *side, pe_stamp *when) {
  (void)copies;
  *when = side->issued;
  return side->mbarrier == c->mbarrier && side->passed;
}

/* What that means for the copies of a CTA. */
static void meet(const pe_race_use *u, pe_order_block *b, uint64_t mbarrier, uint8_t phase) {
  for (uint32_t i = 0; i < b->warps; i++) {
    if (!b->copies[i].count) continue;
    notice_phase(&b->copies[i], mbarrier, phase);
    if (!u->writes) settle(&(completion){.race = &u->checker->race, .b = b, .warp = i, .mbarrier = mbarrier}, has_passed);
  }
}

void pe_copies_meet(const pe_race_use *u, uint32_t mask) {
  const pe_memory_event *e = u->event;
  if (e->size != sizeof(uint64_t)) return;
  PE_FOR_LANES(lane, mask) {
    uint64_t address;
    bool shared;
    if (!pe_race_locate(u->w, e, lane, e->size, &address, &shared) || !shared) continue;
    uint64_t object = *(const uint64_t *)(uintptr_t)address;
    uint8_t phase = object >> PE_MBARRIER_PHASE_BIT & 1;
    pe_order_block *each = u->b; /* others of the cluster may have told the object */
    do meet(u, each, address, phase);
    while ((each = each->peer) != u->b);
    if (u->writes) track(&u->b->copies[u->w->warpid], e, lane, address, phase);
  }
}

/* ---- the end of a CTA ---- */

static bool is_over(const completion *c, const pe_copies *copies, const pe_copy_side *side, pe_stamp *when) {
  (void)c, (void)copies;
  *when = side->issued;
  return true;
}

void pe_copies_end(pe_race *race, pe_order_block *b) {
  for (uint32_t i = 0; b->has_copies && i < PE_MAX_WARPS; i++) {
    if (b->copies[i].count) settle(&(completion){.race = race, .b = b, .warp = i}, is_over);
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
