/* race.c: the checker `race`: two accesses of shared or global memory by different threads, one of them a write, that nothing
 * puts in an order.
 *
 * Each warp has a clock, which goes on where others may learn what it has done: at barriers, fences and bar.warp.sync.  A warp
 * *knows* of each warp of its CTA how far it has seen that; barriers spread this.  What leads beyond a CTA are strong accesses
 * (volatile, relaxed, atomic ...): one behind a fence releases, at a time that all warps share, what the fence has put in
 * order, and one that reads the same word makes its warp follow that time.  Words keep their last write and read.
 *
 * Where this is less exact than the manual's model, it finds less: any warp that follows a time follows all releases before it,
 * and strong reads need no fence behind them.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "checker.h"
#include "launch.h"
#include "place.h"
#include "text.h"

#define SEGMENT 4096 /* CTAs that are listed together */
#define SEGMENTS (1u << 16)
#define LONGEST 4096 /* bytes of a lane that are looked at; bulk copies have more */

enum { STRONG = 1, READ = 2, UPDATE = 4, SHARED = 8 };

/* What a warp knows: of each warp of its CTA, before which clock; and the time that it follows. */
typedef struct knowledge {
  uint32_t clock[PE_MAX_WARPS];
  uint32_t time;
} knowledge;

/* A barrier's meeting: what those know that have arrived.  Meetings of one barrier take turns. */
typedef struct meeting {
  knowledge known;
  uint32_t number;
} meeting;

typedef struct warp_state {
  knowledge known, fenced; /* now, and at the last fence */
  bool has_fenced;
  uint32_t clock;
  uint32_t arrived[PE_BARRIER_GRID + 1]; /* how often, at each barrier */
  meeting *leaves;                       /* the meeting that it waits for */
  bool meets_grid;
  uint32_t reads; /* lanes whose last access was strong, and where: they follow who releases there until it is done */
  uint64_t word[PE_WARP_LANES];
} warp_state;

/* What is known of a CTA for as long as its launch: where it is, and what it has released. */
typedef struct cta_record {
  uint64_t number;
  uint32_t *released; /* of each warp before which clock; or NULL */
} cta_record;

typedef struct pe_race_block {
  struct pe_race_block *next;
  const pe_launch *launch;
  uint32_t id, warps;
  cta_record *record;
  meeting meetings[PE_BARRIER_GRID + 1][2];
  warp_state warp[PE_MAX_WARPS];
} block;

/* An access of a word: by whom, when, and which of its bytes.  CTA 0: there was none. */
typedef struct access_record {
  uint32_t cta, clock, time, pos;
  uint16_t thread;
  uint8_t flags, bytes;
} access_record;

typedef struct cell {
  access_record write, read;
  uint32_t released; /* the time of the last release */
} cell;

bool pe_race_init(pe_race *race, pe_arena *arena) {
  pthread_mutex_init(&race->mutex, NULL);
  race->segments = calloc(SEGMENTS, sizeof *race->segments);
  race->next = race->first = 1;
  return race->segments && pe_shadow_init(&race->shadow, arena, sizeof(cell));
}

static void free_records(pe_race *race) {
  for (size_t i = 0; i < SEGMENTS && race->segments[i]; i++) {
    cta_record *segment = race->segments[i];
    for (size_t j = 0; j < SEGMENT; j++) free(segment[j].released);
    free(segment);
    race->segments[i] = NULL;
  }
}

void pe_race_end(pe_race *race) {
  for (block *b = race->blocks; b;) {
    block *next = b->next;
    free(b);
    b = next;
  }
  if (race->segments) free_records(race);
  free((void *)race->segments);
  pe_shadow_end(&race->shadow);
  pthread_mutex_destroy(&race->mutex);
}

/* ---- CTAs ---- */

static cta_record *record_of(const pe_race *race, uint32_t id) {
  uint32_t index = id - race->first;
  if (id < race->first || index / SEGMENT >= SEGMENTS) return NULL;
  cta_record *segment = __atomic_load_n(&race->segments[index / SEGMENT], __ATOMIC_ACQUIRE);
  return segment ? &segment[index % SEGMENT] : NULL;
}

/* The record of a new CTA. With the mutex held; NULL: there are too many. */
static cta_record *new_record(pe_race *race, uint32_t id) {
  uint32_t index = id - race->first;
  if (index / SEGMENT >= SEGMENTS) return NULL;
  if (!race->segments[index / SEGMENT]) {
    cta_record *made = calloc(SEGMENT, sizeof *made);
    __atomic_store_n(&race->segments[index / SEGMENT], made, __ATOMIC_RELEASE);
  }
  return record_of(race, id);
}

uint64_t pe_race_block(pe_checker *checker, const pe_warp *w) {
  pe_race *race = &checker->race;
  block *b = (block *)(uintptr_t)w->watch;
  if (!b) {
    b = malloc(sizeof *b);
    if (!b) return 0;
    pthread_mutex_lock(&race->mutex);
    b->next = race->blocks;
    race->blocks = b;
    pthread_mutex_unlock(&race->mutex);
  }
  block *next = b->next;
  memset(b, 0, sizeof *b);
  b->next = next;
  b->launch = w->launch;
  b->warps = w->launch->warps;
  pthread_mutex_lock(&race->mutex);
  b->id = race->next++;
  b->record = new_record(race, b->id);
  pthread_mutex_unlock(&race->mutex);
  if (b->record)
    b->record->number = w->ctaid[0] + (uint64_t)w->nctaid[0] * (w->ctaid[1] + (uint64_t)w->nctaid[1] * w->ctaid[2]);
  for (uint32_t i = 0; i < b->warps; i++) b->warp[i].clock = 1;
  return (uint64_t)(uintptr_t)b;
}

void pe_race_begun(pe_checker *checker) {
  pe_race *race = &checker->race;
  pthread_mutex_lock(&race->mutex);
  race->launches++;
  pthread_mutex_unlock(&race->mutex);
}

/* What is known of CTAs is of no use when all launches have ended. */
void pe_race_ended(pe_checker *checker, const pe_config *config) {
  pe_race *race = &checker->race;
  pthread_mutex_lock(&race->mutex);
  for (block **at = (block **)&race->blocks; *at;) {
    block *b = *at;
    if (&b->launch->config != config) {
      at = &b->next;
      continue;
    }
    *at = b->next;
    free(b);
  }
  if (--race->launches == 0) {
    free_records(race);
    race->first = race->next;
  }
  pthread_mutex_unlock(&race->mutex);
}

void pe_race_forget(pe_checker *checker, uint64_t address, uint64_t size) {
  pe_shadow_clear(&checker->race.shadow, address, size);
}

/* ---- what puts accesses in an order ---- */

static void learn(knowledge *to, const knowledge *from, uint32_t warps) {
  for (uint32_t i = 0; i < warps; i++) to->clock[i] = to->clock[i] > from->clock[i] ? to->clock[i] : from->clock[i];
  to->time = to->time > from->time ? to->time : from->time;
}

/* The clock goes on: what the warp has done is before it. */
static void tick(block *b, uint32_t warp) {
  warp_state *s = &b->warp[warp];
  s->known.clock[warp] = ++s->clock;
}

static void follow(warp_state *s, uint32_t time) { s->known.time = s->known.time > time ? s->known.time : time; }

/* What has happened to a warp between its last event and this one: it has passed a barrier, and its strong reads are done. */
static void settle(pe_race *race, block *b, uint32_t warp) {
  warp_state *s = &b->warp[warp];
  if (s->leaves) learn(&s->known, &s->leaves->known, b->warps);
  if (s->meets_grid) follow(s, __atomic_load_n(&race->time, __ATOMIC_RELAXED));
  s->leaves = NULL;
  s->meets_grid = false;
  for (; s->reads; s->reads &= s->reads - 1) {
    uint64_t word = s->word[__builtin_ctz(s->reads)];
    pe_chunk *chunk = pe_shadow_chunk(&race->shadow, word);
    if (!chunk) continue;
    const cell *c = pe_shadow_cell(&race->shadow, chunk, word);
    follow(s, __atomic_load_n(&c->released, __ATOMIC_ACQUIRE));
  }
}

/* Everybody may learn what the last fence has put in order; the time of that. */
static uint32_t release(pe_race *race, block *b, uint32_t warp) {
  warp_state *s = &b->warp[warp];
  if (!s->has_fenced || !b->record) return 0;
  if (!b->record->released) {
    uint32_t *made = calloc(b->warps, sizeof *made);
    if (!made) return 0;
    __atomic_store_n(&b->record->released, made, __ATOMIC_RELEASE);
  }
  uint32_t *released = b->record->released;
  for (uint32_t i = 0; i < b->warps; i++)
    if (released[i] < s->fenced.clock[i]) __atomic_store_n(&released[i], s->fenced.clock[i], __ATOMIC_RELEASE);
  return __atomic_add_fetch(&race->time, 1, __ATOMIC_ACQ_REL);
}

static void fence(block *b, uint32_t warp) {
  tick(b, warp);
  b->warp[warp].fenced = b->warp[warp].known;
  b->warp[warp].has_fenced = true;
}

void pe_race_order(pe_checker *checker, const pe_warp *w, uint32_t what) {
  block *b = (block *)(uintptr_t)w->watch;
  if (!b) return;
  settle(&checker->race, b, w->warpid);
  if (what == PE_WARP_SYNC)
    tick(b, w->warpid);
  else
    fence(b, w->warpid);
}

/* Barriers of the whole CTA have all its warps at each meeting, so that meetings are told apart; at others it is not known. */
static meeting *meeting_of(block *b, uint32_t warp, uint32_t id, bool whole) {
  uint32_t number = whole ? ++b->warp[warp].arrived[id] : 0;
  meeting *m = &b->meetings[id][number % 2];
  if (m->number != number) *m = (meeting){.number = number};
  return m;
}

void pe_race_barrier(pe_checker *checker, const pe_warp *w, uint32_t id, uint32_t how) {
  block *b = (block *)(uintptr_t)w->watch;
  if (!b || id > PE_BARRIER_GRID) return;
  warp_state *s = &b->warp[w->warpid];
  settle(&checker->race, b, w->warpid);
  fence(b, w->warpid);
  if (id == PE_BARRIER_GRID) {
    release(&checker->race, b, w->warpid);
    s->meets_grid = true;
    return;
  }
  meeting *m = meeting_of(b, w->warpid, id, how == PE_BARRIER_WHOLE);
  learn(&m->known, &s->known, b->warps);
  if (!(how & PE_BARRIER_ARRIVES) || id == PE_BARRIER_CLUSTER) s->leaves = m;
}

/* ---- the check ---- */

/* An access that is looked at. */
typedef struct use {
  pe_checker *checker;
  block *b;
  const pe_warp *w;
  const pe_memory_event *event;
  uint32_t lane, warp;
  uint64_t address; /* of the device */
  access_record now;
  pe_chunk *chunk; /* where it is, or NULL */
  uint64_t number; /* of the chunk */
  bool locked;
} use;

static void leave(use *u) {
  if (u->locked) pe_chunk_unlock(u->chunk);
  u->chunk = NULL;
  u->locked = false;
}

/* Whether another access comes before this one. */
static bool is_ordered(const use *u, const access_record *before) {
  const warp_state *s = &u->b->warp[u->warp];
  uint32_t warp = before->thread / PE_WARP_LANES;
  const uint32_t *released;
  if (before->cta == u->b->id) {
    if (before->thread == u->now.thread) return true;
    if (warp == u->warp ? before->clock < s->clock : before->clock < s->known.clock[warp]) return true;
    released = u->b->record ? u->b->record->released : NULL;
  } else {
    const cta_record *record = record_of(&u->checker->race, before->cta);
    if (!record) return true; /* of an earlier launch */
    released = __atomic_load_n(&record->released, __ATOMIC_ACQUIRE);
  }
  return released && before->clock < __atomic_load_n(&released[warp], __ATOMIC_ACQUIRE) && before->time < s->known.time;
}

/* Whether a write leaves what is there, or what a lane of the same instruction writes there. */
static bool is_equal_write(const use *u, const access_record *before) {
  const pe_memory_event *e = u->event;
  if (!e->values || e->kind != PE_WRITE || (before->flags & UPDATE)) return false;
  const uint8_t *value = (const uint8_t *)e->values + u->lane * e->size;
  uint32_t other = before->thread % PE_WARP_LANES;
  bool together = before->cta == u->b->id && before->thread / PE_WARP_LANES == u->warp && before->pos == e->pos &&
                  e->mask >> other & 1 && e->address[other] == e->address[u->lane];
  const void *there = together ? (const uint8_t *)e->values + other * e->size : (const void *)(uintptr_t)u->address;
  return memcmp(value, there, e->size) == 0;
}

static const char *noun(uint8_t flags) { return flags & UPDATE ? "an atomic update" : flags & READ ? "a read" : "a write"; }

static void tell(const use *u, const access_record *before) {
  const pe_memory_event *e = u->event;
  pe_finding f = {.check = PE_CHECK_RACE, .what = before->flags & (READ | UPDATE), .pos = e->pos, .other_pos = before->pos};
  pe_text t = pe_text_in(f.text, sizeof f.text);
  const cta_record *record = record_of(&u->checker->race, before->cta);
  pe_add(&t, "%" PRIu64 "-byte %s of ", e->size,
         e->kind == PE_READ    ? "read"
         : e->kind == PE_WRITE ? "write"
                               : "atomic update");
  pe_extent at;
  if (u->now.flags & SHARED)
    pe_add(&t, "shared memory at 0x%" PRIx64, u->address - u->w->shared_base);
  else if (pe_extents_at(&u->checker->extents, u->address, &at) && at.name[0])
    pe_add(&t, "`%s`[0x%" PRIx64 "]", at.name, u->address - at.address);
  else
    pe_add(&t, "global memory at 0x%" PRIx64, u->address);
  pe_add(&t, ", in no order with %s", noun(before->flags));
  uint64_t number = record ? record->number : 0;
  const pe_warp *w = u->w;
  f.other.warp = before->thread / PE_WARP_LANES;
  f.other.ctaid[0] = (uint32_t)(number % w->nctaid[0]);
  f.other.ctaid[1] = (uint32_t)(number / w->nctaid[0] % w->nctaid[1]);
  f.other.ctaid[2] = (uint32_t)(number / w->nctaid[0] / w->nctaid[1]);
  f.other.tid[0] = before->thread % w->ntid[0];
  f.other.tid[1] = before->thread / w->ntid[0] % w->ntid[1];
  f.other.tid[2] = before->thread / w->ntid[0] / w->ntid[1];
  pe_report(u->checker, w, u->lane, &f);
}

/* Whether an access that was before has to be in an order with this one, and is not, as far as the words tell. */
static inline bool conflicts(const use *u, const access_record *before) {
  if (!before->cta || !(before->bytes & u->now.bytes) || before->flags & u->now.flags & STRONG) return false;
  if ((before->flags ^ u->now.flags) & SHARED) return false;
  bool own = before->cta == u->b->id;
  if (own && before->clock < u->b->warp[u->warp].known.clock[before->thread / PE_WARP_LANES]) return false;
  if (!own && u->now.flags & SHARED) return false; /* that CTA had its shared memory here */
  return !is_ordered(u, before);
}

/* The chunk of a word, locked if other workers may be there. */
static pe_chunk *enter(use *u, uint64_t word) {
  uint64_t number = word >> PE_SHADOW_LOG2;
  if (u->chunk && number == u->number) return u->chunk;
  leave(u);
  u->chunk = pe_shadow_chunk(&u->checker->race.shadow, word);
  u->number = number;
  u->locked = u->chunk && !(u->now.flags & SHARED);
  if (u->locked) pe_chunk_lock(u->chunk);
  return u->chunk;
}

/* One word of an access. */
static inline void visit(use *u, uint64_t word) {
  if (!enter(u, word)) return;
  cell *c = pe_shadow_cell(&u->checker->race.shadow, u->chunk, word);
  uint64_t first = u->address > word ? u->address - word : 0, end = u->address + u->event->size - word;
  u->now.bytes = (uint8_t)(0xf << first & (end < 4 ? (1u << end) - 1 : 0xf));
  bool writes = u->event->kind & PE_WRITE, beside_write = conflicts(u, &c->write);
  bool beside_read = writes && conflicts(u, &c->read);
  if (beside_write || beside_read) {
    access_record write = c->write, read = c->read;
    leave(u); /* what follows takes locks, and may fault */
    if (beside_write && ((write.flags & READ) || !is_equal_write(u, &write))) tell(u, &write);
    if (beside_read) tell(u, &read);
    if (!enter(u, word)) return;
  }
  if (writes)
    c->write = u->now;
  else
    c->read = u->now;
  if (!writes || !(u->now.flags & STRONG)) return;
  uint32_t released = release(&u->checker->race, u->b, u->warp);
  if (released) __atomic_store_n(&c->released, released, __ATOMIC_RELEASE);
}

/* The device address of a lane's access, and whether it is in shared memory; false: nobody else can be there. */
static bool locate(const pe_warp *w, const pe_memory_event *e, uint32_t lane, uint64_t *address, bool *shared) {
  *address = e->address[lane];
  *shared = e->space == PE_SHARED;
  if (*shared) {
    *address += w->shared_base;
    return pe_within(e->address[lane], e->size, w->shared_size);
  }
  if (e->space != PE_GENERIC && e->space != PE_GLOBAL) return false;
  if (*address - w->shared_base < w->shared_size) return *shared = true;
  bool private = *address - w->local_base < pe_product(w->local_size, PE_WARP_LANES) ||
                 *address - w->param_base < w->param_size || *address - w->const_base < w->const_size;
  return !private && pe_in_arena(w, *address, e->size);
}

static bool is_one_address(uint32_t mask, const uint64_t *address) {
  uint64_t first = mask ? address[__builtin_ctz(mask)] : 0, differ = 0;
  for (uint32_t left = mask; left; left &= left - 1) differ |= address[__builtin_ctz(left)] ^ first;
  return !differ;
}

void pe_race_access(pe_checker *checker, const pe_warp *w, const pe_memory_event *event, uint32_t mask) {
  block *b = (block *)(uintptr_t)w->watch;
  if (!b || event->space == PE_TEXEL || !event->size) return;
  use u = {.checker = checker, .b = b, .w = w, .event = event, .warp = w->warpid};
  warp_state *s = &b->warp[w->warpid];
  settle(&checker->race, b, w->warpid);
  if (event->order & PE_RELEASE) fence(b, w->warpid);
  if (event->kind == PE_READ && is_one_address(mask, event->address)) mask &= -mask; /* lanes do not race by reading */
  for (uint32_t left = mask; left; left &= left - 1) {
    bool shared;
    u.lane = (uint32_t)__builtin_ctz(left);
    if (!locate(w, event, u.lane, &u.address, &shared)) continue;
    u.now = (access_record){.cta = b->id, .clock = s->clock, .pos = event->pos};
    u.now.time = __atomic_load_n(&checker->race.time, __ATOMIC_RELAXED);
    bool publishes = event->order & PE_STRONG && event->kind & PE_WRITE && s->has_fenced;
    if (publishes) u.now.clock = s->fenced.clock[w->warpid] - 1; /* it is released itself */
    u.now.thread = (uint16_t)(w->warpid * PE_WARP_LANES + u.lane);
    u.now.flags = (uint8_t)((event->order & PE_STRONG ? STRONG : 0) | (shared ? SHARED : 0) |
                            (event->kind == PE_READ     ? READ
                             : event->kind == PE_UPDATE ? UPDATE
                                                        : 0));
    uint64_t end = u.address + (event->size < LONGEST ? event->size : LONGEST);
    if (u.locked == shared) leave(&u); /* from one memory to the other */
    for (uint64_t word = u.address & ~3ull; word < end; word += 4) visit(&u, word);
    if (!(event->order & PE_STRONG) || !(event->kind & PE_READ)) continue;
    s->reads |= 1u << u.lane;
    s->word[u.lane] = u.address & ~3ull;
  }
  leave(&u);
}
