/* launch.c: the life of a launch, from Python's side. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "launch.h"
#include "arena.h"
#include "exclusive.h"
#include "guest.h"
#include "internal.h"
#include "move.h"
#include "pool.h"
#include "processor.h"
#include "runtime.h"
#include "signals.h"
#include "spread.h"
#include "watch.h"

#define MAX_GRID_X 0x7fffffffu
#define MAX_GRID_YZ 0xffffu
#define CHUNKS_PER_WORKER 16
#define MAX_CHUNK 64
#define BRIEF_INSTRUCTIONS (1u << 20) /* as they are estimated, of all warps */
#define ROWS_PER_WORKER 4             /* of the grid, at least, where workers take whole ones */
#define RANKS_PER_WORKER 2            /* of CTAs abreast */
#define MAX_ROW 256
#define SHARED_ABREAST (48u << 10) /* bytes of shared memory of CTAs abreast, at most */
#define LOCAL_ABREAST (1u << 20)   /* and of local memory, so that no launch needs much more than one CTA at a time would */
#define COOPERATIVE_WARPS 16384    /* each has a stack, and a process cannot have many mappings */

static uint64_t ctas_of(const pe_config *config) { return (uint64_t)config->grid[0] * config->grid[1] * config->grid[2]; }

static uint32_t extent_of_cluster(const pe_config *config, int axis) {
  return config->cluster[axis] ? config->cluster[axis] : 1;
}

static uint64_t ctas_of_cluster(const pe_config *config) {
  return (uint64_t)extent_of_cluster(config, 0) * extent_of_cluster(config, 1) * extent_of_cluster(config, 2);
}

/* Whether the part that is to be run is one of the grid, whose CTAs then cannot wait for all others. */
static bool is_valid_part(const pe_config *config) {
  uint64_t ctas = ctas_of(config);
  if (!config->blocks) return config->first == 0;
  bool clusters = config->first % ctas_of_cluster(config) == 0 && config->blocks % ctas_of_cluster(config) == 0;
  return clusters && !config->cooperative && config->first < ctas && config->blocks <= ctas - config->first;
}

/* Whether clusters are of a size that there is, and make up the grid. */
static bool is_valid_cluster(const pe_config *config) {
  for (int axis = 0; axis < 3; axis++)
    if (extent_of_cluster(config, axis) > PE_MAX_CLUSTER || config->grid[axis] % extent_of_cluster(config, axis))
      return false;
  return ctas_of_cluster(config) <= PE_MAX_CLUSTER;
}

static bool is_valid(const pe_config *config) {
  uint64_t threads = 1;
  for (int axis = 0; axis < 3; axis++) {
    if (config->block[axis] == 0 || config->block[axis] > PE_MAX_THREADS) return false;
    if (config->grid[axis] == 0 || config->grid[axis] > (axis ? MAX_GRID_YZ : MAX_GRID_X)) return false;
    threads *= config->block[axis];
  }
  return threads <= PE_MAX_THREADS && config->kernel != 0 && is_valid_cluster(config) && is_valid_part(config);
}

/* Whether a device has windows as large as that. */
static bool is_affordable(const pe_config *config) {
  return config->local_bytes <= PE_MAX_LOCAL && pe_sum(config->static_shared, config->dynamic_shared) <= PE_MAX_SHARED;
}

static _Atomic uint64_t launches;

static uint32_t log_of(uint64_t least) {
  uint32_t shift = 8;
  while ((1ull << shift) < least) shift++;
  return shift;
}

/* Together they have no more warps than one may have. Whoever observes a launch is told of one CTA at a time. */
static uint32_t ctas_abreast(const pe_launch *launch) {
  if (!launch->config.abreast || launch->cluster > 1 || launch->observer) return 1;
  uint64_t most = PE_MAX_WARPS / launch->warps, shared = pe_launch_shared_stride(launch);
  uint64_t local = launch->local_stride * PE_WARP_LANES * launch->warps;
  if (most * shared > SHARED_ABREAST) most = SHARED_ABREAST / shared;
  if (most * local > LOCAL_ABREAST) most = LOCAL_ABREAST / local;
  return most < 1 ? 1 : (uint32_t)most;
}

static void derive(pe_launch *launch) {
  pe_config *config = &launch->config;
  for (int axis = 0; axis < 3; axis++) config->cluster[axis] = extent_of_cluster(config, axis);
  launch->cluster = (uint32_t)ctas_of_cluster(config);
  uint64_t shared = config->static_shared + config->dynamic_shared;
  launch->cluster_shift = log_of(shared < PE_WINDOW_ALIGNMENT ? PE_WINDOW_ALIGNMENT : shared);
  launch->threads = config->block[0] * config->block[1] * config->block[2];
  launch->warps = pe_warps_of_rows(config->block, pe_row_lanes(config->block, config->spread));
  launch->ctas = config->blocks ? config->blocks : ctas_of(config);
  launch->gridid = atomic_fetch_add(&launches, 1) + 1;
  launch->local_stride = pe_round_up(config->local_bytes, 16);
  launch->abreast = ctas_abreast(launch);
}

static void choose_workers(pe_launch *launch) {
  uint64_t wanted = launch->config.workers ? launch->config.workers : pe_cpu_count();
  if (wanted > launch->ctas / launch->cluster) wanted = launch->ctas / launch->cluster;
  launch->workers = pe_pool_offer((uint32_t)wanted);
}

static uint64_t multiple_from(uint64_t least, uint64_t of) { return (least + of - 1) / of * of; }

/* Code that goes along rows of CTAs is best given whole ones, if there are enough of them. */
static uint64_t whole_rows(const pe_launch *launch, uint64_t chunk) {
  uint64_t row = launch->config.grid[0];
  bool enough = launch->ctas / row >= (uint64_t)launch->workers * ROWS_PER_WORKER;
  return enough && row <= MAX_ROW ? multiple_from(chunk, row) : chunk;
}

/* CTAs abreast are best taken together, as far as there are several such ranks for each of some workers. */
static uint64_t whole_ranks(const pe_launch *launch, uint64_t chunk) {
  uint64_t rank = launch->abreast, ranks = launch->workers > 1 ? (uint64_t)launch->workers * RANKS_PER_WORKER : 1;
  if (rank > launch->ctas / ranks) rank = launch->ctas / ranks;
  return rank > 1 ? multiple_from(chunk, rank) : chunk;
}

static void choose_chunk(pe_launch *launch) {
  uint64_t chunk = launch->ctas / ((uint64_t)launch->workers * CHUNKS_PER_WORKER);
  launch->chunk = chunk < 1 || launch->config.spins ? 1 : chunk > MAX_CHUNK ? MAX_CHUNK : chunk;
  if (launch->config.rows) launch->chunk = whole_rows(launch, launch->chunk);
  if (launch->abreast > 1) launch->chunk = whole_ranks(launch, launch->chunk);
  launch->chunk = multiple_from(launch->chunk, launch->cluster);
}

/* ---- device memory of a launch ---- */

static bool take_window(pe_launch *launch, uint64_t size, const char *name, bool counted, uint64_t *address) {
  if (size == 0) return true;
  *address = pe_window_take(launch->arena, size, name, counted);
  return *address != 0;
}

/* A shared window and its margins. */
static bool take_shared(pe_launch *launch, uint64_t size, bool counted, uint64_t *address) {
  if (size == 0) return true;
  if (!take_window(launch, size + 2 * PE_WINDOW_MARGIN, "shared memory", counted, address)) return false;
  *address += PE_WINDOW_MARGIN;
  return true;
}

/* Windows of one more place, at the end of the list; shared memory unless it `joins` that of others.  Local memory counts, and all
 * of a `further` place; the shared memory of a worker's first is bounded as that of a multiprocessor. */
static bool take_windows(pe_launch *launch, bool further, bool joins) {
  uint64_t shared = joins ? 0 : pe_launch_shared(launch);
  uint64_t local = pe_product(launch->local_stride, PE_WARP_LANES * pe_launch_windows_of_warps(launch));
  if (launch->window_count == launch->window_room) {
    size_t room = 2 * launch->window_room + launch->workers;
    pe_windows *windows = realloc(launch->windows, room * sizeof *windows);
    if (!windows) return false;
    launch->windows = windows;
    launch->window_room = room;
  }
  pe_windows *added = &launch->windows[launch->window_count++];
  *added = (pe_windows){0};
  return take_shared(launch, shared, further, &added->shared) &&
         take_window(launch, local, "local memory", true, &added->local);
}

pe_windows pe_launch_first_windows(pe_launch *launch, uint32_t worker) {
  pe_lock();
  pe_windows found = launch->windows[worker];
  pe_unlock();
  return found;
}

bool pe_launch_windows(pe_launch *launch, const pe_windows *peer, pe_windows *out) {
  pe_lock();
  bool taken = take_windows(launch, true, peer != NULL);
  if (taken) *out = launch->windows[launch->window_count - 1];
  if (taken && peer) out->shared = peer->shared;
  pe_unlock();
  return taken;
}

/* A window with these contents. */
static bool take_filled(pe_launch *launch, const void *contents, uint64_t size, const char *name, uint64_t *out) {
  if (!take_window(launch, size, name, false, out)) return false;
  if (size) memcpy((void *)(uintptr_t)*out, contents, size);
  if (size) pe_arena_filled(launch->arena, *out, size, PE_CONTENTS);
  return true;
}

static bool take_memory(pe_launch *launch) {
  static const uint8_t zeros[PE_WORKSPACE_BYTES];
  const pe_config *config = &launch->config;
  if (!take_filled(launch, config->params, config->params_size, "kernel parameters", &launch->params)) return false;
  if (config->cooperative && !take_filled(launch, zeros, sizeof zeros, "grid barrier", &launch->workspace)) return false;
  uint32_t places = 0;
  while (places < launch->workers && take_windows(launch, false, false)) places++;
  launch->workers = places; /* as many blocks at once as there is memory for */
  return places > 0;
}

bool pe_launch_charge(pe_launch *launch, uint64_t bytes) {
  if (!pe_arena_charge(launch->arena, bytes)) return false;
  atomic_fetch_add(&launch->charged, bytes);
  return true;
}

void pe_launch_starved(pe_launch *launch) {
  atomic_store(&launch->no_memory, 1);
  pe_ask(launch, PE_ASKED_TO_STOP);
}

static bool take_ranges(pe_launch *launch) {
  if (!launch->observer || !launch->observer->memory) return true;
  launch->ranges = calloc((size_t)launch->workers * PE_ALL_RANGES, sizeof *launch->ranges);
  return launch->ranges != NULL;
}

static void return_memory(pe_launch *launch) {
  if (launch->params) pe_window_return(launch->arena, launch->params);
  if (launch->workspace) pe_window_return(launch->arena, launch->workspace);
  for (size_t i = 0; i < launch->window_count; i++) {
    if (launch->windows[i].shared) pe_window_return(launch->arena, launch->windows[i].shared - PE_WINDOW_MARGIN);
    if (launch->windows[i].local) pe_window_return(launch->arena, launch->windows[i].local);
  }
  free(launch->windows);
  free(launch->ranges);
  launch->ranges = NULL;
  launch->params = launch->workspace = 0;
  launch->windows = NULL;
  launch->window_count = launch->window_room = 0;
}

/* ---- the public functions ---- */

/* Take what a launch needs. With pe_lock held. */
static bool begin(pe_launch *launch) {
  if (!take_memory(launch) || !take_ranges(launch)) {
    return_memory(launch);
    return false;
  }
  pe_signals_ensure();
  pe_flight_begin(launch);
  return true;
}

/* As a guest if the thread is `here` to take part. With pe_lock held. */
static int start(pe_launch *launch, bool here) {
  if (here && pe_launch_is_brief(&launch->config))
    launch->workers = 1;
  else
    choose_workers(launch);
  if (!begin(launch)) return ENOMEM;
  choose_chunk(launch);
  if (here && pe_watch_begin(launch) && !pe_pool_take(launch)) pe_watch_end(launch);
  if (pe_pool_assign(launch) > 0) return 0;
  pe_flight_end(launch);
  return_memory(launch);
  return EAGAIN;
}

static void tell_begun(const pe_launch *launch) {
  const pe_observer *observer = launch->observer;
  if (observer && observer->begun) observer->begun(observer->context, &launch->config);
}

static void tell_ended(const pe_launch *launch) {
  const pe_observer *observer = launch->observer;
  if (observer && observer->ended) observer->ended(observer->context, &launch->config, &launch->record);
}

/* A launch that has nothing yet. 0, or an errno value. */
static int create(pe_arena *arena, const pe_config *config, pe_launch **out) {
  *out = NULL;
  if (!is_valid(config)) return EINVAL;
  if (!is_affordable(config)) return ENOMEM;
  pe_launch *launch = calloc(1, sizeof *launch);
  if (!launch) return ENOMEM;
  launch->arena = arena;
  launch->config = *config;
  launch->observer = pe_arena_observer(arena);
  derive(launch);
  if (config->cooperative && launch->ctas * launch->warps > COOPERATIVE_WARPS) {
    free(launch);
    return E2BIG;
  }
  pe_condition_init(&launch->end);
  pthread_mutex_init(&launch->output.mutex, NULL);
  tell_begun(launch);
  *out = launch;
  return 0;
}

/* Small: it takes less time than to wake other threads, more or less, which is some ten microseconds. */
int pe_launch_is_brief(const pe_config *config) {
  uint64_t ctas = pe_product(pe_product(config->grid[0], config->grid[1]), config->grid[2]);
  uint64_t warps = pe_warps_of_rows(config->block, pe_row_lanes(config->block, config->spread));
  bool waits = config->suspends || config->spins || config->cooperative;
  uint64_t all = pe_product(ctas, warps);
  return config->brief && !waits && (all <= PE_MAX_WARPS || pe_product(all, config->brief) <= BRIEF_INSTRUCTIONS);
}

/* There is nothing left to begin, and so the others are at their last CTAs: they end soon, unless they wait for a processor. */
static void look_out(const pe_launch *launch) {
  uint64_t end = pe_nanoseconds(CLOCK_MONOTONIC) + PE_LOOK_OUT_NANOSECONDS;
  while (!launch->ended && pe_nanoseconds(CLOCK_MONOTONIC) < end) pe_breathe();
}

/* Whether the thread that starts a launch may run a part of it. */
static bool may_join(const pe_launch *launch) {
  const pe_config *config = &launch->config;
  return config->joins && (config->over || !config->ended) && !pe_launch_has_fibers(launch) && pe_move_is_possible(launch);
}

int pe_launch_start(pe_arena *arena, const pe_config *config, pe_launch **out) {
  pe_guest guest;
  int error = create(arena, config, out);
  if (error) return error;
  bool here = may_join(*out) && pe_guest_enter(&guest);
  pe_lock();
  error = start(*out, here);
  bool joined = (*out)->guest != NULL;
  pe_unlock();
  bool over = joined && pe_pool_join(*out);
  if (joined && !over && !config->ended) look_out(*out);
  if (config->over) *config->over = over;
  if (here) pe_guest_leave(&guest);
  if (error) {
    tell_ended(*out);
    free(*out);
    *out = NULL;
  }
  return error;
}

int pe_launch_open(pe_arena *arena, const pe_config *config, pe_launch **out) {
  int error = create(arena, config, out);
  if (error) return error;
  pe_launch *launch = *out;
  launch->stepped = true;
  atomic_store(&launch->next_cta, launch->ctas);                             /* the caller gives them out */
  launch->config.suspends = launch->config.looped = launch->config.rows = 0; /* nothing waits within a call */
  launch->abreast = 1;
  launch->workers = 1;
  pe_lock();
  bool begun = begin(launch);
  pe_unlock();
  if (begun) return 0;
  tell_ended(launch);
  free(launch);
  *out = NULL;
  return ENOMEM;
}

void pe_launch_close(pe_launch *launch) {
  pe_lock();
  pe_launch_finished(launch);
  pe_unlock();
  pe_launch_destroy(launch);
}

void pe_launch_finished(pe_launch *launch) {
  pe_flight_end(launch);
  pe_arena_discharge(launch->arena, atomic_load(&launch->charged));
  launch->ended = true;
  pthread_cond_broadcast(&launch->end);
}

/* What the threads guarded with locks of the launch may be half done; what pe_lock guards is whole. */
void pe_launch_orphaned(pe_launch *launch) {
  pe_condition_init(&launch->end);
  launch->output = (pe_output){.mutex = PTHREAD_MUTEX_INITIALIZER};
  pe_arena_discharge(launch->arena, atomic_load(&launch->charged));
  return_memory(launch);
  launch->ended = launch->orphaned = true;
}

int pe_launch_wait(pe_launch *launch, uint32_t milliseconds) {
  struct timespec deadline = pe_after(milliseconds);
  pe_lock();
  if (milliseconds == UINT32_MAX)
    while (!launch->ended) pe_wait(&launch->end);
  while (!launch->ended && pe_wait_until(&launch->end, &deadline)) {
  }
  int ended = launch->ended;
  pe_unlock();
  return ended;
}

void pe_launch_request_stop(pe_launch *launch) { pe_ask(launch, PE_ASKED_TO_STOP); }

uint64_t pe_launch_number(const pe_launch *launch) { return launch->gridid; }

uint64_t pe_launch_completed(const pe_launch *launch) {
  return atomic_load_explicit(&launch->completed, memory_order_relaxed);
}

void pe_launch_result(pe_launch *launch, pe_record *record, pe_counters *counters) {
  const pe_record *found = launch->record.kind ? &launch->record : &launch->left;
  if (record) *record = *found;
  *counters = (pe_counters){
    .kind = found->kind,
    .ctas = pe_launch_completed(launch),
    .faults = atomic_load(&launch->faults),
    .output_dropped = launch->output.dropped,
    .workers = launch->workers,
    .no_memory = atomic_load(&launch->no_memory),
    .orphaned = launch->orphaned,
    .ended = true,
    .output = pe_launch_has_output(launch),
  };
}

int pe_launch_run(pe_arena *arena, const pe_config *config, uint32_t milliseconds, pe_waited *waited) {
  int error = pe_launch_start(arena, config, &waited->launch);
  if (error) return error;
  waited->number = pe_launch_number(waited->launch);
  waited->counters = (pe_counters){0};
  if (pe_launch_wait(waited->launch, milliseconds)) pe_launch_result(waited->launch, NULL, &waited->counters);
  return 0;
}

void pe_launch_destroy(pe_launch *launch) {
  tell_ended(launch);
  pe_lock();
  return_memory(launch);
  pe_unlock();
  free(launch->output.text);
  pthread_mutex_destroy(&launch->output.mutex);
  pthread_cond_destroy(&launch->end);
  if (launch->config.release) launch->config.release(launch->config.keeps);
  free(launch);
}

void pe_launch_end(pe_launch **launch) {
  if (!*launch) return;
  pe_launch_request_stop(*launch);
  pe_lock();
  while (!(*launch)->ended) pe_wait(&(*launch)->end);
  pe_unlock();
  pe_launch_destroy(*launch);
  *launch = NULL;
}

void pe_waited_end(pe_waited *waited) { pe_launch_end(&waited->launch); }

struct pe_su_context *pe_launch_surfaces(const pe_warp *w) { return w->launch->config.surfaces; }
