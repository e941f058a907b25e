/* race_access.h: an access of a warp as the checker `race` sees it (race.c): who makes it, where, and which stamps
 * cannot matter to it.  What every access does is inline. */
#ifndef PTXEMU_RACE_ACCESS_H
#define PTXEMU_RACE_ACCESS_H
#include <string.h>
#include "checker.h"
#include "async.h"
#include "atomic.h"
#include "fault.h"
#include "launch.h"
#include "place.h"
#include "surface_access.h"

/* Elements of vectors of stamps are read and written as a whole. */
#define PE_UNWATCHED __attribute__((no_sanitize("thread")))

/* Stamps that cannot matter to an access: below `floor`, in `span` from `first` on, and strong ones if it is strong; and those of its own
 * thread at the same time. */
typedef struct pe_harmless {
  pe_stamp floor, first, span, strong;
} pe_harmless;

/* An access. */
typedef struct pe_race_use {
  pe_checker *checker;
  pe_order_block *b;
  const pe_warp *w;
  const pe_memory_event *event;
  pe_order_warp *s;
  pe_stamp stamp; /* of lane 0, without bytes */
  const pe_stamping *code;
  pe_harmless harmless;
  bool writes, shared;
  bool proxied;     /* the async proxy makes it */
  bool beside;      /* other threads may be there at the same time */
  bool follows;     /* what it follows as a strong read is known, or will be */
  uint64_t release; /* the time at which it releases its words, or 0 */
  uint64_t met;     /* the last time at which others had released those that it has looked at */
} pe_race_use;

/* From when on reads of shared memory stay where those of other warps come (pe_read_stays). Elsewhere others know of them. */
PE_INLINE pe_stamp pe_race_floor(const pe_race_use *u) { return u->shared ? u->harmless.floor : PE_STAMP_NEVER; }

PE_INLINE bool pe_is_harmless(const pe_harmless *h, pe_stamp before, pe_stamp now) {
  return before < h->floor || (before ^ now) < PE_STAMP_ROW || before - h->first < h->span || before & h->strong;
}

/* Whether a read stays where one of another warp comes, since all have met: that one may be about to write there. `floor`:
 * PE_STAMP_NEVER, if none does. */
PE_INLINE bool pe_read_stays(pe_stamp floor, pe_stamp before, pe_stamp now) {
  bool since = before >= floor && before < PE_STAMP_SPLIT && PE_STAMP_STAYS(before) && !pe_stamp_has_parts(before);
  return since && pe_stamp_warp(before) != pe_stamp_warp(now);
}

/* What a read leaves where the stamp of another one is. */
PE_INLINE pe_stamp pe_read_left(pe_stamp floor, pe_stamp before, pe_stamp now) {
  return pe_read_stays(floor, before, now) ? before : pe_stamp_behind(before, now);
}

/* Whether a strong access leaves the stamp that a plain one of its thread has left at the same time, with which more accesses race. */
PE_INLINE bool pe_is_kept(pe_stamp before, pe_stamp now) {
  return now & PE_STAMP_STRONG && !(before & PE_STAMP_STRONG) && ((before ^ now) & ~PE_STAMP_SEVERAL) < PE_STAMP_ROW &&
         !(now & ~before & PE_STAMP_BYTES);
}

/* Whether a read need not leave its stamp, as another CTA's is there: so workers that read the same do not wait for each other. */
PE_INLINE bool pe_stays(const pe_stamping *s, pe_stamp before) {
  return before >= s->least && before - s->begin >= s->length && PE_STAMP_STAYS(before);
}

/* Where the access is. */
PE_INLINE void pe_race_place(pe_race_use *u, bool shared) {
  const pe_stamping *s = u->code;
  u->shared = shared;
  u->harmless.first = s->first;
  u->harmless.floor = shared ? s->floor : s->ancient;
  u->harmless.span = shared ? 0 : s->span;
}

static inline bool pe_race_one_chunk(const pe_race_use *u, uint64_t first, uint64_t last) {
  uint64_t base = u->checker->race.writes.base;
  return (first - base) >> PE_SHADOW_LOG2 == (last - base) >> PE_SHADOW_LOG2;
}

/* The stamps from a word on, or NULL: those that the access leaves its own among, and those of accesses of the other kind. */
PE_INLINE pe_stamp *pe_race_own_stamps(const pe_race_use *u, uint64_t word) {
  pe_race *race = &u->checker->race;
  return pe_shadow_make(u->writes ? &race->writes : &race->reads, word);
}

PE_INLINE pe_stamp *pe_race_other_stamps(const pe_race_use *u, uint64_t word) {
  pe_race *race = &u->checker->race;
  return pe_shadow_find(u->writes ? &race->reads : &race->writes, word);
}

static inline bool pe_race_reached(uint32_t space) {
  return space == PE_SHARED || space == PE_GLOBAL || space == PE_GENERIC || space == PE_TEXEL;
}

/* The device address of a lane's access, and whether it is in shared memory; false: nobody else can be there. */
PE_INLINE bool pe_race_locate(const pe_warp *w, const pe_memory_event *e, uint32_t lane, uint64_t size, uint64_t *address,
                              bool *shared) {
  *address = e->address[lane];
  *shared = e->space == PE_SHARED;
  if (*shared) {
    *address += w->shared_base;
    return pe_within(e->address[lane], size, w->shared_size);
  }
  if (!pe_race_reached(e->space)) return false;
  if (pe_in_window(*address, w->cluster_base, w->cluster_bytes)) {
    *shared = true;
    return pe_within(*address - w->cluster_base, size, w->cluster_bytes);
  }
  bool private = *address - w->local_base < pe_product(w->local_size, PE_WARP_LANES) ||
                 *address - w->param_base < w->param_size || *address - w->const_base < w->const_size;
  return !private && pe_in_arena(w, *address, size);
}

/* The parity of the phase of an mbarrier object, if there is one. */
static inline uint8_t pe_mbarrier_phase(uint64_t address) {
  uint64_t object;
  memcpy(&object, (const void *)(uintptr_t)address, sizeof object); /* it may not be aligned: that is tested later */
  return object >> PE_MBARRIER_PHASE_BIT & 1;
}

/* ---- race_log.c ---- */

/* The CTA begins. */
void pe_race_log_begin(pe_order *order, pe_order_block *b);
PE_INLINE const pe_pattern_site *pe_logged_sites(const pe_logged *access) {
  return (const pe_pattern_site *)(uintptr_t)access->site;
}
/* Whether none of some accesses off one base gives a word to two lanes, if they write. */
PE_INLINE bool pe_are_apart(const pe_pattern_site *site, uint64_t number) {
  bool apart = true;
  for (uint64_t i = 0; i < number; i++) apart = apart && (site[i].family || !(site[i].kind & PE_WRITE));
  return apart;
}
/* From now on until all warps have met, no accesses are listed but reads. */
PE_INLINE void pe_race_log_end(pe_shared_log *log) {
  log->exact = log->exact > log->turn ? log->exact : log->turn;
  log->foreseen = 0;
}
/* What is listed leaves its stamps. */
void pe_race_log_flush(pe_race *race, const pe_warp *w, pe_order_block *b);

/* Before an access of shared memory that leaves its stamps. */
PE_INLINE void pe_race_log_access(pe_race *race, const pe_warp *w, pe_order_block *b, bool writes, bool strong) {
  pe_stamp *last = !writes ? &b->log.read : strong ? &b->log.strong : &b->log.written, now = b->stamping[w->warpid].now;
  if (b->log.count) pe_race_log_flush(race, w, b);
  pe_race_log_end(&b->log);
  *last = now > *last ? now : *last;
}

/* ---- an access ---- */

/* Begin to look at an access; false: that cannot be. */
PE_INLINE bool pe_race_begin(pe_race_use *u, pe_checker *checker, const pe_warp *w, uint32_t pos, uint32_t kind,
                             uint32_t order, uint32_t space) {
  pe_order_block *b = pe_order_block_of(w);
  pe_order_warp *s = &b->warp[w->warpid];
  pe_order_settle(&checker->race.order, b, w->warpid);
  if (order & PE_RELEASE && !b->blind) pe_order_fence(&checker->race.order, b, w->warpid);
  if (b->blind) {
    atomic_fetch_add(&checker->race.lost, 1);
    return false;
  }
  u->checker = checker, u->b = b, u->w = w, u->s = s;
  u->code = &b->stamping[w->warpid];
  u->release = u->met = 0;
  u->follows = false;
  u->writes = kind & PE_WRITE;
  u->proxied = order & (PE_BULK | PE_PROXY);
  u->beside = !pe_order_is_alone(&checker->race.order, b) && space != PE_SHARED;
  u->harmless.strong = order & PE_STRONG ? PE_STAMP_STRONG : 0;
  u->stamp =
      u->code->now | pe_site_of(&checker->race.sites, pos) | u->harmless.strong | (kind == PE_UPDATE ? PE_STAMP_UPDATE : 0);
  if (space == PE_SHARED || space == PE_GENERIC) pe_race_log_access(&checker->race, w, b, u->writes, order & PE_STRONG);
  pe_race_place(u, space == PE_SHARED);
  return true;
}

/* Whether lanes may have a word together: a plain access of a byte or two each. */
PE_INLINE bool pe_race_may_be_row(const pe_race_use *u) {
  return u->event->size <= 2 && u->event->kind != PE_UPDATE && !u->harmless.strong && !u->proxied &&
         !u->checker->race.scoped;
}

PE_INLINE void pe_race_meet(pe_race_use *u, uint64_t time) { u->met = time > u->met ? time : u->met; }

/* A word is released by a strong write, if that is behind a fence: the access has a `release`; and met by an update. */
PE_INLINE void pe_race_release(pe_race_use *u, uint64_t word) {
  pe_order *order = &u->checker->race.order;
  if (u->release)
    pe_race_meet(u, pe_order_release_word(order, u->s, word, u->release, u->shared || pe_order_is_alone(order, u->b)));
  else if (u->harmless.strong && u->event->kind == PE_UPDATE && !(u->event->order & PE_ASYNC))
    pe_race_meet(u, pe_order_released_at(order, word));
}

/* ---- race_scopes.c ---- */

bool pe_race_scopes_init(pe_race *race);
void pe_race_scopes_end(pe_race *race);
/* The numbers of sites begin anew. */
void pe_race_scopes_clear(pe_race *race);
/* A strong access: keep whether it is that among threads of its CTA, or its cluster, alone. Another program may have had its site. */
void pe_race_note_scope(const pe_race_use *u);
/* Whether a strong access is of another CTA or cluster, and one of both is strong among threads of its own alone. */
bool pe_race_is_beyond_scope(const pe_race_use *u, pe_stamp before);

/* ---- race_proxies.c ---- */

/* A write by the async proxy: keep that its site makes such. */
void pe_race_note_proxy(const pe_race_use *u);
/* Whether an access by the async proxy, which comes behind a write by another one, has no fence between proxies before it. */
bool pe_race_lacks_fence(const pe_race_use *u, pe_stamp before);
/* Whether it is so behind any of some writes. */
bool pe_race_lacks_fences(const pe_race_use *u, const pe_stamp *before, uint32_t count);

/* ---- race_report.c ---- */

/* Whether a write leaves what is there, or what a lane of the same instruction writes there. */
bool pe_race_is_equal_write(const pe_race_use *u, uint32_t lane, uint64_t address, pe_stamp before);

/* Report a race of a lane with an access that was before: that is a read; both write the same value, so that it is a note; there is
 * no fence between proxies; or they are in an order by a strong read alone, which is a note. */
enum { PE_RACE_EQUAL = 1, PE_RACE_WITH_READ = 2, PE_RACE_UNFENCED = 16, PE_RACE_LOOSE = 32 };
void pe_race_tell(const pe_race_use *u, uint32_t lane, uint64_t address, pe_stamp before, uint32_t how);

/* The same of a sum in global memory that the thread of a stamp has made apart from others: a plain access was there before. */
void pe_race_tell_sum(pe_checker *checker, const pe_launch *launch, uint64_t address, uint32_t size, pe_stamp now,
                      pe_stamp before, bool is_read);

/* ---- race_bytes.c ---- */

void pe_race_bytes_end(pe_race *race);
/* The four stamps of a word whose stamp is PE_STAMP_SPLIT; NULL: nothing is kept. */
pe_stamp *pe_race_bytes(pe_race *race, uint32_t table, uint64_t word);
/* Split a word with the stamp `before`. NULL: there is no memory. */
pe_stamp *pe_race_split(pe_race *race, uint32_t table, uint64_t word, pe_stamp before);
/* The stamp of a byte of a word that has this one; PE_STAMP_BLANK if it is split and nothing is kept. */
pe_stamp pe_race_of_byte(pe_race *race, uint32_t table, uint64_t word, pe_stamp all, uint32_t byte);
/* Lanes from one on have a word together, in a plain access of a byte, or two, each: leave their stamp if none that is there matters. */
bool pe_race_row_passes(const pe_race_use *u, uint32_t lane, uint64_t word);
/* Words side by side in one chunk, `each` lanes to a word from one on: the same of all of them, whatever the event is. */
typedef struct pe_race_row {
  uint64_t word;
  uint32_t count, lane, each;
} pe_race_row;
bool pe_race_rows_pass(const pe_race_use *u, const pe_race_row *r);

/* ---- race_words.c ---- */

/* Look at the lanes if they have a word each: those with whose words something may be wrong. */
uint32_t pe_race_look_at_words(pe_race_use *u, uint32_t mask);

/* The same of accesses of so many words each in shared memory, at these addresses there. */
uint32_t pe_race_look_in_shared(const pe_race_use *u, uint32_t mask, const uint64_t *address, uint32_t words);

enum { PE_RACE_LONGEST = 1 << 18 }; /* bytes of a lane that are looked at: no shared memory has more */

/* Whether the lanes leave their stamps, and whether they look for those of others. */
enum { PE_LEAVE = 1, PE_LOOK = 2 };

/* What the lanes do, word by word; what races is reported. */
void pe_race_visit(pe_race_use *u, uint32_t mask, uint32_t how);

#endif
