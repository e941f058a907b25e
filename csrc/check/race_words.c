/* race_words.c: the checker `race` (race.c) word by word: lanes anywhere that have a whole word each, and then, with
 * questions to order.c, all in which something may be wrong. */
#include <string.h>
#include "race_runs.h"
#include "place.h"

/* ---- lanes anywhere, some words each ---- */

enum { MOST_BYTES = 16 }; /* of a lane */

/* A window of memory. */
typedef struct window {
  uint64_t first, size;
} window;

/* Whether the last of lanes with one word leaves its stamp: they read, or write one after another, so that it has seen what the others
 * have done. */
PE_INLINE bool have_turns(const pe_race_use *u) { return !u->writes || u->harmless.strong; }

/* Words of lanes, as places among all stamps: one word of each, or, of lanes that are not there, that of a `usual`
 * one: the last that is, if lanes have turns, or the first. */
typedef struct words {
  _Alignas(64) uint64_t index[PE_WARP_LANES], lane[PE_WARP_LANES];
  uint64_t usual;
} words;

PE_INLINE pe_stamps stamps_at(const uint64_t *first) { return *(const pe_stamps *)first; }

PE_INLINE bool any(pe_stamps bits) {
  uint64_t all = 0;
  for (uint32_t i = 0; i < PE_STAMPS; i++) all |= bits[i];
  return all;
}

/* Whether all lanes have whole words in a window, and none of them in others. */
PE_INLINE bool are_words(const pe_memory_event *e, uint32_t mask, window in, const window *out, uint32_t count,
                         uint64_t plus, words *all) {
  uint64_t lane = all->usual, first = e->address[lane], last = in.size - e->size;
  pe_stamps wild = {0}, lanes = *(const pe_stamps *)pe_lanes_of_words[0].of;
  if (in.size < e->size) return false;
  for (uint32_t i = 0; i < PE_WARP_LANES; i += PE_STAMPS, lanes += PE_STAMPS) {
    pe_stamps there = 0 - (mask >> lanes & 1), a = first ^ ((stamps_at(e->address + i) ^ first) & there);
    wild |= (pe_stamps)(a - in.first > last) | (a & 3);
    for (uint32_t j = 0; j < count; j++) wild |= (pe_stamps)(a - out[j].first < out[j].size);
    *(pe_stamps *)(all->index + i) = (a + plus) / 4;
    *(pe_stamps *)(all->lane + i) = lane ^ ((lanes ^ lane) & there);
  }
  return !any(wild);
}

PE_WIDEST static bool are_shared_words(const pe_race_use *u, uint32_t mask, words *all) {
  uint64_t plus = u->w->shared_base - u->checker->race.writes.base;
  return are_words(u->event, mask, (window){0, u->w->shared_size}, NULL, 0, plus, all);
}

/* The same in memory that all CTAs reach. */
PE_WIDEST static bool are_global_words(const pe_race_use *u, uint32_t mask, words *all) {
  const pe_warp *w = u->w;
  const window own[] = {{w->cluster_base, w->cluster_bytes},
                        {w->local_base, pe_product(w->local_size, PE_WARP_LANES)},
                        {w->const_base, w->const_size},
                        {w->param_base, w->param_size}};
  window arena = {w->arena_base, w->arena_size};
  return are_words(u->event, mask, arena, own, sizeof own / sizeof *own, 0 - u->checker->race.writes.base, all);
}

/* Stamps of the words: those that are there, those of accesses of the other kind, and those of this access. */
typedef struct found {
  _Alignas(64) pe_stamp own[PE_WARP_LANES], others[PE_WARP_LANES], now[PE_WARP_LANES];
} found;

/* Ones where a stamp matters to another. */
PE_INLINE pe_stamps matter(const pe_harmless *h, pe_stamps before, pe_stamps now) {
  return ~(pe_are_less(before, pe_all_are(h->floor)) | pe_are_less(before ^ now, pe_all_are(PE_STAMP_ROW)) |
           (pe_stamps)(before - h->first < h->span) | (pe_stamps)((before & h->strong) != 0));
}

/* Ones where a read must leave its stamp. */
PE_INLINE pe_stamps must_leave(const pe_stamping *s, pe_stamps before) {
  return ~((pe_stamps)(before >= s->least) & (pe_stamps)(before - s->begin >= s->length) &
           (pe_stamps)PE_STAMP_STAYS(before));
}

/* Ones where a stamp of a strong access of a whole word leaves that which is there: pe_is_kept. */
PE_INLINE pe_stamps kept(pe_stamps before, pe_stamps now) {
  return pe_are_less((before ^ now) & ~PE_STAMP_SEVERAL, pe_all_are(PE_STAMP_ROW)) & (pe_stamps)PE_STAMP_STAYS(before);
}

/* Whether nothing is wrong with any lane, and stamps are kept; and whether those that are there may stay. */
PE_INLINE bool pass(const pe_race_use *u, const words *all, found *f, bool *stay) {
  pe_stamps bad = {0}, left = {0};
  uint64_t first = u->stamp | PE_STAMP_BYTES;
  for (uint32_t i = 0; i < PE_WARP_LANES; i += PE_STAMPS) {
    pe_stamps now = first + stamps_at(all->lane + i) * PE_STAMP_LANE, own = stamps_at(f->own + i);
    *(pe_stamps *)(f->now + i) = u->harmless.strong ? now ^ ((now ^ own) & kept(own, now)) : now;
    bad |= (pe_stamps)(own == 0) | matter(&u->harmless, stamps_at(f->others + i), now);
    if (u->writes)
      bad |= matter(&u->harmless, own, now);
    else
      left |= must_leave(u->code, own);
  }
  *stay = !u->writes && !u->shared && !any(left);
  return !any(bad);
}

PE_INLINE void gather(const pe_stamp *from, const words *all, pe_stamp to[PE_WARP_LANES]) {
#pragma GCC unroll 32
  for (uint32_t i = 0; i < PE_WARP_LANES; i++) to[i] = from[all->index[i]];
}

/* Where lanes have one word, the stamp of the last stays, if `in_turn`, or else that of the first. */
PE_INLINE void scatter(pe_stamp *to, const words *all, const pe_stamp from[PE_WARP_LANES], bool in_turn) {
  if (in_turn) {
#pragma GCC unroll 32
    for (uint32_t i = 0; i < PE_WARP_LANES; i++) to[all->index[i]] = from[i];
  } else {
#pragma GCC unroll 32
    for (uint32_t i = PE_WARP_LANES; i-- > 0;) to[all->index[i]] = from[i];
  }
}

/* The lanes whose stamps are not those that they have left. */
PE_INLINE uint32_t lost(const found *f) {
  uint32_t lanes = 0;
  if (!memcmp(f->own, f->now, sizeof f->own)) return 0;
  for (uint32_t i = 0; i < PE_WARP_LANES; i++) lanes |= (uint32_t)(f->own[i] != f->now[i]) << i;
  return lanes;
}

/* Whether lanes have different words for sure. */
PE_INLINE bool are_apart(uint32_t mask, const words *all) {
  pe_stamps bits = {0};
  for (uint32_t i = 0; i < PE_WARP_LANES; i += PE_STAMPS) bits |= pe_all_are(1) << (stamps_at(all->index + i) & 63);
  uint64_t found = 0;
  for (uint32_t i = 0; i < PE_STAMPS; i++) found |= bits[i];
  return __builtin_popcountll(found) == __builtin_popcount(mask);
}

/* Where stamps of reads are in place of those of other lanes, they say so. */
PE_INLINE void note_several(pe_stamp *own, const words *all, const found *f, uint32_t lanes) {
  PE_FOR_LANES(lane, lanes) own[all->index[lane]] = pe_stamp_behind(f->now[lane], own[all->index[lane]]);
}

/* Look at a word of each lane: the lanes with whose word something may be wrong. Lanes that write the word of one before them are
 * among them, unless all writes are strong. */
PE_WIDEST PE_UNWATCHED static uint32_t look(const pe_race_use *u, uint32_t mask, const words *all, uint64_t word) {
  const pe_race *race = &u->checker->race;
  pe_stamp *own = (u->writes ? race->writes.numbers : race->reads.numbers) + word;
  const pe_stamp *others = (u->writes ? race->reads.numbers : race->writes.numbers) + word;
  found f;
  bool stay;
  gather(own, all, f.own);
  gather(others, all, f.others);
  if (!pass(u, all, &f, &stay)) return mask;
  if (stay) return 0;
  scatter(own, all, f.now, have_turns(u));
  if (u->writes ? u->harmless.strong : are_apart(mask, all)) return 0;
  gather(own, all, f.own);
  uint32_t lanes = lost(&f);
  if (u->writes) return lanes;
  note_several(own, all, &f, lanes);
  return 0;
}

/* When a word of each lane was last released. */
PE_WIDEST PE_UNWATCHED static uint64_t released(const pe_race_use *u, const words *all, uint64_t word) {
  _Alignas(64) uint64_t time[PE_WARP_LANES];
  gather(u->checker->race.order.released.numbers + word, all, time);
  uint64_t last = 0;
  for (uint32_t i = 0; i < PE_WARP_LANES; i++) last = time[i] > last ? time[i] : last;
  return last;
}

/* A word of each lane is released; that of neighbours with the same one once. */
static void release(pe_race_use *u, uint32_t mask, uint64_t plus) {
  uint64_t last = 0;
  PE_FOR_LANES(lane, mask) {
    uint64_t word = u->event->address[lane] + plus;
    if (word != last) pe_race_release(u, word);
    last = word;
  }
}

/* What strong accesses of words put in an order; those of `rest` are still to be looked at. */
static void put_in_order(pe_race_use *u, uint32_t mask, uint32_t rest, const words *all, uint64_t plus) {
  uint32_t count = (uint32_t)(u->event->size / 4);
  for (uint32_t word = 0; u->release && word < count; word++) release(u, mask & ~rest, plus + 4ull * word);
  u->follows = u->event->kind & PE_READ;
  if (!u->follows) return;
  if (u->shared) {
    for (uint32_t word = 0; !u->release && word < count; word++) pe_race_meet(u, released(u, all, word));
  } else {
    u->s->reads = mask;
    u->s->words = count;
    memcpy(u->s->word, all->index, sizeof u->s->word);
  }
}

/* ---- few lanes anywhere, a word each ---- */

enum { FEW = 12 }; /* lanes, for which it is cheaper to look at one after another than at all together */

PE_INLINE bool passes(pe_race_use *u, uint32_t lane) {
  uint64_t address;
  bool shared;
  if (!pe_race_locate(u->w, u->event, lane, 4, &address, &shared) || address % 4) return false;
  if (shared != u->shared) pe_race_place(u, shared);
  return pe_race_passes(u, &(pe_race_run){.word = address, .count = 1, .lane = lane});
}

/* The lanes with whose word something may be wrong. One that writes the word of a lane before it is among them, as it finds
 * that one's stamp. */
PE_UNWATCHED static uint32_t look_at_each(pe_race_use *u, uint32_t mask) {
  uint32_t rest = 0;
  PE_FOR_LANES(lane, mask) rest |= (uint32_t)!passes(u, lane) << lane;
  return rest;
}

/* ---- lanes anywhere in shared memory, where no other worker is ---- */

/* Whether nothing is wrong with a word of a lane; its stamp is left, then. `alone`: nobody has made accesses of the other kind. */
PE_INLINE bool pass_in_shared(const pe_harmless *h, pe_stamp *own, const pe_stamp *others, pe_stamp now, bool writes,
                              bool alone) {
  bool good = *own && (alone || pe_is_harmless(h, *others, now)) && (!writes || pe_is_harmless(h, *own, now));
  if (good && !pe_is_kept(*own, now)) *own = writes ? now : pe_read_left(h->floor, *own, now);
  return good;
}

PE_INLINE uint32_t look_in_shared(const pe_race_use *u, uint32_t mask, const uint64_t *address, uint32_t words, bool writes,
                                  bool alone) {
  const pe_race *race = &u->checker->race;
  const pe_harmless h = u->harmless;
  pe_stamp *own = writes ? race->writes.numbers : race->reads.numbers, first = u->stamp | PE_STAMP_BYTES;
  const pe_stamp *others = writes ? race->reads.numbers : race->writes.numbers;
  uint64_t plus = u->w->shared_base - race->writes.base, size = u->w->shared_size;
  uint32_t rest = 0;
  PE_FOR_LANES(lane, mask) {
    uint64_t at = (address[lane] + plus) / 4;
    bool good = !(address[lane] & 3) && pe_within(address[lane], 4 * words, size);
    for (uint32_t i = 0; good && i < words; i++)
      good = pass_in_shared(&h, &own[at + i], &others[at + i], first + lane * PE_STAMP_LANE, writes, alone);
    rest |= (uint32_t)!good << lane;
  }
  return rest;
}

/* Whether strong writes of a word by all lanes have nothing to look at, as nobody has made a plain access since all warps have met; they
 * leave their stamps, then. */
PE_WIDEST PE_UNWATCHED static bool leave_in_shared(const pe_race_use *u, uint32_t mask, const uint64_t *address) {
  const pe_shadow *writes = &u->checker->race.writes;
  const pe_shared_log *log = &u->b->log;
  uint64_t base = u->w->shared_base, size = u->w->shared_size, last = size - 4, wild = 0, first = u->stamp | PE_STAMP_BYTES;
  bool plain = log->written >= u->harmless.floor || log->read >= u->harmless.floor;
  if (!u->harmless.strong || !u->writes || plain || mask != PE_ALL_LANES || size < 4 || size > 1u << PE_SHADOW_LOG2)
    return false;
  pe_stamp *own = pe_shadow_find(writes, base);
  if (!own || !pe_shadow_find(writes, base + last)) return false;
  for (uint32_t i = 0; i < PE_WARP_LANES; i++) wild |= ((last - address[i]) | address[i]) >> 63 | (address[i] & 3);
  if (wild) return false;
#pragma GCC unroll 32
  for (uint32_t i = 0; i < PE_WARP_LANES; i++) own[address[i] / 4] = first + i * PE_STAMP_LANE;
  return true;
}

/* Most have one word: of that, there is code for each case. */
PE_UNWATCHED uint32_t pe_race_look_in_shared(const pe_race_use *u, uint32_t mask, const uint64_t *address, uint32_t words) {
  const pe_shared_log *log = &u->b->log;
  pe_stamp written = log->written > log->strong ? log->written : log->strong;
  bool writes = u->writes, alone = (writes ? log->read : written) < u->harmless.floor;
  if (words == 1 && leave_in_shared(u, mask, address)) return 0;
  if (words > 1) return look_in_shared(u, mask, address, words, writes, alone);
  if (writes)
    return alone ? look_in_shared(u, mask, address, 1, true, true) : look_in_shared(u, mask, address, 1, true, false);
  return alone ? look_in_shared(u, mask, address, 1, false, true) : look_in_shared(u, mask, address, 1, false, false);
}

/* What strong accesses of a word each put in an order; those of `rest` are still to be looked at. */
PE_UNWATCHED static void put_shared_in_order(pe_race_use *u, uint32_t mask, uint32_t rest) {
  const pe_memory_event *e = u->event;
  const uint64_t *released = u->checker->race.order.released.numbers;
  uint64_t plus = u->w->shared_base - u->checker->race.writes.base;
  PE_FOR_LANES(lane, mask & ~rest) {
    if (u->release)
      pe_race_release(u, e->address[lane] + u->w->shared_base);
    else
      pe_race_meet(u, released[(e->address[lane] + plus) / 4]);
  }
  u->follows = !rest;
}

uint32_t pe_race_look_at_words(pe_race_use *u, uint32_t mask) {
  const pe_memory_event *e = u->event;
  bool shared = e->space == PE_SHARED;
  uint64_t plus = shared ? u->w->shared_base : 0;
  uint32_t rest = 0;
  words all;
  if (u->shared != shared) pe_race_place(u, shared);
  if (!mask || e->size % 4 || e->size > MOST_BYTES) return mask;
  if (u->harmless.strong && (!shared || u->b->clustered) && u->checker->race.scoped) return mask;
  if (shared && !u->b->clustered && (!u->harmless.strong || e->size == 4)) {
    rest = pe_race_look_in_shared(u, mask, e->address, (uint32_t)(e->size / 4));
    if (u->harmless.strong) put_shared_in_order(u, mask, rest);
    return rest;
  }
  if (!u->harmless.strong && e->size == 4 && __builtin_popcount(mask) <= FEW) return look_at_each(u, mask);
  all.usual = have_turns(u) ? PE_LAST_LANE(mask) : (uint64_t)__builtin_ctz(mask);
  if (!(shared ? are_shared_words(u, mask, &all) : are_global_words(u, mask, &all))) return mask;
  for (uint64_t word = 0; word < e->size / 4; word++) rest |= look(u, mask, &all, word);
  if (u->harmless.strong) put_in_order(u, mask, rest, &all, plus);
  return rest;
}

/* ---- many words of a lane ---- */

enum { MANY = 4, BLOCK = 64 }; /* words that are looked at together, at least and at most */

PE_INLINE bool none_is_pending(const pe_stamp *stamps, uint32_t count) {
  pe_stamp all = 0;
  for (uint32_t i = 0; i < count; i++) all |= (pe_stamp)pe_stamp_is_pending(stamps[i]);
  return !all;
}

/* Whether nothing is wrong with words side by side in one chunk, all of one lane; its stamps are left, then. */
PE_WIDEST PE_UNWATCHED static bool pass_all(const pe_race_use *u, uint32_t lane, uint64_t word, uint32_t count) {
  pe_race_run r = {word, count, lane, PE_ALL_OF_ONE, false};
  pe_stamp *own = pe_race_own_stamps(u, word);
  const pe_stamp *others = pe_race_other_stamps(u, word);
  pe_trail t = pe_trail_of(u->stamp, &r);
  if (!own || (others && !(none_is_pending(others, count) && pe_all_harmless(&u->harmless, t, count, others)))) return false;
  if (u->writes && !(none_is_pending(own, count) && pe_all_harmless(&u->harmless, t, count, own))) return false;
  const pe_stamp *writes = u->writes ? own : others;
  if (u->proxied && writes && pe_race_lacks_fences(u, writes, count)) return false;
  if (u->writes || pe_stamp_is_pending(u->stamp))
    pe_leave_stamps(t, count, own);
  else
    pe_leave_reads(t, count, own, pe_race_floor(u));
  return true;
}

/* ---- lanes with any bytes ---- */

/* Whether an access that was before comes before this one.  An update follows whose value it reads, unless a fence is asked for. */
static uint32_t is_before(const pe_race_use *u, uint32_t lane, uint64_t word, pe_stamp before) {
  bool follows = u->event->kind & PE_READ && !(u->event->order & PE_LOCK);
  uint64_t met = follows ? u->met : 0;
  if (follows) pe_order_follow(u->b, u->w->warpid, met, u->event->order & PE_LOOSE);
  return pe_order_is_before(&u->checker->race.order, u->b, u->w->warpid, lane, before, word, met);
}

/* Tell of an access that was before, if nothing puts it there. */
static void consider(const pe_race_use *u, uint32_t lane, uint64_t address, uint64_t word, pe_stamp now, pe_stamp before,
                     bool is_read) {
  bool pending = pe_stamp_is_pending(before);
  bool harmless = pending ? before & u->harmless.strong : pe_is_harmless(&u->harmless, before, now);
  if (harmless && !pending && u->checker->race.scoped) harmless = !pe_race_is_beyond_scope(u, before);
  if (!(before & now & PE_STAMP_BYTES)) return;
  uint32_t order = harmless ? PE_IN_ORDER : pending ? PE_NO_ORDER : is_before(u, lane, word, before);
  uint32_t how = is_read ? PE_RACE_WITH_READ : 0;
  if (order == PE_NO_ORDER)
    pe_race_tell(u, lane, address, before,
                 how | (!is_read && pe_race_is_equal_write(u, lane, address, before) ? PE_RACE_EQUAL : 0));
  else if (u->proxied && !is_read && pe_race_lacks_fence(u, before))
    pe_race_tell(u, lane, address, before, PE_RACE_UNFENCED);
  else if (order == PE_LOOSE_ORDER)
    pe_race_tell(u, lane, address, before, how | PE_RACE_LOOSE);
}

/* The same of the stamps of its bytes, if they have their own. */
static void consider_all(const pe_race_use *u, uint32_t lane, uint64_t address, uint64_t word, pe_stamp now, pe_stamp before,
                         bool is_read) {
  if (!pe_stamp_has_parts(before)) return consider(u, lane, address, word, now, before, is_read);
  pe_stamp last = PE_STAMP_BLANK;
  for (uint32_t i = 0; i < 4; i++) {
    if (!(now >> (PE_STAMP_BYTES_AT + i) & 1)) continue;
    pe_stamp own = pe_race_of_byte(&u->checker->race, is_read ? PE_OF_READS : PE_OF_WRITES, word, before, i);
    if (own != last) consider(u, lane, address, word, now, own, is_read);
    last = own;
  }
}

static void consider_others(const pe_race_use *u, uint32_t lane, uint64_t address, uint64_t word, pe_stamp now) {
  const pe_stamp *others = pe_race_other_stamps(u, word);
  if (others) consider_all(u, lane, address, word, now, __atomic_load_n(others, __ATOMIC_RELAXED), u->writes);
}

static pe_stamp exchange(const pe_race_use *u, pe_stamp *at, pe_stamp now) {
  if (u->beside) return __atomic_exchange_n(at, now, __ATOMIC_SEQ_CST);
  pe_stamp before = *at;
  *at = now;
  return before;
}

/* What is left where a stamp was. */
static pe_stamp left_behind(const pe_race_use *u, pe_stamp before, pe_stamp now) {
  return u->writes || pe_stamp_is_pending(now) ? now : pe_read_left(pe_race_floor(u), before, now);
}

/* Leave a stamp of some bytes of a word beside those of others. */
static bool leave_beside(const pe_race_use *u, uint64_t word, pe_stamp *own, pe_stamp before, pe_stamp now) {
  pe_race *race = &u->checker->race;
  uint32_t table = u->writes ? PE_OF_WRITES : PE_OF_READS;
  bool split = before == PE_STAMP_SPLIT;
  pe_stamp *bytes = split ? pe_race_bytes(race, table, word) : pe_race_split(race, table, word, before);
  for (uint32_t i = 0; bytes && i < 4; i++) {
    pe_stamp left = left_behind(u, __atomic_load_n(&bytes[i], __ATOMIC_RELAXED), now);
    if (now >> (PE_STAMP_BYTES_AT + i) & 1) __atomic_store_n(&bytes[i], left, __ATOMIC_RELAXED);
  }
  if (bytes && !split) __atomic_store_n(own, PE_STAMP_SPLIT, __ATOMIC_RELEASE);
  return bytes != NULL;
}

/* Leave a stamp at a word, and look at those that were there. */
static void leave(pe_race_use *u, uint32_t lane, uint64_t address, uint64_t word, pe_stamp *own, pe_stamp now) {
  pe_stamp before = __atomic_load_n(own, __ATOMIC_ACQUIRE);
  if (pe_is_kept(before, now)) return pe_race_release(u, word);
  bool all = pe_stamp_has_parts(before) ? (now & PE_STAMP_BYTES) == PE_STAMP_BYTES : !(before & PE_STAMP_BYTES & ~now);
  if (all && u->writes) before = exchange(u, own, now);
  pe_race_release(u, word);
  if (u->writes) consider_all(u, lane, address, word, now, before, false);
  if (all ? !u->writes : !leave_beside(u, word, own, before, now))
    __atomic_store_n(own, left_behind(u, before, now), __ATOMIC_RELAXED);
}

/* What a lane does at one word. */
static inline void visit(pe_race_use *u, uint32_t lane, uint64_t address, uint64_t word, uint32_t how) {
  uint64_t first = address > word ? address - word : 0, end = address + u->event->size - word;
  uint64_t bytes = 0xf << first & (end < 4 ? (1u << end) - 1 : 0xf);
  pe_stamp now = (u->stamp + lane * PE_STAMP_LANE) | bytes << PE_STAMP_BYTES_AT;
  pe_stamp *own = how & PE_LEAVE ? pe_race_own_stamps(u, word) : NULL;
  if (own) leave(u, lane, address, word, own, now);
  if (how & PE_LOOK) consider_others(u, lane, address, word, now);
}

/* How many whole words of a lane, from one on, pass together; or 0. They lie in one chunk. */
static uint64_t skip(const pe_race_use *u, uint32_t lane, uint64_t word, uint64_t end) {
  uint64_t here = 4 * BLOCK - word % (4 * BLOCK);
  uint32_t count = (uint32_t)((end - word < here ? end - word : here) / 4);
  return count >= MANY && pass_all(u, lane, word, count) ? count : 0;
}

/* The lanes of a mask, from one on, that have a word together, of which nothing is to be told; they have left their stamp. */
static uint32_t pass_together(pe_race_use *u, uint32_t mask, uint32_t lane) {
  const pe_memory_event *e = u->event;
  if (e->size > 2) return 0;
  uint32_t count = e->size == 2 ? 2 : 4, all = ((1u << count) - 1) << lane;
  bool shared;
  uint64_t word;
  if (lane + count > PE_WARP_LANES || (mask & all) != all || e->address[lane] % 4) return 0;
  for (uint32_t i = 1; i < count; i++)
    if (e->address[lane + i] != e->address[lane] + i * e->size) return 0;
  if (!pe_race_locate(u->w, e, lane, 4, &word, &shared)) return 0;
  if (shared != u->shared) pe_race_place(u, shared);
  return pe_race_row_passes(u, lane, word) ? all : 0;
}

void pe_race_visit(pe_race_use *u, uint32_t mask, uint32_t how) {
  const pe_memory_event *e = u->event;
  bool together = how == (PE_LEAVE | PE_LOOK) && pe_race_may_be_row(u);
  for (uint32_t left = mask; left; left &= left - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(left);
    uint64_t address;
    bool shared;
    uint32_t done = together ? pass_together(u, left, lane) : 0;
    if (done) {
      left &= ~done | 1u << lane;
      continue;
    }
    if (!pe_race_locate(u->w, e, lane, e->size, &address, &shared)) continue;
    if (shared != u->shared) pe_race_place(u, shared);
    uint64_t end = address + (e->size < PE_RACE_LONGEST ? e->size : PE_RACE_LONGEST);
    bool plain = how == (PE_LEAVE | PE_LOOK) && !u->harmless.strong && !(address % 4);
    for (uint64_t word = address & ~3ull, next; word < end; word = next) {
      next = word + 4 * (plain && (word == address || word % (4 * BLOCK) == 0) ? skip(u, lane, word, end) : 0);
      if (next == word) visit(u, lane, address, word, how), next = word + 4;
    }
  }
}
