/* twin.c: a worker's own copy of what it adds to. */
#if defined(__GNUC__) && !defined(__clang__)
#ifdef __OPTIMIZE__
#pragma GCC optimize("O3") /* the loops over words become vectors */
#endif
#endif
#include "twin.h"
#include <stdlib.h>
#include <string.h>
#include "arena.h"
#include "checked.h"
#include "exclusive.h"
#include "fault.h"
#include "place.h"
#include "surface_access.h"

/* Words that are added without letting another launch begin. */
enum { PART = 1 << 13 };
/* A larger one is not in the worker's own cache. */
static const uint64_t SMALL = 1 << 18;
/* Larger ones of all workers together must be in the cache that they share. */
static const uint64_t MOST_BYTES = 1 << 24;
/* With fewer sums, there is less to gain than it takes to make one. */
static const uint64_t FEWEST_SUMS = 1 << 14;
/* As much as one sum with a lock takes it to clear a word of a twin and to add it. */
enum { WORDS_OF_SUM = 8 };
static const uint64_t NEVER = UINT64_MAX;

struct pe_twin {
  uint64_t first, bytes; /* of the allocation, which is held */
  uint8_t *copy;
  uint64_t *stamps; /* of its words, or NULL */
  uint32_t size;    /* of a word */
  uint32_t how;     /* PE_SUMS_TOLD ... */
  pe_twin *next;
  pe_atom_lanes waiting; /* of a warp, until their lines have come */
  uint64_t places[PE_WARP_LANES];
  uint64_t values[PE_WARP_LANES];
};

static uint64_t whole_words(const pe_twin *twin) { return twin->bytes & ~(uint64_t)(twin->size - 1); }

static pe_apart place_of(const pe_twin *twin) {
  bool wide = twin->size == sizeof(uint64_t);
  pe_apart at = {.first = twin->first, .bytes = twin->bytes, .twin = (uint64_t)(uintptr_t)twin->copy};
  if (twin->how != PE_SUMS_TOLD) at.sums[wide] = whole_words(twin);
  if (twin->stamps) at.stamps[wide] = (uint64_t)(uintptr_t)twin->stamps;
  return at;
}

/* Memory that other processes have must be seen to change; observers are told of the addresses in the allocation. */
static bool allowed(const pe_launch *launch) {
  return !launch->config.host_memory && !launch->stepped && !pe_arena_shares(launch->arena);
}

/* How many sums a worker makes before it is to have a twin: none if each thread is to add to a word of its own, else as many as show
 * that it pays. Observers expect a twin from the first sum on, or none. */
static uint64_t sums_before(const pe_launch *launch, uint64_t bytes, uint32_t size) {
  uint64_t threads = pe_product(launch->ctas, launch->threads), words = bytes / size;
  if (bytes > SMALL && pe_product(bytes, launch->workers) > MOST_BYTES) return NEVER;
  if (threads >= FEWEST_SUMS && threads >= words) return 0;
  if (launch->observer) return NEVER;
  return words / WORDS_OF_SUM > FEWEST_SUMS ? words / WORDS_OF_SUM : FEWEST_SUMS;
}

/* Behind a twin are words for lanes that add to none of its own, one for each. */
enum { WASTE = PE_WARP_LANES * sizeof(uint64_t) };

/* To be given to free(). Whole pages are made for `bytes`, and those behind them are apart from these. */
static void *zeros(pe_launch *launch, uint64_t bytes, uint64_t behind) {
  bool large = bytes >= PE_HUGE_PAGE;
  uint64_t pages = large ? pe_round_up(bytes, PE_HUGE_PAGE) : bytes, whole = pe_sum(pages, behind);
  if (!pe_launch_charge(launch, whole)) return NULL;
  if (!large) return calloc(1, whole);
  void *made;
  if (posix_memalign(&made, PE_HUGE_PAGE, whole)) return NULL;
  pe_prefer_huge_pages(made, pages);
  return memset(made, 0, bytes + behind);
}

static void free_twin(pe_twin *twin) {
  free(twin->copy);
  free(twin->stamps);
  free(twin);
}

static bool fill(pe_twin *twin, const pe_warp *w) {
  const pe_observer *observer = w->launch->observer;
  bool asks = observer && observer->apart;
  twin->how = asks ? observer->apart(observer->context, w, twin->first, twin->bytes) : PE_SUMS_UNTOLD;
  twin->copy = zeros(w->launch, twin->bytes, WASTE);
  if (!twin->copy || twin->how != PE_SUMS_STAMPED) return twin->copy != NULL;
  twin->stamps = zeros(w->launch, pe_product(twin->bytes / twin->size, sizeof *twin->stamps), 0);
  return twin->stamps != NULL;
}

static pe_twin *make(const pe_warp *w, uint64_t address, uint32_t size) {
  pe_launch *launch = w->launch;
  pe_allocation found;
  if (!allowed(launch) || !pe_arena_find(launch->arena, address, &found)) return NULL;
  if (sums_before(launch, found.size, size) == NEVER) return NULL;
  if (!pe_arena_hold(launch->arena, found.address, found.size)) return NULL;
  pe_twin *twin = malloc(sizeof *twin);
  if (twin) *twin = (pe_twin){.first = found.address, .bytes = found.size, .size = size};
  if (twin && fill(twin, w)) return twin;
  if (twin) free_twin(twin);
  pe_arena_unhold(launch->arena, found.address);
  return NULL;
}

static uint64_t first_left(const pe_launch *launch, uint64_t address, uint32_t size) {
  pe_allocation found;
  return pe_arena_find(launch->arena, address, &found) ? sums_before(launch, found.size, size) : NEVER;
}

/* Whether a worker without a twin has one, now that it is to make some sums. */
static bool gets(pe_worker *self, const pe_warp *w, uint64_t address, uint32_t size, uint32_t sums) {
  if (!self->decided) self->sums_left = first_left(w->launch, address, size);
  self->decided = true;
  if (self->sums_left == NEVER) return false;
  if (self->sums_left > sums) {
    self->sums_left -= sums;
    return false;
  }
  self->sums_left = NEVER;
  self->twin = make(w, address, size);
  if (self->twin) self->apart = place_of(self->twin);
  return self->twin != NULL;
}

/* Bit i: the twin has the word at address[i], at own[i]. */
PE_WIDE static uint32_t place_lanes(const pe_twin *twin, uint32_t size, const uint64_t *restrict address,
                                    uint64_t *restrict own) {
  uint64_t first = twin->first, shift = (uint64_t)(uintptr_t)twin->copy - first;
  uint64_t sums = size == twin->size ? whole_words(twin) : 0;
  uint32_t inside = 0;
  for (uint32_t i = 0; i < PE_WARP_LANES; i++) own[i] = address[i] + shift;
  for (uint32_t i = 0; i < PE_WARP_LANES; i++) inside |= (uint32_t)pe_in_window(address[i], first, sums) << i;
  return inside;
}

static void add_waiting(pe_twin *twin) {
  pe_atom_run(&twin->waiting);
  twin->waiting.mask = 0;
}

/* The lines of a twin that the worker's own cache does not hold are asked for one warp before they are needed. */
static void add_later(pe_twin *twin, const pe_atom_lanes *lanes) {
  PE_FOR_LANES(i, lanes->mask) __builtin_prefetch((const void *)(uintptr_t)lanes->addr[i], 1);
  add_waiting(twin);
  memcpy(twin->places, lanes->addr, sizeof twin->places);
  memcpy(twin->values, lanes->a, (size_t)PE_WARP_LANES * twin->size);
  twin->waiting = *lanes;
  twin->waiting.addr = twin->places;
  twin->waiting.a = (const uint8_t *)twin->values;
}

uint32_t pe_twin_add(const pe_warp *w, const pe_atom_lanes *added, uint32_t mask) {
  pe_worker *self = pe_self;
  uint32_t size = pe_atom_bytes(added->type);
  if (!self || !mask) return 0;
  uint64_t first = added->addr[__builtin_ctz(mask)];
  if (!self->twin && !gets(self, w, first, size, (uint32_t)__builtin_popcount(mask))) return 0;
  uint64_t own[PE_WARP_LANES] = {0};
  pe_atom_lanes lanes = *added;
  lanes.mask = place_lanes(self->twin, size, added->addr, own) & mask;
  lanes.one_address &= lanes.mask == mask;
  lanes.locked = false;
  lanes.addr = own;
  if (lanes.mask && self->twin->bytes > SMALL)
    add_later(self->twin, &lanes);
  else
    pe_atom_run(&lanes);
  return lanes.mask;
}

/* ---- sums come to memory -------------------------------------------------------------------------------------------- */

/* Words to which nothing has been added stay untouched: they may be anybody's. */
#define DEFINE_ADD(T, NAME)                                                                  \
  PE_WIDEST static void add_##NAME(T *restrict to, const T *restrict from, uint64_t count) { \
    for (uint64_t i = 0; i < count; i++)                                                     \
      if (from[i]) to[i] += from[i];                                                         \
  }                                                                                          \
  static void add_locked_##NAME(T *to, const T *from, uint64_t count) {                      \
    for (uint64_t i = 0; i < count; i++)                                                     \
      if (from[i]) __atomic_fetch_add(&to[i], from[i], __ATOMIC_RELAXED);                    \
  }
DEFINE_ADD(uint32_t, u32)
DEFINE_ADD(uint64_t, u64)

static void add_part(const pe_twin *twin, uint64_t start, uint64_t count, bool locked) {
  void *to = (void *)(uintptr_t)(twin->first + start);
  const void *from = twin->copy + start;
  if (twin->size == sizeof(uint32_t))
    (locked ? add_locked_u32 : add_u32)(to, from, count);
  else
    (locked ? add_locked_u64 : add_u64)(to, from, count);
}

static void add(pe_launch *launch, const pe_twin *twin) {
  uint64_t words = twin->bytes / twin->size;
  for (uint64_t done = 0; done < words; done += PART) {
    uint64_t count = words - done < PART ? words - done : PART;
    bool exclusive = pe_exclusive_enter(launch);
    add_part(twin, done * twin->size, count, !exclusive);
    if (exclusive) pe_exclusive_leave(launch);
  }
}

static void add_and_free(pe_launch *launch, pe_twin *twin) {
  add(launch, twin);
  pe_arena_unhold(launch->arena, twin->first);
  free_twin(twin);
}

static void tell_joined(const pe_launch *launch, const pe_twin *twin) {
  const pe_observer *observer = launch->observer;
  if (twin->stamps) observer->joined(observer->context, launch, twin->first, whole_words(twin), twin->size, twin->stamps);
}

static pe_twin *take_from(pe_worker *worker) {
  pe_twin *twin = worker->twin;
  if (twin) {
    add_waiting(twin);
    tell_joined(worker->launch, twin);
  }
  worker->twin = NULL;
  worker->apart = (pe_apart){0};
  return twin;
}

void pe_twin_settle(const pe_warp *w) {
  pe_require_stack();
  pe_twin *twin = take_from(pe_self);
  if (twin) add_and_free(w->launch, twin);
}

static void add_all(pe_launch *launch) {
  pe_flight_last_worker(launch);
  for (pe_twin *twin = atomic_load(&launch->twins), *next; twin; twin = next) {
    next = twin->next;
    add_and_free(launch, twin);
  }
}

void pe_twin_hand_over(pe_worker *worker) {
  pe_launch *launch = worker->launch;
  pe_twin *twin = take_from(worker);
  worker->decided = false;
  if (twin) {
    twin->next = atomic_load(&launch->twins);
    while (!atomic_compare_exchange_weak(&launch->twins, &twin->next, twin)) {
    }
  }
  bool last = atomic_fetch_add(&launch->handed_over, 1) + 1 == launch->workers;
  if (last && atomic_load(&launch->twins)) add_all(launch);
}
