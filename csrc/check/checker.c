/* checker.c: the observer that asks the checkers, and the list of what they find. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "checker.h"
#include "arena.h"
#include "fault.h"
#include "launch.h"
#include "place.h"
#include "surface_access.h"

/* ---- findings ---- */

static bool is_same_place(const pe_finding *a, const pe_finding *b) {
  return a->check == b->check && a->what == b->what && a->pos == b->pos && a->other_pos == b->other_pos &&
         a->note == b->note && a->kernel == b->kernel && a->launch == b->launch;
}

static int compare(const uint32_t a[3], const uint32_t b[3]) {
  for (int axis = 2; axis >= 0; axis--)
    if (a[axis] != b[axis]) return a[axis] < b[axis] ? -1 : 1;
  return 0;
}

/* Whether a thread comes first in the order of the grid. */
static bool is_before(const pe_thread_place *a, const pe_thread_place *b) {
  int block = compare(a->ctaid, b->ctaid);
  return block ? block < 0 : compare(a->tid, b->tid) < 0;
}

/* The finding of the same place, or a new one; NULL if there is no room.  With the mutex held. */
static pe_finding *find(pe_findings *findings, const pe_finding *wanted) {
  for (size_t i = 0; i < findings->count; i++)
    if (is_same_place(&findings->items[i], wanted)) return &findings->items[i];
  if (findings->count == findings->room && findings->room < PE_MAX_PLACES) {
    size_t room = findings->room ? 2 * findings->room : 8;
    if (room > PE_MAX_PLACES) room = PE_MAX_PLACES;
    pe_finding *grown = realloc(findings->items, room * sizeof *grown);
    if (grown) findings->items = grown, findings->room = room;
  }
  if (findings->count == findings->room) return NULL;
  pe_finding *made = &findings->items[findings->count++];
  *made = *wanted;
  made->count = 0;
  return made;
}

pe_thread_place pe_place_of(const pe_warp *w, uint32_t lane) {
  pe_thread_place place = {.warp = w->warpid};
  for (int axis = 0; axis < 3; axis++) {
    place.ctaid[axis] = w->ctaid[axis];
    place.tid[axis] = w->tid[axis][lane];
  }
  return place;
}

void pe_add_shared(const pe_warp *w, uint64_t address, pe_text *t) {
  uint32_t rank = pe_cluster_rank(w, address), at[3] = {0};
  uint64_t offset = pe_cluster_offset(w, address);
  if (address - offset == w->shared_base) {
    pe_add(t, "shared memory at 0x%" PRIx64, offset);
    return;
  }
  for (int axis = 0; axis < 3; axis++) {
    uint32_t extent = w->cluster_nctaid[axis];
    at[axis] = w->ctaid[axis] - w->ctaid[axis] % extent + rank % extent;
    rank /= extent;
  }
  pe_add(t, "shared memory of block (%u,%u,%u) at 0x%" PRIx64, at[0], at[1], at[2], offset);
}

void pe_report(pe_checker *checker, const pe_warp *w, uint32_t lane, pe_finding *finding) {
  finding->kernel = w->launch->config.kernel;
  finding->launch = w->launch->gridid;
  finding->thread = pe_place_of(w, lane);
  pe_keep_finding(checker, finding, 1);
}

void pe_keep_finding(pe_checker *checker, const pe_finding *finding, uint64_t more) {
  pe_findings *findings = &checker->findings;
  pthread_mutex_lock(&findings->mutex);
  pe_finding *kept = find(findings, finding);
  if (!kept) {
    findings->dropped++;
  } else {
    uint64_t count = kept->count + more;
    if (kept->count && is_before(&finding->thread, &kept->thread)) *kept = *finding;
    kept->count = count;
  }
  pthread_mutex_unlock(&findings->mutex);
}

int pe_checker_take(pe_checker *checker, pe_finding *out) {
  pe_findings *findings = &checker->findings;
  pthread_mutex_lock(&findings->mutex);
  int any = findings->count != 0;
  if (any) {
    *out = findings->items[0];
    memmove(findings->items, findings->items + 1, --findings->count * sizeof *findings->items);
  }
  pthread_mutex_unlock(&findings->mutex);
  return any;
}

void pe_checker_counts(pe_checker *checker, pe_checked *out) {
  pthread_mutex_lock(&checker->findings.mutex);
  *out = (pe_checked){
    .launches = checker->launches, .lost = pe_race_lost(&checker->race), .dropped = checker->findings.dropped};
  pthread_mutex_unlock(&checker->findings.mutex);
}

/* ---- the observer ---- */

/* Where all may be that lanes access, as compiled code knows it (ptxemu/lower/core/telling.py). */
static pe_range usual_range(const pe_checker *checker, const pe_warp *w, const pe_memory_event *e) {
  bool blanks = checker->checks & PE_CHECK_INIT;
  if (!w->ranges) return (pe_range){0};
  if (e->space == PE_GLOBAL || e->space == PE_GENERIC || e->space == PE_TEXEL) return *pe_range_of(w, e->pos);
  if (e->space != PE_SHARED) return (pe_range){0};
  pe_range kept = blanks ? *pe_shared_range(w) : (pe_range){w->shared_base, w->shared_size};
  return (pe_range){kept.first - w->shared_base, kept.size};
}

/* Whether an access is of no interest but to `race`. */
PE_WIDEST static bool is_usual(const pe_checker *checker, const pe_warp *w, const pe_memory_event *e) {
  pe_range in = usual_range(checker, w, e);
  uint64_t wild = 0, last = in.size - e->size, odd = e->align ? e->align - 1 : 0;
  if (in.size < e->size) return false;
  for (uint32_t i = 0; i < PE_WARP_LANES; i++)
    wild |= ((e->address[i] - in.first > last) | (e->address[i] & odd)) & (0 - (uint64_t)(e->mask >> i & 1));
  return !wild;
}

/* Whether `sync` looks at copies, as nobody else does. */
static bool looks_at_copies(const pe_checker *checker) {
  return checker->checks & PE_CHECK_SYNC && !(checker->checks & (PE_CHECK_RACE | PE_CHECK_INIT));
}

static uint32_t memory(void *context, const pe_warp *w, const pe_memory_event *event) {
  pe_checker *checker = context;
  if (looks_at_copies(checker)) pe_waits_access(checker, w, event);
  uint32_t mask = event->mask;
  bool others = checker->checks & (PE_CHECK_MEMORY | PE_CHECK_INIT);
  if (!others || is_usual(checker, w, event)) {
    if (checker->checks & PE_CHECK_RACE) pe_race_access(checker, w, event, mask);
    return mask;
  }
  if (checker->checks & PE_CHECK_MEMORY) {
    pe_require_stack(); /* it takes locks */
    mask = pe_stray_access(checker, w, event);
  }
  if (checker->checks & PE_CHECK_RACE) pe_race_access(checker, w, event, mask);
  if (checker->checks & PE_CHECK_INIT) pe_init_access(checker, w, event, mask);
  return mask;
}

static uint32_t pattern(void *context, const pe_warp *w, const pe_pattern_site *site, uint32_t mask, uint64_t base) {
  pe_checker *checker = context;
  if (looks_at_copies(checker) && site->space == PE_SHARED) return false;
  if (checker->checks & (PE_CHECK_MEMORY | PE_CHECK_INIT) && !pe_init_pattern(checker, w, site, mask, base)) return false;
  return !(checker->checks & PE_CHECK_RACE) || pe_race_pattern(checker, w, site, mask, base);
}

static void columns(void *context, const pe_warp *w, const pe_columns_event *event) {
  pe_require_stack();
  pe_init_columns(context, w, event);
}

static void listed(void *context, const pe_warp *w) {
  pe_require_stack();
  pe_race_listed(context, w);
}

static uint32_t claimed(void *context, const pe_warp *w, const pe_pattern_site *site, uint32_t number, uint32_t mask,
                        uint64_t base) {
  (void)context;
  return pe_race_claim(w, site, number, mask, base);
}

static uint64_t reach(void *context, const pe_warp *w, uint64_t address) {
  pe_checker *checker = context;
  pe_extent at;
  pe_range quiet;
  pe_require_stack();
  if (checker->checks & PE_CHECK_RACE)
    return pe_quiet_at(checker, w, address, &quiet) ? quiet.first + quiet.size - address : 0;
  if (!pe_extents_at(&checker->extents, address, &at) || !at.lasting) return 0;
  if (checker->checks & PE_CHECK_INIT && pe_init_has_blanks(&checker->init, at.address, at.size)) return 0;
  return at.address + at.size - address;
}

/* Whether `memory` and `init` have nothing to say of accesses of an allocation. */
static bool is_plain(pe_checker *checker, uint64_t address, uint64_t size) {
  pe_extent at;
  if (!(checker->checks & (PE_CHECK_MEMORY | PE_CHECK_INIT))) return true;
  bool whole = pe_extents_at(&checker->extents, address, &at) && at.lasting && at.address == address && at.size == size;
  return whole && !(checker->checks & PE_CHECK_INIT && pe_init_has_blanks(&checker->init, address, size));
}

static uint32_t apart(void *context, const pe_warp *w, uint64_t address, uint64_t size) {
  pe_checker *checker = context;
  pe_require_stack();
  if (!is_plain(checker, address, size)) return PE_SUMS_TOLD;
  if (!(checker->checks & PE_CHECK_RACE)) return PE_SUMS_UNTOLD;
  return pe_race_is_apart(checker, w, address, size) ? PE_SUMS_STAMPED : PE_SUMS_TOLD;
}

static void joined(void *context, const pe_launch *launch, uint64_t address, uint64_t size, uint32_t each,
                   const uint64_t *stamps) {
  pe_race_join(context, launch, address, size, each, stamps);
}

static void allocated(void *context, uint64_t address, uint64_t size, const pe_warp *w, uint32_t lane) {
  pe_checker *checker = context;
  if (w) {
    pe_heap_block block = {.size = size, .kernel = w->launch->config.kernel, .pos = w->pos, .thread = pe_place_of(w, lane)};
    pe_extents_allocated(&checker->extents, address, &block);
    if (checker->checks & PE_CHECK_INIT) pe_init_heap(&checker->init, address, size);
  }
  if (checker->checks & PE_CHECK_RACE && pe_extents_in_heap(&checker->extents, address))
    pe_race_forget(checker, address, size);
}

static void named(void *context, uint64_t address, uint64_t size, const char *name) {
  pe_checker *checker = context;
  pe_extents_named(&checker->extents, address, size, name);
}

void pe_checker_allow(pe_checker *checker, uint64_t address, uint64_t size, const char *name) {
  pe_extents_named(&checker->extents, address, size, name);
}

void pe_checker_forbid(pe_checker *checker, uint64_t address) { pe_extents_unnamed(&checker->extents, address); }

static void filled(void *context, uint64_t address, uint64_t size, uint32_t with) {
  pe_checker *checker = context;
  if (!(checker->checks & PE_CHECK_INIT)) return;
  if (with == PE_CONTENTS)
    pe_init_written(&checker->init, address, size);
  else
    pe_init_blank(&checker->init, address, size);
}

static void freed(void *context, uint64_t address) {
  pe_checker *checker = context;
  if (checker->checks & PE_CHECK_INIT) pe_init_freed(&checker->init, address);
  pe_extents_freed(&checker->extents, address);
}

static void begun(void *context, const pe_config *config) {
  pe_checker *checker = context;
  checker->launches++;
  if (checker->checks & PE_CHECK_RACE) pe_race_begun(checker, config);
}

static void ended(void *context, const pe_config *config, const pe_record *record) {
  pe_checker *checker = context;
  (void)record;
  if (checker->checks & PE_CHECK_RACE) pe_race_ended(checker, config);
  if (checker->checks & PE_CHECK_INIT) pe_init_launch_ended(&checker->init);
  pe_waits_launch_ended(&checker->waits);
}

static uint64_t block(void *context, const pe_warp *w, const pe_warp *first) {
  pe_checker *checker = context;
  if (checker->checks & PE_CHECK_INIT) pe_init_block(&checker->init, w);
  if (looks_at_copies(checker) && checker->waits.count) pe_waits_block(checker, w);
  return checker->checks & PE_CHECK_RACE ? pe_race_block(checker, w, first) : 0;
}

static void barrier(void *context, const pe_warp *w, uint32_t pos, uint32_t id, uint32_t mask, uint32_t how) {
  pe_checker *checker = context;
  pe_require_stack();
  if (checker->checks & PE_CHECK_SYNC) {
    pe_sync_barrier(checker, w, pos, id, mask, how);
    pe_sync_wait(checker, w, pos, id, mask, how);
  }
  if (checker->checks & PE_CHECK_RACE && !(how & PE_BARRIER_TOGETHER)) pe_race_barrier(checker, w, id, how);
}

static void left(void *context, const pe_warp *w) {
  pe_require_stack();
  pe_race_left(context, w);
}

static void together(void *context, const pe_warp *first, uint32_t warps) {
  pe_require_stack();
  pe_race_together(context, first, warps);
}

static void order(void *context, const pe_warp *w, uint32_t pos, uint32_t what, uint32_t mask) {
  pe_checker *checker = context;
  (void)pos;
  pe_require_stack();
  if (checker->checks & PE_CHECK_RACE) pe_race_order(checker, w, what, mask);
  if (looks_at_copies(checker)) pe_waits_order(checker, w, what, mask);
}

static void members(void *context, const pe_warp *w, uint32_t pos, uint32_t mask, const uint32_t *given) {
  pe_checker *checker = context;
  pe_require_stack();
  pe_sync_members(checker, w, pos, mask, given);
  pe_sync_come(checker, w, pos, mask, given);
}

static void unset(void *context, const pe_warp *w, uint32_t pos, uint32_t use, uint32_t mask) {
  pe_require_stack();
  pe_registers_unset(context, w, pos, use, mask);
}

/* Objects of Python go in any order when nobody has them any more. */
static void gone(void *context) {
  pe_checker *checker = context;
  checker->arena = checker->race.order.arena = NULL;
}

/* ---- life ---- */

static void end(pe_checker *checker) {
  if (checker->checks & PE_CHECK_RACE) pe_race_end(&checker->race);
  if (checker->checks & PE_CHECK_INIT) pe_init_end(&checker->init);
  pe_extents_end(&checker->extents);
  pe_members_end(&checker->members);
  pe_waits_end(&checker->waits);
  pthread_mutex_destroy(&checker->findings.mutex);
  free(checker->findings.items);
  free(checker);
}

pe_checker *pe_checker_create(pe_arena *arena, uint32_t checks) {
  pe_checker *checker = calloc(1, sizeof *checker);
  if (!checker || !pe_extents_init(&checker->extents, arena)) {
    free(checker);
    return NULL;
  }
  pthread_mutex_init(&checker->findings.mutex, NULL);
  pthread_mutex_init(&checker->members.mutex, NULL);
  pthread_mutex_init(&checker->waits.mutex, NULL);
  checker->arena = arena;
  checker->checks = checks;
  bool made = !(checks & PE_CHECK_RACE) || pe_race_init(&checker->race, arena);
  if (checks & PE_CHECK_INIT) made &= pe_init_begin(&checker->init, arena);
  if (!made) {
    end(checker);
    return NULL;
  }
  checker->observer = (pe_observer){
    .context = checker,
    .no_texels = !(checks & (PE_CHECK_RACE | PE_CHECK_INIT)),
    .no_whole_warps = true,
    .rows = !(checks & PE_CHECK_RACE),
    .memory = memory,
    .pattern = pattern,
    .listed = checks & PE_CHECK_RACE ? listed : NULL,
    .claimed = checks & PE_CHECK_RACE ? claimed : NULL,
    .columns = checks & PE_CHECK_INIT ? columns : NULL,
    .reach = checks & (PE_CHECK_MEMORY | PE_CHECK_INIT | PE_CHECK_RACE) ? reach : NULL,
    .apart = apart,
    .joined = joined,
    .allocated = allocated,
    .named = named,
    .filled = filled,
    .freed = freed,
    .barrier = checks & (PE_CHECK_SYNC | PE_CHECK_RACE) ? barrier : NULL,
    .left = checks & PE_CHECK_RACE ? left : NULL,
    .together = checks & PE_CHECK_RACE ? together : NULL,
    .order = order,
    .members = checks & PE_CHECK_SYNC ? members : NULL,
    .unset = checks & PE_CHECK_INIT ? unset : NULL,
    .block = block,
    .begun = begun,
    .ended = ended,
    .gone = gone,
  };
  pe_arena_observe(arena, &checker->observer);
  return checker;
}

void pe_checker_destroy(pe_checker *checker) {
  if (!checker) return;
  if (checker->arena) pe_arena_observe(checker->arena, NULL);
  end(checker);
}
