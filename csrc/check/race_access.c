/* race_access.c: an access of a warp under the checker `race` (race.c), from the lanes that are looked at together to those
 * that are looked at word by word. */
#include "race_runs.h"
#include "place.h"

/* ---- lanes side by side ---- */

enum { MOST_WORDS = 4 }; /* of a lane side by side with others */

/* The words of lanes side by side that have theirs side by side, or the same, in memory that others reach and in one chunk;
 * false: it is not so. */
static bool run_of(pe_race_use *u, uint32_t mask, pe_race_run *out) {
  const pe_memory_event *e = u->event;
  uint32_t lane = (uint32_t)__builtin_ctz(mask), behind = mask >> lane;
  bool whole = e->size % 4 == 0 && (e->size & (e->size - 1)) == 0;
  if (!whole || e->size > 4 * MOST_WORDS || e->address[lane] % 4 || behind & (behind + 1)) return false;
  bool one = !u->writes && pe_in_step(mask, e->address, 0); /* lanes do not race by reading */
  if (!one && !pe_in_step(mask, e->address, e->size)) return false;
  uint64_t bytes = one ? e->size : (uint32_t)__builtin_popcount(mask) * e->size, first;
  bool shared;
  if (!pe_race_locate(u->w, e, lane, bytes, &first, &shared)) return false;
  if (shared && !pe_within(first - u->w->cluster_base, bytes, u->w->cluster_bytes)) return false;
  if (!pe_race_one_chunk(u, first, first + bytes - 1)) return false;
  if (shared != u->shared) pe_race_place(u, shared);
  *out = (pe_race_run){first, (uint32_t)(bytes / 4), one ? PE_LAST_LANE(mask) : lane,
                       bytes == e->size ? PE_ALL_OF_ONE : (uint32_t)__builtin_ctzll(e->size / 4), one && mask & (mask - 1)};
  return true;
}

/* Whether the lanes are such a run, and nothing is wrong with it. */
PE_WIDEST PE_UNWATCHED static bool passes_as_run(pe_race_use *u, uint32_t mask) {
  pe_race_run r;
  return run_of(u, mask, &r) && pe_race_passes(u, &r);
}

/* ---- lanes with a byte or two each ---- */

/* The whole words of lanes that have their bytes side by side; false: there are none, or too few. */
static bool row_of(pe_race_use *u, uint32_t mask, pe_race_row *out) {
  const pe_memory_event *e = u->event;
  uint32_t lane = (uint32_t)__builtin_ctz(mask), behind = mask >> lane, lanes = (uint32_t)__builtin_popcount(mask);
  uint32_t log2 = e->size == 2, each = 4u >> log2, before = (uint32_t)((0 - e->address[lane]) % 4) >> log2;
  if (behind & (behind + 1) || lanes < before + 2 * each) return false;
  if (e->address[lane] & (e->size - 1) || !pe_in_step(mask, e->address, e->size)) return false;
  *out = (pe_race_row){.lane = lane + before, .each = each, .count = (lanes - before) >> (2 - log2)};
  bool shared;
  if (!pe_race_locate(u->w, e, out->lane, 4ull * out->count, &out->word, &shared)) return false;
  if (shared && !pe_within(out->word - u->w->cluster_base, 4ull * out->count, u->w->cluster_bytes)) return false;
  if (shared != u->shared) pe_race_place(u, shared);
  return pe_race_one_chunk(u, out->word, out->word + 4ull * out->count - 1);
}

/* The lanes with which something may be wrong, or whose words are not wholly those of the row. */
static uint32_t look_at_row(pe_race_use *u, uint32_t mask) {
  pe_race_row r;
  if (!row_of(u, mask, &r) || !pe_race_rows_pass(u, &r)) return mask;
  return mask & ~(PE_ALL_LANES >> (PE_WARP_LANES - r.count * r.each) << r.lane);
}

/* ---- an access ---- */

/* Lanes with a strong read follow who releases there until they are done: in shared memory nobody does any more. */
static void keep_reads(pe_race_use *u, uint32_t mask) {
  u->s->reads = 0;
  u->s->words = (uint32_t)((u->event->size + 3) / 4);
  PE_FOR_LANES(lane, mask) {
    uint64_t address;
    bool shared;
    if (!pe_race_locate(u->w, u->event, lane, u->event->size, &address, &shared)) continue;
    for (uint32_t word = 0; shared && !u->release && word < u->s->words; word++)
      pe_race_meet(u, pe_order_released_at(&u->checker->race.order, address + 4ull * word));
    if (!shared) u->s->reads |= 1u << lane;
    u->s->word[lane] = (address - u->checker->race.writes.base) / 4;
  }
}

/* What strong reads follow: who had released their words before an update has released them itself, or before they are done. */
static void follow(pe_race_use *u, uint32_t mask) {
  if (!u->follows) keep_reads(u, mask);
  u->s->unsettled = u->s->reads;
  u->s->loose = u->event->order & (PE_LOCK | PE_LOOSE);
  if (u->release) pe_order_updated(&u->checker->race.order, u->b, u->w->warpid, u->release);
  pe_order_follow(u->b, u->w->warpid, u->met, u->s->loose);
}

/* Of lanes with strong reads of one address, the first is enough. */
static uint32_t one_of_all(pe_race_use *u, uint32_t mask) {
  if (u->writes || !(mask & (mask - 1)) || !pe_in_step(mask, u->event->address, 0)) return mask;
  u->stamp |= PE_STAMP_SEVERAL;
  return mask & -mask;
}

/* Word by word. */
static void visit(pe_race_use *u, uint32_t mask) {
  if (u->beside && !u->writes) {
    pe_race_visit(u, mask, PE_LEAVE);
    atomic_thread_fence(memory_order_seq_cst);
    pe_race_visit(u, mask, PE_LOOK);
  } else {
    pe_race_visit(u, mask, PE_LEAVE | PE_LOOK);
  }
}

void pe_race_access(pe_checker *checker, const pe_warp *w, const pe_memory_event *event, uint32_t mask) {
  pe_race_use u;
  if (!pe_race_reached(event->space) || !event->size) return;
  mask = pe_quiet_pass(checker, w, event, mask);
  if (!mask) return;
  if (!pe_race_begin(&u, checker, w, event->pos, event->kind, event->order, event->space)) return;
  u.event = event;
  if (event->order & PE_ASYNC && !(event->order & PE_RELEASE)) return pe_copies_issue(&u, mask);
  if (u.harmless.strong) pe_race_note_scope(&u), pe_copies_meet(&u, mask);
  if (u.harmless.strong && u.writes) u.release = pe_order_release(&checker->race.order, u.b, w->warpid);
  if (u.harmless.strong)
    mask = one_of_all(&u, mask);
  else if (pe_race_may_be_row(&u))
    mask = look_at_row(&u, mask);
  else if (!u.proxied && passes_as_run(&u, mask))
    return;
  uint32_t lanes = mask;
  if (!u.proxied && mask) mask = pe_race_look_at_words(&u, mask);
  if (mask) visit(&u, mask); /* what it does waits for all stamps that the lanes have left */
  if (u.harmless.strong && event->kind & PE_READ) follow(&u, lanes);
}
