/* launch.h: a launch, as its workers share it. */
#ifndef PTXEMU_LAUNCH_H
#define PTXEMU_LAUNCH_H
#include <pthread.h>
#include "arena.h"
#include "internal.h"
#include "observer.h"
#include "output.h"

/* What a worker needs of device memory: addresses of allocations, 0 when the launch needs none. */
typedef struct pe_windows {
  uint64_t shared, local;
} pe_windows;

typedef struct pe_worker pe_worker;
typedef struct pe_twin pe_twin;

#define PE_WORKSPACE_BYTES 256 /* of the grid barrier of a cooperative launch */

struct pe_launch {
  pe_arena *arena;
  const pe_observer *observer; /* or NULL */
  pe_config config;
  uint64_t params;    /* allocation of the parameter buffer */
  uint64_t workspace; /* and of the grid barrier's words in a cooperative launch */
  uint64_t local_stride;
  uint32_t cluster;        /* CTAs of one; they are run together */
  uint32_t cluster_shift;  /* log2 of the bytes from the shared window of one of its CTAs to the next */
  uint32_t threads, warps; /* of a CTA */
  uint32_t abreast;        /* CTAs whose warps lie one after another in a place, for one call of the code */
  uint64_t ctas, chunk, gridid;
  _Atomic uint32_t workers; /* that run the launch */
  uint32_t running;         /* of them, not finished; guarded by pe_lock, as the next four are */
  pe_worker *guest;         /* of the thread that has started it and takes part; or NULL */
  pe_worker *called;        /* whose threads have not come yet */
  pe_launch *next_watched;
  uint32_t watched; /* how often it was looked at */
  bool stepped;     /* by interpret.c: no threads, and one fiber for each CTA */
  _Atomic bool ended;
  bool orphaned; /* by a fork */
  pthread_cond_t end;
  pe_windows *windows; /* of each worker's first place, then of further ones; guarded by pe_lock */
  size_t window_count, window_room;
  pe_output output;
  pe_launch *next_in_flight;
  _Atomic uint64_t next_cta, completed, faults, grid_arrived, grid_phase;
  pe_range *ranges;             /* of an observed launch: PE_ALL_RANGES for each worker */
  _Atomic uint64_t charged;     /* to the arena, for stacks */
  _Atomic uint32_t begun;       /* workers that have taken their first CTA */
  _Atomic(pe_twin *) twins;     /* of workers that are done */
  _Atomic uint32_t handed_over; /* how many these are */
  _Atomic uint32_t asked;       /* of its warps, PE_ASKED_TO ... */
  _Atomic uint32_t exclusive, updating, no_memory;
  _Atomic uint32_t stuck_workers; /* whose CTAs only wait for mbarriers */
  pe_record record;               /* of the first fault */
  pe_record left;                 /* where a warp was when the launch was stopped */
  _Atomic uint32_t leaving;       /* that is known */
  _Atomic uint32_t stands;        /* that were found, and the first of them */
  pe_stand stand[PE_MOST_STANDS];
};

static inline bool pe_asked(pe_launch *launch, uint32_t what) {
  return atomic_load_explicit(&launch->asked, memory_order_relaxed) & what;
}

static inline bool pe_stopped(pe_launch *launch) { return pe_asked(launch, PE_ASKED_TO_STOP); }

static inline void pe_ask(pe_launch *launch, uint32_t what) { atomic_fetch_or(&launch->asked, what); }

/* Whether each warp has a fiber of its own; else one serves a worker. */
static inline bool pe_launch_has_fibers(const pe_launch *launch) {
  return launch->config.suspends && !launch->config.looped;
}

/* How many warps of a place have a local window each: warps that run one after another share one. */
static inline uint32_t pe_launch_windows_of_warps(const pe_launch *launch) {
  return launch->config.suspends || launch->stepped ? launch->warps * launch->abreast : 1;
}

/* Tell the observer that lanes arrive at a barrier. */
static inline void pe_tell_barrier(const pe_warp *w, uint32_t pos, uint32_t id, uint32_t mask, uint32_t how) {
  const pe_observer *observer = w->launch->observer;
  if (observer && observer->barrier) observer->barrier(observer->context, w, pos, id, mask, how);
}

static inline void pe_tell_left(const pe_warp *w) {
  const pe_observer *observer = w->launch->observer;
  if (observer && observer->left) observer->left(observer->context, w);
}

/* The context given at launch (a pe_su_context), or NULL. */
struct pe_su_context;
struct pe_su_context *pe_launch_surfaces(const pe_warp *w);

/* A launch without threads: its windows and its place among the launches in flight. 0, or an errno value. */
int pe_launch_open(pe_arena *arena, const pe_config *config, pe_launch **launch);
void pe_launch_close(pe_launch *launch);

/* Bytes from the shared memory of a CTA to that of the next one abreast. */
static inline uint64_t pe_launch_shared_stride(const pe_launch *launch) {
  return pe_round_up(launch->config.static_shared + launch->config.dynamic_shared, PE_WINDOW_ALIGNMENT);
}

/* Shared memory of all CTAs of a cluster, or abreast, which is one window. */
static inline uint64_t pe_launch_shared(const pe_launch *launch) {
  uint64_t size = launch->config.static_shared + launch->config.dynamic_shared;
  if (launch->abreast > 1) return launch->abreast * pe_launch_shared_stride(launch);
  return size && launch->cluster > 1 ? (uint64_t)launch->cluster << launch->cluster_shift : size;
}

/* Windows for a worker's first place, and for one more; `peer`: those of a place of its cluster, or NULL. */
pe_windows pe_launch_first_windows(pe_launch *launch, uint32_t worker);
bool pe_launch_windows(pe_launch *launch, const pe_windows *peer, pe_windows *out);

/* Count memory for stacks until the launch ends. False: the device does not have enough. Async-signal-safe. */
bool pe_launch_charge(pe_launch *launch, uint64_t bytes);
/* Stop the launch, which cannot go on without more memory. Async-signal-safe. */
void pe_launch_starved(pe_launch *launch);

/* The last worker is done. With pe_lock held. */
void pe_launch_finished(pe_launch *launch);
/* In the child of a fork: the launch's threads are the parent's, so that it is over here, and its memory is free. */
void pe_launch_orphaned(pe_launch *launch);

#endif
