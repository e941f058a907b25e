/* race_foresight.c: the checker `race` (race.c): accesses of shared memory that are expected (foresight.h). */
#include <stdlib.h>
#include "foresight.h"
#include "arena.h"
#include "fault.h"
#include "race_access.h"

enum { KNOWN_TURNS = 64, MOST_EXPECTED = 128, PATIENCE = 16 };

struct pe_foresight {
  uint32_t count[KNOWN_TURNS];
  bool came[KNOWN_TURNS];     /* the last CTA has listed nothing else */
  uint8_t fails[KNOWN_TURNS]; /* for as many CTAs nothing is claimed, as the last one that tried had to give up */
  pe_foreseen turn[KNOWN_TURNS][MOST_EXPECTED];
};

static uint64_t who(const pe_pattern_site *site, uint32_t warp) {
  return (uint64_t)(uintptr_t)site | (uint64_t)warp << PE_FORESEEN_WARP_AT;
}

static uint32_t turn_of(const pe_order_block *b) { return b->turns % KNOWN_TURNS; }

/* Nobody makes one that may race with itself, which depends on its lanes. */
static pe_foreseen seen(const pe_logged *access) {
  const pe_pattern_site *site = pe_logged_sites(access);
  bool apart = pe_are_apart(site, access->lanes >> PE_LOGGED_AT);
  return (pe_foreseen){apart ? who(site, pe_stamp_warp(access->now)) : 0, access->base};
}

static bool is_same(pe_foreseen a, pe_foreseen b) { return a.who && a.who == b.who && a.base == b.base; }

/* The first of some that is the same as one; NULL: none is. */
static const pe_foreseen *find(const pe_foreseen *first, const pe_foreseen *end, pe_foreseen one) {
  while (first < end && !is_same(*first, one)) first++;
  return first < end ? first : NULL;
}

/* From one on, they are expected behind all that is listed. */
static bool expect(pe_shared_log *log, const pe_foreseen *first, const pe_foreseen *end) {
  if (!first) return false;
  log->foreseen = log->count + (uint64_t)(end - first);
  log->expected = (uint64_t)(uintptr_t)first - log->count * sizeof *first;
  return true;
}

bool pe_foresight_begin(pe_order_block *b, const pe_warp *w, const pe_pattern_site *site, uint64_t base) {
  pe_shared_log *log = &b->log;
  uint32_t turn = turn_of(b);
  if (!b->foresight) return false;
  const pe_foreseen *next = b->foresight->turn[turn], *end = next + b->foresight->count[turn];
  for (uint64_t i = 0; i < log->count && next; i++) {
    next = find(next, end, seen(&log->accesses[i]));
    next = next ? next + 1 : NULL;
  }
  return next && expect(log, find(next, end, (pe_foreseen){who(site, w->warpid), base}), end);
}

bool pe_foresight_skip(pe_order_block *b, const pe_warp *w, const pe_pattern_site *site, uint64_t base) {
  pe_shared_log *log = &b->log;
  if (log->count >= log->foreseen) return false;
  const pe_foreseen *first = (const pe_foreseen *)(uintptr_t)log->expected;
  const pe_foreseen *end = first + log->foreseen;
  return expect(log, find(first + log->count, end, (pe_foreseen){who(site, w->warpid), base}), end);
}

static bool has_memory(pe_order *order, pe_order_block *b) {
  if (b->foresight) return true;
  pe_require_stack();
  if (!pe_arena_charge(order->arena, sizeof *b->foresight)) return false;
  b->foresight = calloc(1, sizeof *b->foresight);
  if (!b->foresight) pe_arena_discharge(order->arena, sizeof *b->foresight);
  return b->foresight != NULL;
}

/* The turn that ends is what is expected of it from now on. */
static void keep(pe_order *order, pe_order_block *b) {
  const pe_shared_log *log = &b->log;
  bool claimed = log->wrote == log->turn && log->exact < log->turn;
  if (!claimed || log->foreseen || log->count > MOST_EXPECTED || !has_memory(order, b)) return;
  uint32_t turn = turn_of(b);
  for (uint64_t i = 0; i < log->count; i++) b->foresight->turn[turn][i] = seen(&log->accesses[i]);
  b->foresight->count[turn] = (uint32_t)log->count;
}

void pe_foresight_ahead(pe_order_block *b) {
  pe_shared_log *log = &b->log;
  pe_foresight *known = b->foresight;
  uint32_t turn = turn_of(b);
  if (!known || log->exact >= log->turn) return;
  if (known->fails[turn]) {
    known->fails[turn]--;
    return pe_race_log_end(log);
  }
  if (!known->came[turn]) return;
  log->foreseen = known->count[turn], log->expected = (uint64_t)(uintptr_t)known->turn[turn];
  log->wrote = log->turn;
  log->written = b->stamping[0].now; /* there may be writes now, among what is listed */
}

void pe_foresight_turn(pe_order *order, pe_order_block *b) {
  pe_shared_log *log = &b->log;
  bool fails = log->wrote == log->turn && log->exact >= log->turn;
  keep(order, b);
  if (fails && has_memory(order, b)) b->foresight->fails[turn_of(b)] = PATIENCE;
  if (b->foresight) b->foresight->came[turn_of(b)] = log->foreseen && log->count;
  log->count = log->foreseen = 0;
  log->turn += PE_TURN;
  b->turns++;
}

void pe_foresight_free(pe_order *order, pe_order_block *b) {
  if (!b->foresight) return;
  free(b->foresight);
  pe_arena_discharge(order->arena, sizeof *b->foresight);
}
