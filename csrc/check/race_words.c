/* race_words.c: the checker `race` (race.c) word by word: lanes anywhere that have a whole word each, and then, with
 * questions to order.c, all in which something may be wrong. */
#include "race_access.h"
#include "place.h"

/* ---- lanes anywhere, some words each ---- */

enum { MOST_BYTES = 16 }; /* of a lane */

/* A window of memory. */
typedef struct window {
  uint64_t first, size;
} window;

/* Whether all lanes have whole words in a window, and none of them in others; and where the first ones are among all words. */
PE_INLINE bool are_words(const pe_memory_event *e, uint32_t mask, window in, const window *out, uint32_t count,
                         uint64_t plus, uint64_t index[PE_WARP_LANES]) {
  uint64_t last = in.size - e->size, wild = 0;
  if (in.size < e->size) return false;
  for (uint32_t i = 0; i < PE_WARP_LANES; i++) {
    uint64_t a = e->address[i], bad = (a - in.first > last) | (a & 3);
    for (uint32_t j = 0; j < count; j++) bad |= a - out[j].first < out[j].size;
    wild |= bad & (0 - (uint64_t)(mask >> i & 1));
    index[i] = (a + plus) / 4;
  }
  return !wild;
}

PE_WIDEST static bool are_shared_words(const pe_race_use *u, uint32_t mask, uint64_t index[PE_WARP_LANES]) {
  uint64_t plus = u->w->shared_base - u->checker->race.writes.base;
  return are_words(u->event, mask, (window){0, u->w->shared_size}, NULL, 0, plus, index);
}

/* The same in memory that all CTAs reach. */
PE_WIDEST static bool are_global_words(const pe_race_use *u, uint32_t mask, uint64_t index[PE_WARP_LANES]) {
  const pe_warp *w = u->w;
  const window own[] = {{w->shared_base, w->shared_size},
                        {w->local_base, pe_product(w->local_size, PE_WARP_LANES)},
                        {w->const_base, w->const_size},
                        {w->param_base, w->param_size}};
  window arena = {w->arena_base, w->arena_size};
  return are_words(u->event, mask, arena, own, sizeof own / sizeof *own, 0 - u->checker->race.writes.base, index);
}

/* What a lane does at a word; whether nothing is wrong with it, and stamps are kept. */
PE_INLINE bool passes_word(const pe_race_use *u, bool writes, pe_stamp *own, pe_stamp other, pe_stamp now) {
  pe_stamp before = *own;
  bool good = before && (!writes || pe_is_harmless(&u->harmless, before, now)) && pe_is_harmless(&u->harmless, other, now);
  if (good && (writes || u->shared || !pe_stays(u->code, before))) *own = now;
  return good;
}

/* Look at the words of lanes: the lanes with whose words something may be wrong. */
PE_INLINE uint32_t look(const pe_race_use *u, uint32_t mask, bool writes, const uint64_t index[PE_WARP_LANES]) {
  const pe_race *race = &u->checker->race;
  pe_stamp *own = writes ? race->writes.numbers : race->reads.numbers, now = u->stamp | PE_STAMP_BYTES;
  const pe_stamp *others = writes ? race->reads.numbers : race->writes.numbers;
  uint32_t rest = 0, words = (uint32_t)u->event->size / 4;
  PE_FOR_LANES(lane, mask) {
    bool good = true;
    for (uint64_t at = index[lane], end = at + words; at < end; at++)
      good &= passes_word(u, writes, own + at, others[at], now + lane * PE_STAMP_LANE);
    rest |= (uint32_t)!good << lane;
  }
  return rest;
}

PE_UNWATCHED static uint32_t look_as_reader(const pe_race_use *u, uint32_t mask, const uint64_t index[PE_WARP_LANES]) {
  return look(u, mask, false, index);
}

PE_UNWATCHED static uint32_t look_as_writer(const pe_race_use *u, uint32_t mask, const uint64_t index[PE_WARP_LANES]) {
  return look(u, mask, true, index);
}

uint32_t pe_race_look_at_words(pe_race_use *u, uint32_t mask) {
  const pe_memory_event *e = u->event;
  bool shared = e->space == PE_SHARED;
  uint64_t index[PE_WARP_LANES] = {0}, plus = shared ? u->w->shared_base : 0;
  if (u->shared != shared) pe_race_place(u, shared);
  if (!mask || e->size % 4 || e->size > MOST_BYTES) return mask;
  if (!(shared ? are_shared_words(u, mask, index) : are_global_words(u, mask, index))) return mask;
  uint32_t rest = u->writes ? look_as_writer(u, mask, index) : look_as_reader(u, mask, index);
  if (!u->release) return rest;
  PE_FOR_LANES(lane, mask & ~rest) pe_race_release(u, e->address[lane] + plus);
  return rest;
}

/* ---- lanes with any bytes ---- */

/* Tell of an access that was before, if nothing puts it there. */
static void consider(const pe_race_use *u, uint32_t lane, uint64_t address, uint64_t word, pe_stamp now, pe_stamp before,
                     bool is_read) {
  bool pending = pe_stamp_is_pending(before);
  bool harmless = pending ? before & u->harmless.strong : pe_is_harmless(&u->harmless, before, now);
  if (harmless || !(before & now & PE_STAMP_BYTES)) return;
  if (!pending && pe_order_is_before(&u->checker->race.order, u->b, u->w->warpid, lane, before, word)) return;
  pe_race_tell(u, lane, address, before, is_read, !is_read && pe_race_is_equal_write(u, lane, address, before));
}

static void consider_others(const pe_race_use *u, uint32_t lane, uint64_t address, uint64_t word, pe_stamp now) {
  const pe_stamp *others = pe_race_other_stamps(u, word);
  if (others) consider(u, lane, address, word, now, __atomic_load_n(others, __ATOMIC_RELAXED), u->writes);
}

static pe_stamp exchange(const pe_race_use *u, pe_stamp *at, pe_stamp now) {
  if (u->beside) return __atomic_exchange_n(at, now, __ATOMIC_SEQ_CST);
  pe_stamp before = *at;
  *at = now;
  return before;
}

/* What a lane does at one word. */
static inline void visit(const pe_race_use *u, uint32_t lane, uint64_t address, uint64_t word, uint32_t how) {
  uint64_t first = address > word ? address - word : 0, end = address + u->event->size - word;
  uint64_t bytes = 0xf << first & (end < 4 ? (1u << end) - 1 : 0xf);
  pe_stamp now = (u->stamp + lane * PE_STAMP_LANE) | bytes << PE_STAMP_BYTES_AT;
  pe_stamp *own = how & PE_LEAVE ? pe_race_own_stamps(u, word) : NULL;
  if (own && u->writes) {
    pe_stamp before = exchange(u, own, now);
    if (u->release) pe_race_release(u, word);
    consider(u, lane, address, word, now, before, false);
  } else if (own) {
    __atomic_store_n(own, now, __ATOMIC_RELAXED);
  }
  if (how & PE_LOOK) consider_others(u, lane, address, word, now);
}

void pe_race_visit(pe_race_use *u, uint32_t mask, uint32_t how) {
  const pe_memory_event *e = u->event;
  for (uint32_t left = mask; left; left &= left - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(left);
    uint64_t address;
    bool shared;
    if (!pe_race_locate(u->w, e, lane, e->size, &address, &shared)) continue;
    if (shared != u->shared) pe_race_place(u, shared);
    uint64_t end = address + (e->size < PE_RACE_LONGEST ? e->size : PE_RACE_LONGEST);
    for (uint64_t word = address & ~3ull; word < end; word += 4) visit(u, lane, address, word, how);
  }
}
