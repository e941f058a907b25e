/* race_foresight.c: the checker `race` (race.c): accesses of shared memory that are expected (foresight.h). */
#include <stdlib.h>
#include "foresight.h"
#include "arena.h"
#include "fault.h"
#include "race_access.h"

enum { KNOWN_TURNS = 64, MOST_EXPECTED = 128 };

struct pe_foresight {
  uint32_t count[KNOWN_TURNS];
  pe_foreseen turn[KNOWN_TURNS][MOST_EXPECTED];
};

/* Who makes an access; 0 if it may race with itself, which depends on its lanes. */
static uint64_t who(const pe_pattern_site *site, uint32_t warp) {
  bool apart = !(site->kind & PE_WRITE) || site->family;
  return apart ? (uint64_t)(uintptr_t)site | (uint64_t)warp << PE_FORESEEN_WARP_AT : 0;
}

static pe_foreseen seen(const pe_logged *access) {
  return (pe_foreseen){who(pe_logged_sites(access), pe_stamp_warp(access->now)), access->base};
}

static bool is_same(pe_foreseen a, pe_foreseen b) { return a.who && a.who == b.who && a.base == b.base; }

bool pe_foresight_begin(pe_order_block *b, const pe_warp *w, const pe_pattern_site *site, uint64_t base) {
  pe_shared_log *log = &b->log;
  uint32_t turn = b->turns % KNOWN_TURNS, count = b->foresight ? b->foresight->count[turn] : 0;
  if (log->count >= count) return false;
  const pe_foreseen *expected = b->foresight->turn[turn];
  for (uint64_t i = 0; i < log->count; i++)
    if (!is_same(expected[i], seen(&log->accesses[i]))) return false;
  if (!is_same(expected[log->count], (pe_foreseen){who(site, w->warpid), base})) return false;
  log->foreseen = count, log->expected = (uint64_t)(uintptr_t)expected;
  return true;
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
  uint32_t turn = b->turns % KNOWN_TURNS;
  for (uint64_t i = 0; i < log->count; i++) b->foresight->turn[turn][i] = seen(&log->accesses[i]);
  b->foresight->count[turn] = (uint32_t)log->count;
}

void pe_foresight_turn(pe_order *order, pe_order_block *b) {
  pe_shared_log *log = &b->log;
  keep(order, b);
  log->count = log->foreseen = 0;
  log->turn += PE_TURN;
  b->turns++;
}

void pe_foresight_free(pe_order *order, pe_order_block *b) {
  if (!b->foresight) return;
  free(b->foresight);
  pe_arena_discharge(order->arena, sizeof *b->foresight);
}
