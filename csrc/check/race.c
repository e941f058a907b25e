/* race.c: the checker `race`: two accesses of shared or global memory by different threads, one of them a write, that nothing
 * puts in an order (order.h).
 *
 * Words keep the stamps of their last write and of their last read.  Words side by side of lanes side by side are looked at
 * together, and stamps that cannot matter are told from others by comparing numbers; what remains is asked of order.c, word by
 * word.  Nothing is locked: where several workers run a launch, an access leaves its stamp before it looks for those of others,
 * so that of two accesses one sees the other.
 */
#include <inttypes.h>
#include <string.h>
#include "checker.h"
#include "atomic.h"
#include "fault.h"
#include "launch.h"
#include "place.h"
#include "surface_access.h"
#include "text.h"

#define LONGEST 4096 /* bytes of a lane that are looked at; bulk copies have more */

/* Elements of vectors of stamps are read and written as a whole. */
#define UNWATCHED __attribute__((no_sanitize("thread")))

bool pe_race_init(pe_race *race, pe_arena *arena) {
  bool made = pe_order_init(&race->order, arena);
  made &= pe_shadow_init(&race->writes, arena, sizeof(pe_stamp));
  made &= pe_shadow_init(&race->reads, arena, sizeof(pe_stamp));
  return made & pe_sites_init(&race->sites, PE_SITE_BITS);
}

void pe_race_end(pe_race *race) {
  pe_order_end(&race->order);
  pe_shadow_end(&race->writes);
  pe_shadow_end(&race->reads);
  pe_sites_end(&race->sites);
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
}

void pe_race_ended(pe_checker *checker, const pe_config *config) { pe_order_ended(&checker->race.order, config); }

void pe_race_forget(pe_checker *checker, uint64_t address, uint64_t size) { forget(&checker->race, address, size); }

uint64_t pe_race_block(pe_checker *checker, const pe_warp *w) {
  return (uint64_t)(uintptr_t)pe_order_block_begun(&checker->race.order, w);
}

uint64_t pe_race_lost(const pe_race *race) {
  return race->lost + race->writes.lost + race->reads.lost + race->order.released.lost;
}

void pe_race_order(pe_checker *checker, const pe_warp *w, uint32_t what) {
  pe_order_block *b = pe_order_block_of(w);
  if (!b) return;
  pe_order_settle(&checker->race.order, b, w->warpid);
  if (what == PE_WARP_SYNC)
    pe_order_warp_sync(&checker->race.order, b, w->warpid);
  else
    pe_order_fence(&checker->race.order, b, w->warpid);
}

void pe_race_barrier(pe_checker *checker, const pe_warp *w, uint32_t id, uint32_t how) {
  pe_order_block *b = pe_order_block_of(w);
  if (!b || id > PE_BARRIER_GRID) return;
  pe_order_settle(&checker->race.order, b, w->warpid);
  pe_order_barrier(&checker->race.order, b, w->warpid, id, how);
}

/* ---- an access of a warp ---- */

/* Stamps that cannot matter to it: below `floor`, in `span` from `first` on, and strong ones if it is strong. */
typedef struct harmless {
  pe_stamp floor, first, span, strong;
} harmless;

typedef struct use {
  pe_checker *checker;
  pe_order_block *b;
  const pe_warp *w;
  const pe_memory_event *event;
  pe_order_warp *s;
  pe_stamp stamp; /* of lane 0, without bytes */
  harmless harmless;
  bool writes, shared;
  bool beside;      /* other workers may be there at the same time */
  uint64_t release; /* the time at which it releases its words, or 0 */
} use;

PE_INLINE bool is_harmless(const harmless *h, pe_stamp before, pe_stamp now) {
  return before < h->floor || (before ^ now) < PE_STAMP_LANE || before - h->first < h->span || before & h->strong;
}

/* Where the access is: in shared memory, whatever is older was there before this CTA. */
PE_INLINE void choose(use *u, bool shared) {
  pe_stamp own = (pe_stamp)u->b->periods[0] << PE_STAMP_PERIOD_AT, floor = u->s->floor;
  pe_stamp period = u->s->now >> PE_STAMP_PERIOD_AT << PE_STAMP_PERIOD_AT;
  u->shared = shared;
  u->harmless.first = period;
  u->harmless.floor = !shared ? u->b->ancient : floor > own ? floor : own;
  u->harmless.span = !shared && floor > period ? floor - period : 0;
}

/* The stamps from a word on, or NULL; they are made if `make` is set and there is memory. */
PE_INLINE pe_stamp *stamps_of(pe_shadow *shadow, uint64_t word, bool make) {
  pe_chunk *chunk = pe_shadow_find(shadow, word);
  if (!chunk && make) {
    pe_require_stack();
    chunk = pe_shadow_chunk(shadow, word);
  }
  return chunk ? pe_shadow_cell(shadow, chunk, word) : NULL;
}

static inline bool is_one_chunk(const use *u, uint64_t first, uint64_t last) {
  uint64_t base = u->checker->race.writes.base;
  return (first - base) >> PE_SHADOW_LOG2 == (last - base) >> PE_SHADOW_LOG2;
}

/* Those that the access leaves its own among, and those of accesses of the other kind. */
PE_INLINE pe_stamp *own_stamps(const use *u, uint64_t word) {
  pe_race *race = &u->checker->race;
  return stamps_of(u->writes ? &race->writes : &race->reads, word, true);
}

PE_INLINE pe_stamp *other_stamps(const use *u, uint64_t word) {
  pe_race *race = &u->checker->race;
  return stamps_of(u->writes ? &race->reads : &race->writes, word, false);
}

/* Words are released by a strong write behind a fence. */
static void release(const use *u, uint64_t word, uint32_t count) {
  pe_shadow *released = &u->checker->race.order.released;
  for (uint32_t i = 0; u->release && i < count; i++) {
    uint64_t at = word + 4ull * i;
    pe_chunk *chunk = pe_shadow_find(released, at);
    if (!chunk) pe_require_stack(), chunk = pe_shadow_chunk(released, at);
    if (!chunk) return;
    uint64_t *time = pe_shadow_cell(released, chunk, at), known = __atomic_load_n(time, __ATOMIC_RELAXED);
    while (known < u->release &&
           !__atomic_compare_exchange_n(time, &known, u->release, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
    }
  }
}

/* ---- many words at once ---- */

/* Words side by side in one chunk: 2^`each` of one lane after another. */
typedef struct run {
  uint64_t word;
  uint32_t count, lane, each;
} run;

enum {
  VECTOR = 8,
  MOST_WORDS = 4 /* of a lane side by side with others */,
  NARROWEST = 8 /* lanes that are looked at together */
};
typedef uint64_t vector __attribute__((vector_size(8 * VECTOR), aligned(8)));

typedef struct lane_numbers {
  _Alignas(64) uint64_t of[VECTOR];
} lane_numbers;

/* Of the first words of a run, by its `each`. */
static const lane_numbers lanes_of_words[] = {
  {{0, 1, 2, 3, 4, 5, 6, 7}}, {{0, 0, 1, 1, 2, 2, 3, 3}}, {{0, 0, 0, 0, 1, 1, 1, 1}}, {{0}}};
enum { ALL_OF_ONE = sizeof lanes_of_words / sizeof *lanes_of_words - 1 };

/* What a run leaves at its words: stamps of the first of them, and the distance to those of the next. */
typedef struct trail {
  vector first;
  uint64_t step;
} trail;

PE_INLINE trail trail_of(const use *u, const run *r) {
  uint64_t stamp = (u->stamp + r->lane * PE_STAMP_LANE) | PE_STAMP_BYTES;
  vector lanes = *(const vector *)lanes_of_words[r->each].of;
  return (trail){stamp + (lanes << PE_STAMP_LANE_AT),
                 r->each == ALL_OF_ONE ? 0 : ((uint64_t)VECTOR >> r->each) * PE_STAMP_LANE};
}

PE_INLINE bool all_harmless(const harmless *h, trail t, uint32_t count, const pe_stamp *stamps) {
  vector bad = {0}, now = t.first;
  uint32_t i = 0;
  for (; i + VECTOR <= count; i += VECTOR, now += t.step) {
    vector before = *(const vector *)(stamps + i);
    bad |= ~((vector)(before < h->floor) | (vector)((before ^ now) < PE_STAMP_LANE) | (vector)(before - h->first < h->span));
  }
  uint64_t any = 0;
  for (uint32_t j = 0; j < VECTOR; j++) any |= bad[j];
  for (uint32_t j = 0; i + j < count; j++) any |= !is_harmless(h, stamps[i + j], now[j]);
  return !any;
}

PE_INLINE void leave(trail t, uint32_t count, pe_stamp *stamps) {
  vector now = t.first;
  uint32_t i = 0;
  for (; i + VECTOR <= count; i += VECTOR, now += t.step) *(vector *)(stamps + i) = now;
  for (uint32_t j = 0; i + j < count; j++) stamps[i + j] = now[j];
}

/* Whether nothing is wrong with accesses of words whose stamps are these; theirs are there, then. */
PE_INLINE bool pass_together(const use *u, const run *r, pe_stamp *own, const pe_stamp *others) {
  trail t = trail_of(u, r);
  if (u->writes && !all_harmless(&u->harmless, t, r->count, own)) return false;
  if (u->writes && others && !all_harmless(&u->harmless, t, r->count, others)) return false;
  leave(t, r->count, own);
  return u->writes || !others || all_harmless(&u->harmless, t, r->count, others);
}

/* The same of one word. */
PE_INLINE bool passes_alone(const use *u, const run *r, pe_stamp *own, const pe_stamp *others) {
  pe_stamp now = (u->stamp + r->lane * PE_STAMP_LANE) | PE_STAMP_BYTES;
  if (u->writes && !is_harmless(&u->harmless, *own, now)) return false;
  if (others && !is_harmless(&u->harmless, *others, now)) return false;
  *own = now;
  return true;
}

/* The same where other workers may be there: a stamp is left before those of others are looked for. */
PE_INLINE bool passes_beside(const use *u, const run *r, pe_stamp *own) {
  trail t = trail_of(u, r);
  if (u->writes && !all_harmless(&u->harmless, t, r->count, own)) return false;
  leave(t, r->count, own);
  atomic_thread_fence(memory_order_seq_cst);
  const pe_stamp *others = other_stamps(u, r->word);
  return (!others || all_harmless(&u->harmless, t, r->count, others)) &&
         (!u->writes || all_harmless(&u->harmless, t, r->count, own));
}

PE_INLINE bool passes(const use *u, const run *r) {
  pe_stamp *own = own_stamps(u, r->word);
  if (!own) return true;
  if (u->beside) return passes_beside(u, r, own);
  const pe_stamp *others = other_stamps(u, r->word);
  return r->count == 1 ? passes_alone(u, r, own, others) : pass_together(u, r, own, others);
}

/* ---- what is told ---- */

/* Whether a write leaves what is there, or what a lane of the same instruction writes there. */
static bool is_equal_write(const use *u, uint32_t lane, uint64_t address, pe_stamp before) {
  const pe_memory_event *e = u->event;
  if (!e->values || e->kind != PE_WRITE || before & PE_STAMP_UPDATE) return false;
  const uint8_t *value = (const uint8_t *)e->values + lane * e->size;
  uint32_t other = pe_stamp_lane(before), clock;
  bool together = pe_order_is_own(u->b, before, &clock) && pe_stamp_warp(before) == u->w->warpid &&
                  pe_stamp_site(before) == pe_stamp_site(u->stamp) && e->mask >> other & 1 &&
                  e->address[other] == e->address[lane];
  const void *there = together ? (const uint8_t *)e->values + other * e->size : (const void *)(uintptr_t)address;
  return memcmp(value, there, e->size) == 0;
}

static void add_place(const use *u, uint64_t address, pe_text *t) {
  pe_extent at;
  if (u->shared)
    pe_add(t, "shared memory at 0x%" PRIx64, address - u->w->shared_base);
  else if (pe_extents_at(&u->checker->extents, address, &at) && at.name[0])
    pe_add(t, "`%s`[0x%" PRIx64 "]", at.name, address - at.address);
  else
    pe_add(t, "global memory at 0x%" PRIx64, address);
}

static void fill_place(const use *u, pe_stamp stamp, pe_thread_place *out) {
  const pe_warp *w = u->w;
  uint64_t number = pe_order_block_number(&u->checker->race.order, stamp);
  uint32_t thread = pe_stamp_warp(stamp) * PE_WARP_LANES + pe_stamp_lane(stamp);
  *out = (pe_thread_place){
    .warp = pe_stamp_warp(stamp),
    .ctaid = {(uint32_t)(number % w->nctaid[0]), (uint32_t)(number / w->nctaid[0] % w->nctaid[1]),
              (uint32_t)(number / w->nctaid[0] / w->nctaid[1])},
    .tid = {thread % w->ntid[0], thread / w->ntid[0] % w->ntid[1], thread / w->ntid[0] / w->ntid[1]},
  };
}

enum { OTHER_READ = 2, OTHER_UPDATE = 4 }; /* findings at one place are told apart by these */

static void tell(const use *u, uint32_t lane, uint64_t address, pe_stamp before, bool is_read) {
  const pe_memory_event *e = u->event;
  bool is_update = before & PE_STAMP_UPDATE;
  pe_require_stack();
  pe_finding f = {.check = PE_CHECK_RACE,
                  .what = (is_read ? OTHER_READ : 0) | (is_update ? OTHER_UPDATE : 0),
                  .pos = e->pos,
                  .other_pos = pe_site_pos(&u->checker->race.sites, pe_stamp_site(before))};
  pe_text t = pe_text_in(f.text, sizeof f.text);
  pe_add(&t, "%" PRIu64 "-byte %s of ", e->size,
         e->kind == PE_READ    ? "read"
         : e->kind == PE_WRITE ? "write"
                               : "atomic update");
  add_place(u, address, &t);
  pe_add(&t, ", in no order with %s", is_update ? "an atomic update" : is_read ? "a read" : "a write");
  fill_place(u, before, &f.other);
  pe_report(u->checker, u->w, lane, &f);
}

/* ---- word by word ---- */

/* Tell of an access that was before, if nothing puts it there. */
static void consider(const use *u, uint32_t lane, uint64_t address, uint64_t word, pe_stamp now, pe_stamp before,
                     bool is_read) {
  if (is_harmless(&u->harmless, before, now) || !(before & now & PE_STAMP_BYTES)) return;
  if (pe_order_is_before(&u->checker->race.order, u->b, u->w->warpid, lane, before, word)) return;
  if (is_read || !is_equal_write(u, lane, address, before)) tell(u, lane, address, before, is_read);
}

static void consider_others(const use *u, uint32_t lane, uint64_t address, uint64_t word, pe_stamp now) {
  const pe_stamp *others = other_stamps(u, word);
  if (others) consider(u, lane, address, word, now, __atomic_load_n(others, __ATOMIC_RELAXED), u->writes);
}

static pe_stamp exchange(const use *u, pe_stamp *at, pe_stamp now) {
  if (u->beside) return __atomic_exchange_n(at, now, __ATOMIC_SEQ_CST);
  pe_stamp before = *at;
  *at = now;
  return before;
}

enum { LEAVE = 1, LOOK = 2 };

/* What a lane does at one word. */
static inline void visit(const use *u, uint32_t lane, uint64_t address, uint64_t word, uint32_t how) {
  uint64_t first = address > word ? address - word : 0, end = address + u->event->size - word;
  uint64_t bytes = 0xf << first & (end < 4 ? (1u << end) - 1 : 0xf);
  pe_stamp now = (u->stamp + lane * PE_STAMP_LANE) | bytes << PE_STAMP_BYTES_AT;
  pe_stamp *own = how & LEAVE ? own_stamps(u, word) : NULL;
  if (own && u->writes) {
    pe_stamp before = exchange(u, own, now);
    release(u, word, 1);
    consider(u, lane, address, word, now, before, false);
  } else if (own) {
    __atomic_store_n(own, now, __ATOMIC_RELAXED);
  }
  if (how & LOOK) consider_others(u, lane, address, word, now);
}

/* The device address of a lane's access, and whether it is in shared memory; false: nobody else can be there. */
static bool locate(const pe_warp *w, const pe_memory_event *e, uint32_t lane, uint64_t size, uint64_t *address,
                   bool *shared) {
  *address = e->address[lane];
  *shared = e->space == PE_SHARED;
  if (*shared) {
    *address += w->shared_base;
    return pe_within(e->address[lane], size, w->shared_size);
  }
  if (e->space != PE_GENERIC && e->space != PE_GLOBAL) return false;
  if (*address - w->shared_base < w->shared_size) return *shared = true;
  bool private = *address - w->local_base < pe_product(w->local_size, PE_WARP_LANES) ||
                 *address - w->param_base < w->param_size || *address - w->const_base < w->const_size;
  return !private && pe_in_arena(w, *address, size);
}

static void visit_lanes(use *u, uint32_t mask, uint32_t how) {
  const pe_memory_event *e = u->event;
  for (uint32_t left = mask; left; left &= left - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(left);
    uint64_t address;
    bool shared;
    if (!locate(u->w, e, lane, e->size, &address, &shared)) continue;
    if (shared != u->shared) choose(u, shared);
    uint64_t end = address + (e->size < LONGEST ? e->size : LONGEST);
    for (uint64_t word = address & ~3ull; word < end; word += 4) visit(u, lane, address, word, how);
  }
}

/* ---- lanes anywhere, one word each ---- */

/* Whether all lanes have a whole word each in shared memory, or in memory that all CTAs reach, and the first and last of them. */
static bool are_words(const use *u, uint32_t mask, uint64_t *first, uint64_t *last) {
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
PE_INLINE bool passes_word(const use *u, uint32_t lane, pe_stamp *own, const pe_stamp *others) {
  pe_stamp now = (u->stamp + lane * PE_STAMP_LANE) | PE_STAMP_BYTES;
  bool good = (!u->writes || is_harmless(&u->harmless, *own, now)) && (!others || is_harmless(&u->harmless, *others, now));
  if (good) *own = now;
  return good;
}

/* Look at such lanes, the words of which are in one chunk: those with whose words something may be wrong. */
UNWATCHED static uint32_t look_near(const use *u, uint32_t mask, uint64_t first) {
  uint64_t word = first + (u->shared ? u->w->shared_base : 0);
  pe_stamp *own = own_stamps(u, word);
  const pe_stamp *others = other_stamps(u, word);
  uint32_t rest = 0;
  PE_FOR_LANES(lane, own ? mask : 0) {
    uint64_t index = (u->event->address[lane] - first) / 4;
    rest |= (uint32_t)!passes_word(u, lane, own + index, others ? others + index : NULL) << lane;
  }
  return rest;
}

/* The same of words anywhere. */
UNWATCHED static uint32_t look_far(const use *u, uint32_t mask) {
  uint32_t rest = 0;
  PE_FOR_LANES(lane, mask) {
    uint64_t word = u->event->address[lane] + (u->shared ? u->w->shared_base : 0);
    pe_stamp *own = own_stamps(u, word);
    if (own) rest |= (uint32_t)!passes_word(u, lane, own, other_stamps(u, word)) << lane;
  }
  return rest;
}

/* The same where other workers may be there. */
UNWATCHED static uint32_t look_beside(const use *u, uint32_t mask) {
  uint32_t rest = 0;
  PE_FOR_LANES(lane, mask) {
    uint64_t word = u->event->address[lane];
    pe_stamp now = (u->stamp + lane * PE_STAMP_LANE) | PE_STAMP_BYTES, *own = own_stamps(u, word);
    if (own && u->writes && !is_harmless(&u->harmless, *own, now))
      rest |= 1u << lane;
    else if (own)
      *own = now;
  }
  atomic_thread_fence(memory_order_seq_cst);
  PE_FOR_LANES(lane, mask & ~rest) {
    uint64_t word = u->event->address[lane];
    pe_stamp now = u->stamp + lane * PE_STAMP_LANE;
    const pe_stamp *own = u->writes ? own_stamps(u, word) : NULL, *others = other_stamps(u, word);
    bool good = (!own || is_harmless(&u->harmless, *own, now)) && (!others || is_harmless(&u->harmless, *others, now));
    rest |= (uint32_t)!good << lane;
  }
  return rest;
}

/* Look at the lanes if they have a word each: those with whose words something may be wrong. */
static uint32_t look_at_words(use *u, uint32_t mask) {
  bool shared = u->event->space == PE_SHARED;
  uint64_t first, last, plus = shared ? u->w->shared_base : 0;
  if (u->shared != shared) choose(u, shared);
  if (!mask || !are_words(u, mask, &first, &last)) return mask;
  uint32_t rest = u->beside                                    ? look_beside(u, mask)
                  : is_one_chunk(u, first + plus, last + plus) ? look_near(u, mask, first)
                                                               : look_far(u, mask);
  if (!u->release) return rest;
  PE_FOR_LANES(lane, mask & ~rest) release(u, u->event->address[lane] + plus, 1);
  return rest;
}

/* ---- lanes side by side ---- */

/* Whether lane after lane has its bytes behind those of the last, or all have the same: the lanes of `mask` are side by side. */
PE_WIDEST static bool is_pattern(uint32_t mask, const uint64_t *restrict address, uint64_t first, uint64_t step) {
  uint64_t differ = 0;
  for (uint64_t i = 0; i < PE_WARP_LANES; i++) differ |= (address[i] ^ (first + i * step)) & (0 - (uint64_t)(mask >> i & 1));
  return !differ;
}

static bool steps_by(const use *u, uint32_t mask, uint64_t step) {
  const uint64_t *address = u->event->address;
  uint32_t lane = (uint32_t)__builtin_ctz(mask), last = 31 - (uint32_t)__builtin_clz(mask);
  return address[last] - address[lane] == (last - lane) * step &&
         is_pattern(mask, address, address[lane] - lane * step, step);
}

/* The words of lanes side by side that have theirs side by side, or the same, in memory that others reach and in one chunk;
 * false: it is not so. */
static bool run_of(use *u, uint32_t mask, run *out) {
  const pe_memory_event *e = u->event;
  uint32_t lane = (uint32_t)__builtin_ctz(mask), behind = mask >> lane;
  bool whole = e->size % 4 == 0 && (e->size & (e->size - 1)) == 0;
  if (!whole || e->size > 4 * MOST_WORDS || e->address[lane] % 4 || behind & (behind + 1)) return false;
  bool one = !u->writes && steps_by(u, mask, 0); /* lanes do not race by reading */
  if (!one && !steps_by(u, mask, e->size)) return false;
  uint64_t bytes = one ? e->size : (uint32_t)__builtin_popcount(mask) * e->size, first;
  bool shared;
  if (!locate(u->w, e, lane, bytes, &first, &shared)) return false;
  if (shared && !pe_within(first - u->w->shared_base, bytes, u->w->shared_size)) return false;
  if (!is_one_chunk(u, first, first + bytes - 1)) return false;
  if (shared != u->shared) choose(u, shared);
  *out = (run){first, (uint32_t)(bytes / 4), lane, bytes == e->size ? ALL_OF_ONE : (uint32_t)__builtin_ctzll(e->size / 4)};
  return true;
}

/* Look at the lanes in pieces of a width that are such runs.  The lanes of other pieces. */
PE_WIDEST UNWATCHED static uint32_t look_at_runs(use *u, uint32_t mask, uint32_t width) {
  uint32_t all = width == PE_WARP_LANES ? PE_ALL_LANES : (1u << width) - 1, rest = 0;
  for (uint32_t lane = 0; lane < PE_WARP_LANES; lane += width) {
    uint32_t piece = mask & all << lane;
    run r;
    if (piece && !(run_of(u, piece, &r) && passes(u, &r))) rest |= piece;
  }
  return rest;
}

/* Begin to look at an access; false: that cannot be. */
PE_INLINE bool begin(use *u, pe_checker *checker, const pe_warp *w, uint32_t pos, uint32_t kind, uint32_t order,
                     uint32_t space) {
  pe_order_block *b = pe_order_block_of(w);
  pe_order_warp *s = b ? &b->warp[w->warpid] : NULL;
  if (s && s->unsettled) pe_order_settle(&checker->race.order, b, w->warpid);
  if (s && order & PE_RELEASE) pe_order_fence(&checker->race.order, b, w->warpid);
  if (!s || b->blind) {
    atomic_fetch_add(&checker->race.lost, 1);
    return false;
  }
  u->checker = checker, u->b = b, u->w = w, u->s = s;
  u->release = 0;
  u->writes = kind & PE_WRITE;
  u->beside = !b->alone && space != PE_SHARED;
  u->harmless.strong = order & PE_STRONG ? PE_STAMP_STRONG : 0;
  u->stamp = s->now | pe_site_of(&checker->race.sites, pos) | u->harmless.strong | (kind == PE_UPDATE ? PE_STAMP_UPDATE : 0);
  choose(u, space == PE_SHARED);
  return true;
}

static bool is_reached_by_others(uint32_t space) { return space == PE_SHARED || space == PE_GLOBAL || space == PE_GENERIC; }

/* Lanes with a strong read follow who releases there. */
static void keep_reads(const use *u, uint32_t mask) {
  u->s->unsettled = true;
  u->s->reads = 0;
  PE_FOR_LANES(lane, mask) {
    uint64_t address;
    bool shared;
    if (!locate(u->w, u->event, lane, u->event->size, &address, &shared)) continue;
    u->s->reads |= 1u << lane;
    u->s->word[lane] = address & ~3ull;
  }
}

void pe_race_access(pe_checker *checker, const pe_warp *w, const pe_memory_event *event, uint32_t mask) {
  use u;
  if (!is_reached_by_others(event->space) || !event->size || !mask) return;
  if (!begin(&u, checker, w, event->pos, event->kind, event->order, event->space)) return;
  u.event = event;
  if (u.harmless.strong && u.writes) u.release = pe_order_release(&checker->race.order, u.b, w->warpid);
  if (u.harmless.strong)
    mask = !u.writes && steps_by(&u, mask, 0) ? mask & -mask : mask;
  else
    for (uint32_t width = PE_WARP_LANES; mask && width >= NARROWEST; width /= 2) mask = look_at_runs(&u, mask, width);
  if (u.harmless.strong && event->kind & PE_READ) keep_reads(&u, mask);
  mask = look_at_words(&u, mask);
  if (u.beside && !u.writes) {
    visit_lanes(&u, mask, LEAVE);
    atomic_thread_fence(memory_order_seq_cst);
    visit_lanes(&u, mask, LOOK);
  } else {
    visit_lanes(&u, mask, LEAVE | LOOK);
  }
}

/* ---- patterns ---- */

/* Whether words from an address on are in one chunk of memory that others reach. */
PE_INLINE bool place(const use *u, uint32_t space, uint64_t size, uint64_t *address) {
  const pe_warp *w = u->w;
  if (space == PE_SHARED ? !pe_within(*address, size, w->shared_size) : !pe_in_arena(w, *address, size)) return false;
  if (space == PE_SHARED) *address += w->shared_base;
  return is_one_chunk(u, *address, *address + size - 1) && *address % 4 == 0;
}

PE_WIDEST UNWATCHED bool pe_race_pattern(pe_checker *checker, const pe_warp *w, const pe_pattern_site *site, uint32_t mask,
                                         uint64_t base) {
  use u;
  bool one = !site->step, writes = site->kind & PE_WRITE;
  if (!is_reached_by_others(site->space)) return true;
  if (mask != PE_ALL_LANES || site->kind & PE_STRONG || (one && writes) || site->space == PE_GENERIC) return false;
  if (!begin(&u, checker, w, site->pos, site->kind, 0, site->space)) return true;
  uint64_t all = site->narrow ? UINT32_MAX : UINT64_MAX, size = one ? site->size : site->width * site->size;
  uint32_t each = one ? ALL_OF_ONE : (uint32_t)__builtin_ctz(site->size / 4);
  for (uint32_t lane = 0; lane < PE_WARP_LANES; lane += site->width) {
    uint32_t next = lane + site->width;
    if (!writes && next < PE_WARP_LANES && site->offset[next] == site->offset[lane])
      continue; /* lanes do not race by reading */
    uint64_t address = (base + site->offset[lane]) & all;
    if (!place(&u, site->space, size, &address)) return false;
    if (!passes(&u, &(run){address, (uint32_t)(size / 4), lane, each})) return false;
  }
  return true;
}
