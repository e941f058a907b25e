/* race_words.c: the checker `race` (race.c) word by word: lanes anywhere that have a whole word each, and then, with
 * questions to order.c, all in which something may be wrong. */
#include "race_access.h"
#include "place.h"

/* ---- lanes anywhere, a word each ---- */

/* Whether all lanes have a whole word each in shared memory, or in memory that all CTAs reach, and the first and last of them. */
static bool are_words(const pe_race_use *u, uint32_t mask, uint64_t *first, uint64_t *last) {
  const pe_memory_event *e = u->event;
  const pe_warp *w = u->w;
  if (e->size != 4) return false;
  pe_span s = pe_span_of(mask, e->address);
  *first = (uint64_t)s.least, *last = (uint64_t)s.greatest;
  if (!pe_span_aligned(s, 4)) return false;
  if (e->space == PE_SHARED) return pe_within(*last, 4, w->shared_size);
  return pe_in_arena(w, *first, 4) && pe_in_arena(w, *last, 4) && pe_span_apart(s, w->shared_base, w->shared_size) &&
         pe_span_apart(s, w->local_base, pe_product(w->local_size, PE_WARP_LANES)) &&
         pe_span_apart(s, w->const_base, w->const_size) && pe_span_apart(s, w->param_base, w->param_size);
}

/* What a lane does at a word; whether nothing is wrong with it. */
PE_INLINE bool passes_word(const pe_race_use *u, uint32_t lane, pe_stamp *own, const pe_stamp *others) {
  pe_stamp now = (u->stamp + lane * PE_STAMP_LANE) | PE_STAMP_BYTES;
  bool good =
      (!u->writes || pe_is_harmless(&u->harmless, *own, now)) && (!others || pe_is_harmless(&u->harmless, *others, now));
  if (good) *own = now;
  return good;
}

/* Look at such lanes, the words of which are in one chunk: those with whose words something may be wrong. */
PE_UNWATCHED static uint32_t look_near(const pe_race_use *u, uint32_t mask, uint64_t first) {
  uint64_t word = first + (u->shared ? u->w->shared_base : 0);
  pe_stamp *own = pe_race_own_stamps(u, word);
  const pe_stamp *others = pe_race_other_stamps(u, word);
  uint32_t rest = 0;
  PE_FOR_LANES(lane, own ? mask : 0) {
    uint64_t index = (u->event->address[lane] - first) / 4;
    rest |= (uint32_t)!passes_word(u, lane, own + index, others ? others + index : NULL) << lane;
  }
  return rest;
}

/* The same of words anywhere. */
PE_UNWATCHED static uint32_t look_far(const pe_race_use *u, uint32_t mask) {
  uint32_t rest = 0;
  PE_FOR_LANES(lane, mask) {
    uint64_t word = u->event->address[lane] + (u->shared ? u->w->shared_base : 0);
    pe_stamp *own = pe_race_own_stamps(u, word);
    if (own) rest |= (uint32_t)!passes_word(u, lane, own, pe_race_other_stamps(u, word)) << lane;
  }
  return rest;
}

/* The same where other workers may be there. */
PE_UNWATCHED static uint32_t look_beside(const pe_race_use *u, uint32_t mask) {
  uint32_t rest = 0;
  PE_FOR_LANES(lane, mask) {
    uint64_t word = u->event->address[lane];
    pe_stamp now = (u->stamp + lane * PE_STAMP_LANE) | PE_STAMP_BYTES, *own = pe_race_own_stamps(u, word);
    if (own && u->writes && !pe_is_harmless(&u->harmless, *own, now))
      rest |= 1u << lane;
    else if (own)
      *own = now;
  }
  atomic_thread_fence(memory_order_seq_cst);
  PE_FOR_LANES(lane, mask & ~rest) {
    uint64_t word = u->event->address[lane];
    pe_stamp now = u->stamp + lane * PE_STAMP_LANE;
    const pe_stamp *own = u->writes ? pe_race_own_stamps(u, word) : NULL, *others = pe_race_other_stamps(u, word);
    bool good = (!own || pe_is_harmless(&u->harmless, *own, now)) && (!others || pe_is_harmless(&u->harmless, *others, now));
    rest |= (uint32_t)!good << lane;
  }
  return rest;
}

uint32_t pe_race_look_at_words(pe_race_use *u, uint32_t mask) {
  bool shared = u->event->space == PE_SHARED;
  uint64_t first, last, plus = shared ? u->w->shared_base : 0;
  if (u->shared != shared) pe_race_place(u, shared);
  if (!mask || !are_words(u, mask, &first, &last)) return mask;
  uint32_t rest = u->beside                                         ? look_beside(u, mask)
                  : pe_race_one_chunk(u, first + plus, last + plus) ? look_near(u, mask, first)
                                                                    : look_far(u, mask);
  if (!u->release) return rest;
  PE_FOR_LANES(lane, mask & ~rest) pe_race_release(u, u->event->address[lane] + plus);
  return rest;
}

/* ---- lanes with any bytes ---- */

#define LONGEST 4096 /* bytes of a lane that are looked at; bulk copies have more */

/* Tell of an access that was before, if nothing puts it there. */
static void consider(const pe_race_use *u, uint32_t lane, uint64_t address, uint64_t word, pe_stamp now, pe_stamp before,
                     bool is_read) {
  if (pe_is_harmless(&u->harmless, before, now) || !(before & now & PE_STAMP_BYTES)) return;
  if (pe_order_is_before(&u->checker->race.order, u->b, u->w->warpid, lane, before, word)) return;
  if (is_read || !pe_race_is_equal_write(u, lane, address, before)) pe_race_tell(u, lane, address, before, is_read);
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
    uint64_t end = address + (e->size < LONGEST ? e->size : LONGEST);
    for (uint64_t word = address & ~3ull; word < end; word += 4) visit(u, lane, address, word, how);
  }
}
