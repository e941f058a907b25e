/* twin.c: a worker's own copy of what it adds to. */
#include "twin.h"
#include <stdlib.h>
#include "arena.h"
#include "checked.h"
#include "exclusive.h"
#include "fault.h"
#include "place.h"
#include "surface_access.h"

/* Words that are added without letting another launch begin. */
enum { PART = 1 << 13 };
/* A larger one is not in the cache: then its misses cost what locks do. */
static const uint64_t MOST_BYTES = 1 << 18;
/* With fewer threads, there is less to gain than it takes to make one. */
static const uint64_t FEWEST_THREADS = 1 << 14;

struct pe_twin {
  uint64_t first, bytes; /* of the allocation, which is held */
  uint8_t *copy;
  uint64_t *stamps; /* of its words, or NULL */
  uint32_t size;    /* of a word */
  uint32_t how;     /* PE_SUMS_TOLD ... */
  pe_twin *next;
};

static uint64_t whole_words(const pe_twin *twin) { return twin->bytes & ~(uint64_t)(twin->size - 1); }

static pe_apart place_of(const pe_twin *twin) {
  bool wide = twin->size == sizeof(uint64_t);
  pe_apart at = {.first = twin->first, .bytes = twin->bytes, .twin = (uint64_t)(uintptr_t)twin->copy};
  if (twin->how != PE_SUMS_TOLD) at.sums[wide] = whole_words(twin);
  if (twin->stamps) at.stamps[wide] = (uint64_t)(uintptr_t)twin->stamps;
  return at;
}

/* As if each thread added to a word of its own. */
static bool worthwhile(const pe_launch *launch, uint64_t bytes, uint32_t size) {
  uint64_t threads = pe_product(launch->ctas, launch->threads);
  return bytes <= MOST_BYTES && threads >= FEWEST_THREADS && threads >= bytes / size;
}

/* Memory that other processes have must be seen to change; observers are told of the addresses in the allocation. */
static bool allowed(const pe_launch *launch) { return !launch->config.host_memory && !launch->stepped; }

static void *zeros(pe_launch *launch, uint64_t bytes) { return pe_launch_charge(launch, bytes) ? calloc(1, bytes) : NULL; }

static void free_twin(pe_twin *twin) {
  free(twin->copy);
  free(twin->stamps);
  free(twin);
}

static bool fill(pe_twin *twin, const pe_warp *w) {
  const pe_observer *observer = w->launch->observer;
  bool asks = observer && observer->apart;
  twin->how = asks ? observer->apart(observer->context, w, twin->first, twin->bytes) : PE_SUMS_UNTOLD;
  twin->copy = zeros(w->launch, twin->bytes);
  if (!twin->copy || twin->how != PE_SUMS_STAMPED) return twin->copy != NULL;
  twin->stamps = zeros(w->launch, pe_product(twin->bytes / twin->size, sizeof *twin->stamps));
  return twin->stamps != NULL;
}

static pe_twin *make(const pe_warp *w, uint64_t address, uint32_t size) {
  pe_launch *launch = w->launch;
  pe_allocation found;
  if (!allowed(launch) || pe_arena_shares(launch->arena)) return NULL;
  if (!pe_arena_find(launch->arena, address, &found) || !worthwhile(launch, found.size, size)) return NULL;
  if (!pe_arena_hold(launch->arena, found.address, found.size)) return NULL;
  pe_twin *twin = malloc(sizeof *twin);
  if (twin) *twin = (pe_twin){.first = found.address, .bytes = found.size, .size = size};
  if (twin && fill(twin, w)) return twin;
  if (twin) free_twin(twin);
  pe_arena_unhold(launch->arena, found.address);
  return NULL;
}

static void ask(pe_worker *self, const pe_warp *w, uint64_t address, uint32_t size) {
  self->twin = make(w, address, size);
  self->apart = self->twin ? place_of(self->twin) : (pe_apart){0};
  self->asked = true;
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

uint32_t pe_twin_lanes(const pe_warp *w, uint32_t size, uint32_t mask, const uint64_t address[PE_WARP_LANES],
                       uint64_t own[PE_WARP_LANES]) {
  pe_worker *self = pe_self;
  if (!self || !mask) return 0;
  if (!self->asked) ask(self, w, address[__builtin_ctz(mask)], size);
  return self->twin ? place_lanes(self->twin, size, address, own) & mask : 0;
}

/* ---- sums come to memory -------------------------------------------------------------------------------------------- */

/* Words to which nothing has been added stay untouched: they may be anybody's. */
#define DEFINE_ADD(T, NAME)                                                   \
  static void add_##NAME(T *to, const T *from, uint64_t count, bool locked) { \
    if (locked) {                                                             \
      for (uint64_t i = 0; i < count; i++)                                    \
        if (from[i]) __atomic_fetch_add(&to[i], from[i], __ATOMIC_RELAXED);   \
    } else {                                                                  \
      for (uint64_t i = 0; i < count; i++)                                    \
        if (from[i]) to[i] += from[i];                                        \
    }                                                                         \
  }
DEFINE_ADD(uint32_t, u32)
DEFINE_ADD(uint64_t, u64)

static void add_part(const pe_twin *twin, uint64_t start, uint64_t count, bool locked) {
  void *to = (void *)(uintptr_t)(twin->first + start);
  const void *from = twin->copy + start;
  if (twin->size == sizeof(uint32_t))
    add_u32(to, from, count, locked);
  else
    add_u64(to, from, count, locked);
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
  if (twin) tell_joined(worker->launch, twin);
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
  worker->asked = false;
  if (twin) {
    twin->next = atomic_load(&launch->twins);
    while (!atomic_compare_exchange_weak(&launch->twins, &twin->next, twin)) {
    }
  }
  bool last = atomic_fetch_add(&launch->handed_over, 1) + 1 == launch->workers;
  if (last && atomic_load(&launch->twins)) add_all(launch);
}
