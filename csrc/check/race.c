/* race.c: the checker `race`: two accesses of shared or global memory by different threads, one of them a write, that
 * nothing puts in an order (order.h).
 *
 * Words keep the stamps of their last write and of a read (pe_read_stays), which says whether other lanes of the warp have read, too.  Words side by side of lanes side by side are looked at
 * together (race_runs.h), and stamps that cannot matter are told from others by comparing numbers (race_access.h); what
 * remains is asked of order.c, word by word (race_words.c), and byte by byte of words that threads share (race_bytes.c).  Compiled code looks at most of them by itself, and calls only
 * where something may be wrong (ptxemu/lower/core/stamps.py).  Nothing is kept of reads of memory that the launch does not write
 * (quiet.h); those of shared memory are listed, and so are writes there, and leave stamps only if others may race with them before the
 * next barrier (race_log.c, race_claims.c).  Nothing is locked, and nobody waits until others see the
 * stamps that he leaves: two accesses of a word at the very same time, by two workers, may go unseen.
 */
#include "race_access.h"

/* From where on compiled code finds the stamps of an address at its double. */
static uint64_t table_of(const pe_shadow *shadow) { return (uint64_t)(uintptr_t)shadow->numbers - 2 * shadow->base; }

static void show_tables(const pe_race *race, pe_order_block *b, uint32_t warps) {
  for (uint32_t i = 0; i < warps; i++) {
    pe_stamping *code = &b->stamping[i];
    code->writes = table_of(&race->writes);
    code->reads = table_of(&race->reads);
    code->sites = (uint64_t)(uintptr_t)race->sites.pos;
  }
}

bool pe_race_init(pe_race *race, pe_arena *arena) {
  bool made = pe_order_init(&race->order, arena);
  made &= pe_shadow_init(&race->writes, arena, PE_STAMP_BLANK, 1);
  made &= pe_shadow_init(&race->reads, arena, PE_STAMP_BLANK, 1);
  made &= pe_sites_init(&race->sites, PE_SITE_BITS);
  made &= pe_race_scopes_init(race);
  if (made) show_tables(race, race->order.unknown, PE_MAX_WARPS);
  return made;
}

void pe_race_end(pe_race *race) {
  pe_order_end(&race->order);
  pe_shadow_end(&race->writes);
  pe_shadow_end(&race->reads);
  pe_race_bytes_end(race);
  pe_sites_end(&race->sites);
  pe_race_scopes_end(race);
}

static void forget(pe_race *race, uint64_t address, uint64_t size) {
  pe_shadow_clear(&race->writes, address, size);
  pe_shadow_clear(&race->reads, address, size);
}

void pe_race_begun(pe_checker *checker, const pe_config *config) {
  pe_race *race = &checker->race;
  if (!pe_order_begun(&race->order, config)) return;
  forget(race, pe_arena_base(checker->arena), pe_arena_extent(checker->arena));
  pe_sites_clear(&race->sites);
  pe_race_scopes_clear(race);
}

/* CTAs of a launch that has ended do not change any more. */
void pe_race_ended(pe_checker *checker, const pe_config *config) {
  pe_order *order = &checker->race.order;
  pthread_mutex_lock(&order->mutex);
  pe_order_block *b = order->blocks;
  pthread_mutex_unlock(&order->mutex);
  for (; b; b = b->next)
    if (pe_order_is_of(b, config)) pe_copies_end(&checker->race, b);
  pe_order_ended(order, config);
}

void pe_race_forget(pe_checker *checker, uint64_t address, uint64_t size) { forget(&checker->race, address, size); }

uint64_t pe_race_block(pe_checker *checker, const pe_warp *w, const pe_warp *first) {
  pe_order_block *before = pe_order_block_of(w);
  if (before) pe_copies_end(&checker->race, before);
  pe_order_block *b = pe_order_block_begun(&checker->race.order, w, first);
  show_tables(&checker->race, b, b->warps);
  if (b != checker->race.order.unknown) pe_race_log_begin(&checker->race.order, b);
  return (uint64_t)(uintptr_t)b;
}

uint64_t pe_race_lost(const pe_race *race) {
  uint64_t of_bytes = race->bytes[PE_OF_READS].lost + race->bytes[PE_OF_WRITES].lost;
  return race->lost + race->writes.lost + race->reads.lost + race->order.released.lost + of_bytes;
}

void pe_race_order(pe_checker *checker, const pe_warp *w, uint32_t what, uint32_t mask) {
  pe_order_block *b = pe_order_block_of(w);
  if (b->blind) return;
  pe_order_settle(&checker->race.order, b, w->warpid);
  if ((what & PE_ORDERS) >= PE_CLUSTER_ARRIVE)
    pe_order_cluster(&checker->race.order, b, w->warpid, what);
  else if ((what & PE_ORDERS) >= PE_COPIES_GROUP)
    pe_copies_order(&checker->race, b, w->warpid, what, mask);
  else if (what == PE_FENCE_ASYNC)
    pe_order_fence_proxies(&checker->race.order, b, w->warpid);
  else if (what == PE_WARP_SYNC)
    pe_order_warp_sync(&checker->race.order, b, w->warpid);
  else if (what < PE_FENCE)
    pe_order_fence_in(&checker->race.order, b, w->warpid, what == PE_FENCE_CTA ? PE_SCOPE_CTA : PE_SCOPE_CLUSTER);
  else
    pe_order_fence(&checker->race.order, b, w->warpid);
}

void pe_race_left(pe_checker *checker, const pe_warp *w) {
  pe_order_settle(&checker->race.order, pe_order_block_of(w), w->warpid);
}

void pe_race_together(pe_checker *checker, const pe_warp *first, uint32_t warps) {
  pe_order_block *b = pe_order_block_of(first);
  if (!b->blind) pe_order_together(&checker->race.order, b, warps);
}

void pe_race_barrier(pe_checker *checker, const pe_warp *w, uint32_t id, uint32_t how) {
  pe_order_block *b = pe_order_block_of(w);
  if (b->blind || id >= PE_BARRIERS_TOLD || id == PE_BARRIER_CLUSTER) return; /* of that one, pe_race_order is told */
  pe_order_settle(&checker->race.order, b, w->warpid);
  pe_order_barrier(&checker->race.order, b, w->warpid, id, how);
}
