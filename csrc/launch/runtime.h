/* runtime.h: the structures of a launch and the functions between the scheduler's files. */
#ifndef PTXEMU_RUNTIME_H
#define PTXEMU_RUNTIME_H
#include <pthread.h>
#include "async.h"
#include "fiber.h"
#include "heap.h"
#include "internal.h"
#include "observer.h"

#define PE_BARRIERS 16

/* ---- runtime.c: one lock for everything that is rare; reset in the child of a fork -------------------------------- */

void pe_runtime_init(void);
/* A kernel whose stack has no room for what follows faults before. */
void pe_lock(void);
void pe_unlock(void);
void pe_wait(pthread_cond_t *condition);
/* False when the deadline (CLOCK_MONOTONIC) has passed. */
bool pe_wait_until(pthread_cond_t *condition, const struct timespec *deadline);
void pe_condition_init(pthread_cond_t *condition);

/* ---- a launch ----------------------------------------------------------------------------------------------------- */

/* What a worker needs of device memory: addresses of allocations, 0 when the launch needs none. */
typedef struct pe_windows {
  uint64_t shared, local;
} pe_windows;

typedef struct pe_output {
  pthread_mutex_t mutex;
  char *text;
  size_t size, room;
  uint64_t dropped;
} pe_output;

struct pe_launch {
  pe_arena *arena;
  const pe_observer *observer; /* or NULL */
  pe_config config;
  uint64_t params;    /* allocation of the parameter buffer */
  uint64_t workspace; /* and of the grid barrier's words in a cooperative launch */
  uint64_t local_stride;
  uint32_t threads, warps; /* of a CTA */
  uint64_t ctas, chunk, gridid;
  uint32_t workers; /* threads that run the launch */
  uint32_t running; /* of them, not finished; guarded by pe_lock */
  bool stepped;     /* by interpret.c: no threads, and one fiber for each CTA */
  bool ended;
  pthread_cond_t end;
  pe_windows *windows; /* of each worker's first place, then of further ones; guarded by pe_lock */
  size_t window_count, window_room;
  pe_output output;
  pe_launch *next_in_flight;
  _Atomic uint64_t next_cta, completed, faults, grid_arrived, grid_phase;
  _Atomic uint64_t charged; /* to the arena, for stacks */
  _Atomic uint32_t begun;   /* workers that have taken their first CTA */
  _Atomic uint32_t stop, exclusive, updating, no_memory;
  _Atomic uint32_t stuck_workers; /* whose CTAs only wait for mbarriers */
  pe_record record;               /* of the first fault */
  pe_record left;                 /* where a warp was when the launch was stopped */
  _Atomic uint32_t leaving;       /* that is known */
};

static inline bool pe_stopped(pe_launch *launch) { return atomic_load_explicit(&launch->stop, memory_order_relaxed) != 0; }

/* How many warps of a CTA have a local window each: warps that run one after another share one. */
static inline uint32_t pe_launch_windows_of_warps(const pe_launch *launch) {
  return launch->config.suspends || launch->stepped ? launch->warps : 1;
}

/* ---- a CTA and its warps, owned by one worker --------------------------------------------------------------------- */

typedef struct pe_barrier_state {
  uint32_t expected; /* threads */
  uint32_t arrived;  /* threads */
  uint32_t waiting;  /* warps */
  uint32_t pos;      /* of the last arrival that waits */
  uint32_t form;     /* what the first arrival was: PE_FORM_* */
  bool whole_cta;    /* count 0: warps that exit lower `expected` */
  uint32_t popc, any, all;
} pe_barrier_state;

enum { PE_FORM_SYNC, PE_FORM_RED };

typedef struct pe_warp_state {
  pe_warp warp; /* first: JIT code's pe_warp pointer is a pointer to this */
  pe_fiber *fiber;
  uint32_t result;                /* of the barrier.red it waited for */
  const pe_mbarrier_site *awaits; /* the last wait for an mbarrier that failed, of this lane and address */
  int32_t awaiting_lane;
  uint64_t awaited;
  uint32_t cluster_arrived;            /* lanes that have arrived at barrier.cluster in this phase ... */
  uint32_t cluster_passes;             /* and in the last one, without having waited yet */
  uint32_t at_barrier[PE_BARRIERS];    /* lanes that wait at a barrier one by one */
  uint32_t released;                   /* lanes whose barrier is complete, and that have not gone on yet */
  uint32_t lane_result[PE_WARP_LANES]; /* of the barrier.red that each waits for */
} pe_warp_state;

typedef struct pe_cta {
  uint32_t live;            /* warps that have not exited */
  uint32_t runnable;        /* of them, those that do not wait */
  uint32_t spinning;        /* warps that ended their turn in a loop that spins */
  uint32_t in_use;          /* barriers with arrivals; all others are zero */
  uint32_t polling;         /* warps whose last wait for an mbarrier failed, since anything happened */
  uint32_t stuck_rounds;    /* rounds of turns since then in which all warps that could run did that */
  bool cluster_arrivals;    /* some lane has arrived at barrier.cluster */
  uint32_t cluster_waiting; /* warps that wait at it */
  uint32_t cluster_pos;     /* of the last wait */
  pe_barrier_state barriers[PE_BARRIERS];
  pe_fiber *fibers[PE_MAX_WARPS];
  pe_warp_state *warps; /* PE_MAX_WARPS of them */
} pe_cta;

typedef struct pe_worker pe_worker;
struct pe_worker {
  pthread_cond_t wake;
  pe_launch *launch; /* assigned; guarded by pe_lock */
  uint32_t index;    /* in the launch */
  pe_worker *next_idle;
  pe_warp_state *running; /* the warp on a fiber now, NULL while the scheduler runs; read by the signal handler */
  pe_cta *cta;            /* the one that runs */
  pe_cta **place;         /* what the worker holds: at least one, most of the time no more */
  uint32_t places;
  bool crowded;  /* there was no memory for one more */
  bool stuck;    /* counted in launch->stuck_workers */
  char *scratch; /* printf's text */
};

/* The worker of this thread; NULL on other threads.  Initial-exec: the signal handler must not allocate. */
extern _Thread_local pe_worker *pe_self __attribute__((tls_model("initial-exec")));

/* ---- pool.c ------------------------------------------------------------------------------------------------------- */

/* How many threads a launch that wants up to `wanted` gets now (at least 1). With pe_lock held. */
uint32_t pe_pool_offer(uint32_t wanted);
/* Hand the launch to up to launch->workers threads; the number that took it. With pe_lock held. */
uint32_t pe_pool_assign(pe_launch *launch);
void pe_pool_forget(void);
uint32_t pe_cpu_count(void);

/* ---- sched.c ------------------------------------------------------------------------------------------------------ */

void pe_worker_run(pe_worker *worker);
/* Round to nearest, keep subnormals, trap nothing: whatever the creator of this thread had set. */
void pe_default_floating_point(void);
/* Suspend the running warp until the scheduler resumes it; leaves the kernel if the launch was stopped. */
void pe_suspend(pe_warp *w);

/* ---- cta.c -------------------------------------------------------------------------------------------------------- */

pe_cta *pe_cta_create(void);
void pe_cta_destroy(pe_cta *cta);
/* Make a vacant place ready for CTAs of a launch. One beyond the first of a worker gets stacks as large as those of `first` have
 * become, all of which counts as memory of the launch. False: there is no memory for its stacks. */
bool pe_cta_prepare(pe_cta *cta, pe_launch *launch, const pe_windows *windows, const pe_cta *first);
/* The launch has ended: give the memory back that its stacks took, but for what most kernels need. */
void pe_cta_rest(pe_cta *cta);
/* Put CTA `number` of the grid there: all its warps can run. */
void pe_cta_place(pe_cta *cta, const pe_launch *launch, uint64_t number);

/* ---- barrier.c ---------------------------------------------------------------------------------------------------- */

void pe_barriers_reset(pe_cta *cta);
/* A warp has exited: barriers that wait for the whole CTA may be complete now. */
void pe_barriers_exit(pe_cta *cta, uint32_t warpid);
/* No warp can run: record the deadlock. */
void pe_barriers_deadlock(pe_cta *cta);
/* Something happened in the CTA that a warp may have waited for. */
void pe_cta_progress(pe_cta *cta);

/* ---- mbarrier.c --------------------------------------------------------------------------------------------------- */

/* All warps that can run have waited for mbarriers for long: record the deadlock. */
void pe_mbarriers_deadlock(pe_cta *cta);

/* ---- cluster.c ---------------------------------------------------------------------------------------------------- */

/* If all lanes have arrived at barrier.cluster or exited, begin its next phase. */
bool pe_cluster_complete(pe_cta *cta);

/* ---- launch.c ----------------------------------------------------------------------------------------------------- */

/* A launch without threads: its windows and its place among the launches in flight. 0, or an errno value. */
int pe_launch_open(pe_arena *arena, const pe_config *config, pe_launch **launch);
void pe_launch_close(pe_launch *launch);

/* Windows for a worker's first place, and for one more. */
pe_windows pe_launch_first_windows(pe_launch *launch, uint32_t worker);
bool pe_launch_windows(pe_launch *launch, pe_windows *out);

/* Count memory for stacks until the launch ends. False: the device has not so much. Async-signal-safe. */
bool pe_launch_charge(pe_launch *launch, uint64_t bytes);
/* Stop the launch, which cannot go on without more memory. Async-signal-safe. */
void pe_launch_starved(pe_launch *launch);

/* The last worker is done. With pe_lock held. */
void pe_launch_finished(pe_launch *launch);

/* ---- exclusive.c: with pe_lock held -------------------------------------------------------------------------------- */

void pe_exclusive_init(void);
void pe_flight_begin(pe_launch *launch);
void pe_flight_end(pe_launch *launch);
void pe_flight_forget(void);

/* ---- fault.c ------------------------------------------------------------------------------------------------------ */

/* Keep the fault if it is the launch's first, count it, and stop the launch. Async-signal-safe. */
void pe_record_fault(pe_warp *w, const pe_record *fault);
/* Where a warp was last seen: accesses and calls leave their position; a kernel without either has left none. */
static inline uint32_t pe_last_position(const pe_warp *w) { return w->pos ? w->pos : PE_NO_POS; }
/* On a fiber: fault unless the runtime's functions find room on its stack, so that nothing overflows with a lock held. */
void pe_require_stack(void);
/* Abandon the running warp's context: back to the scheduler. */
noreturn void pe_leave(void);
/* The same because the launch was stopped. */
noreturn void pe_stop(pe_warp *w);
/* The launch was stopped: keep where the warp is if it is the first of which that is known. */
void pe_record_place(const pe_warp *w);

/* ---- signals.c ---------------------------------------------------------------------------------------------------- */

/* Install the handlers, or put them in front again if somebody replaced them. With pe_lock held. */
void pe_signals_ensure(void);
/* Give this thread an alternate stack. */
void pe_signals_thread(void);

/* ---- arena.c ------------------------------------------------------------------------------------------------------ */

/* Who is told what happens, or NULL. */
const pe_observer *pe_arena_observer(const pe_arena *arena);

static inline void pe_tell_allocated(const pe_observer *observer, uint64_t address, uint64_t size) {
  if (observer && observer->allocated) observer->allocated(observer->context, address, size);
}

static inline void pe_tell_freed(const pe_observer *observer, uint64_t address) {
  if (observer && observer->freed) observer->freed(observer->context, address);
}

/* Bytes from the address to the end of the live allocation that contains it, or 0. */
uint64_t pe_arena_remaining(pe_arena *arena, uint64_t address);

/* The heap of kernels' malloc, made at the first use; NULL if there is no memory for it. With pe_lock held. */
pe_heap *pe_arena_heap(pe_arena *arena);

/* Count host memory that a launch takes elsewhere against the capacity. False: there is not enough. Async-signal-safe. */
bool pe_arena_charge(pe_arena *arena, uint64_t bytes);
void pe_arena_discharge(pe_arena *arena, uint64_t bytes);

/* Memory of launches, recycled without unmapping it; `counted` against the capacity or not. With pe_lock held. */
uint64_t pe_window_take(pe_arena *arena, uint64_t size, const char *name, bool counted);
void pe_window_return(pe_arena *arena, uint64_t address);

/* ---- output.c ----------------------------------------------------------------------------------------------------- */

void pe_output_append(pe_launch *launch, const char *text, size_t size);

#endif
