/* sched.c: a worker takes CTAs in ascending order and runs their warps on fibers.
 *
 * A kernel that never waits uses one fiber for all warps, one after another, and so does one whose code itself gives the
 * warps of a CTA turns between barriers; otherwise every warp of the CTA has its own fiber and they take turns.  When all
 * warps that can run spin on memory, they may wait for another CTA: the worker then runs the other CTAs that it holds, and
 * takes in one more when all of those spin too.  The CTAs of a cluster are taken together, and it is clusters that are held.
 */
#include <fenv.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif
#include "cta.h"
#include "fault.h"
#include "internal.h"
#include "launch.h"
#include "move.h"
#include "runtime.h"
#include "sync.h"
#include "twin.h"
#include "worker.h"

#define MAX_RESIDENT 64   /* CTAs that one worker holds, unless the launch is cooperative */
#define MAX_FIBERS 8192   /* of all workers together: stacks are mappings, which a process cannot have many of */
#define SPIN_TURNS 64     /* of a CTA that spins, before its worker turns to others */
#define PROMPT_ROUNDS 4   /* rounds in which everything spins before another CTA is taken in */
#define PATIENT_ROUNDS 64 /* and before the thread sleeps between rounds */
#define SLEEP_NANOSECONDS 20000
#define NO_SUBNORMALS (1u << 6 | 1u << 15) /* DAZ and FTZ of MXCSR */
#define STUCK_ROUNDS (1 << 14) /* rounds in which CTAs only wait for mbarriers that count as a deadlock: about a second */

_Thread_local pe_worker *pe_self __attribute__((tls_model("initial-exec")));

void pe_default_floating_point(void) {
  fesetenv(FE_DFL_ENV);
#if defined(__x86_64__)
  _mm_setcsr(0x1f80);
#elif defined(__aarch64__)
  __asm__ volatile("msr fpcr, %0" : : "r"(0ull));
#endif
}

/* Read subnormal numbers as zeros and make none, as the kernel's arithmetic does. */
static void zero_denormals(void) {
#if defined(__x86_64__)
  _mm_setcsr(_mm_getcsr() | NO_SUBNORMALS);
#endif
}

static void complete_ctas(pe_launch *launch, uint64_t count) {
  atomic_fetch_add_explicit(&launch->completed, count, memory_order_relaxed);
}

/* ---- kernels whose warps run one after another ---- */

static void run_cta_straight(pe_worker *worker, pe_kernel kernel) {
  pe_cta *cta = worker->cta;
  uint32_t calls = worker->launch->config.looped ? 1 : worker->launch->warps;
  for (uint32_t i = 0; i < calls; i++) {
    worker->running = &cta->warps[i];
    kernel(&cta->warps[i].warp);
  }
}

/* On the fiber: CTAs until there are none left. */
static void run_straight(void *argument) {
  pe_worker *worker = argument;
  pe_launch *launch = worker->launch;
  pe_kernel kernel = (pe_kernel)(uintptr_t)launch->config.kernel;
  pe_supply *s = &worker->supply;
  while (!pe_stopped(launch) && pe_supply_has_next(s, launch)) {
    uint64_t run = 0;
    while (s->next < s->last && !pe_stopped(launch)) {
      pe_move_if_asked(worker);
      uint32_t ctas = pe_cta_place(worker->cta, launch, s->next, s->last);
      s->next += ctas;
      run_cta_straight(worker, kernel);
      run += ctas;
    }
    complete_ctas(launch, run);
  }
  pe_fiber_leave(worker->cta->fibers[0]);
}

/* ---- the turns of warps that wait ---- */

static void run_warp(void *argument) {
  pe_warp_state *state = argument;
  pe_kernel kernel = (pe_kernel)(uintptr_t)state->warp.launch->config.kernel;
  kernel(&state->warp);
  pe_barriers_exit(pe_self->cta, state->warp.warpid);
  pe_fiber_leave(state->fiber);
}

static void start_cta(pe_cta *cta, const pe_launch *launch, uint64_t number) {
  pe_cta_place(cta, launch, number, number + 1);
  for (uint32_t i = 0; i < launch->warps; i++) pe_fiber_start(cta->fibers[i], run_warp, &cta->warps[i]);
}

/* Turns of one CTA until none of its warps can run, or every warp that can run has done nothing but spin for `patience` turns. */
static void run_turns(pe_worker *worker, pe_cta *cta, uint32_t patience) {
  worker->cta = cta;
  while (cta->runnable) {
    uint32_t turn = cta->runnable;
    cta->spinning = 0;
    for (uint32_t left = turn; left; left &= left - 1) {
      worker->running = &cta->warps[__builtin_ctz(left)];
      pe_fiber_resume(worker->running->fiber);
      worker->running = NULL;
      if (pe_stopped(worker->launch)) return;
    }
    if (cta->spinning == turn && cta->runnable == turn && --patience == 0) return;
  }
}

void pe_suspend(pe_warp *w) {
  pe_warp_state *state = (pe_warp_state *)w;
  pe_fiber_suspend(state->fiber);
  if (pe_stopped(w->launch)) pe_stop(w);
}

void pe_take_turns(pe_warp *w) {
  if (pe_stopped(w->launch)) pe_stop(w);
  if (pe_launch_has_fibers(w->launch)) pe_suspend(w);
}

void pe_yield(pe_warp *w) {
  pe_self->cta->spinning |= 1u << w->warpid;
  pe_take_turns(w);
}

/* ---- the CTAs that a worker holds ---- */

/* The windows of one more place: those of its cluster are side by side. */
static bool take_windows(pe_worker *worker, pe_windows *out) {
  uint32_t rank = worker->places % worker->launch->cluster;
  pe_windows peer = {0};
  if (!worker->places) {
    *out = pe_launch_first_windows(worker->launch, worker->index);
    return true;
  }
  if (rank) peer.shared = worker->place[worker->places - rank]->warps[0].warp.cluster_base;
  return pe_launch_windows(worker->launch, rank ? &peer : NULL, out);
}

bool pe_worker_add_place(pe_worker *worker) {
  pe_cta **place = realloc(worker->place, (worker->places + 1) * sizeof *place);
  if (!place) return false;
  worker->place = place;
  pe_cta *cta = pe_cta_create();
  pe_windows windows;
  if (!cta || !take_windows(worker, &windows) ||
      !pe_cta_prepare(cta, worker->launch, &windows, worker->places ? place[0] : NULL)) {
    pe_cta_destroy(cta);
    worker->crowded = true;
    return false;
  }
  place[worker->places++] = cta;
  return true;
}

/* Whether a CTA of a cluster, in consecutive places, has warps that have not exited, and such as can run. */
static bool is_live(pe_cta *const *cluster, uint32_t ctas) {
  for (uint32_t i = 0; i < ctas; i++)
    if (cluster[i]->live) return true;
  return false;
}

static bool is_runnable(pe_cta *const *cluster, uint32_t ctas) {
  for (uint32_t i = 0; i < ctas; i++)
    if (cluster[i]->runnable) return true;
  return false;
}

/* Places for a cluster that are not occupied, made if there are none; NULL when the worker may not or cannot hold more CTAs. */
static pe_cta **vacant_places(pe_worker *worker, uint32_t limit) {
  uint32_t ctas = worker->launch->cluster, first = 0;
  for (; first + ctas <= worker->places; first += ctas)
    if (!is_live(&worker->place[first], ctas)) return &worker->place[first];
  if (first && first + ctas > limit) return NULL;
  while (worker->places < first + ctas)
    if (worker->crowded || !pe_worker_add_place(worker)) return NULL;
  return &worker->place[first];
}

/* Places beyond the first are rarely needed and large. */
static void forget_places(pe_worker *worker) {
  while (worker->places > 1) pe_cta_destroy(worker->place[--worker->places]);
  worker->cta = worker->place[0]->peer = worker->place[0];
  worker->crowded = false;
}

static uint32_t resident_limit(const pe_launch *launch) {
  uint32_t limit = MAX_FIBERS / (launch->warps * launch->workers);
  return limit < 1 ? 1 : limit > MAX_RESIDENT ? MAX_RESIDENT : limit;
}

/* Start one more cluster. False: there is none, or no places for it. */
static bool admit(pe_worker *worker) {
  pe_launch *launch = worker->launch;
  pe_supply *s = &worker->supply;
  uint32_t ctas = launch->cluster;
  bool cooperative = launch->config.cooperative;
  if (!pe_supply_has_next(s, launch)) return false;
  pe_cta **place = vacant_places(worker, cooperative ? UINT32_MAX : resident_limit(launch));
  if (!place && (cooperative || worker->places < ctas)) pe_launch_starved(launch);
  if (!place) return false;
  for (uint32_t i = 0; i < ctas; i++) place[i]->peer = place[(i + 1) % ctas];
  for (uint32_t i = 0; i < ctas; i++) start_cta(place[i], launch, s->next++);
  return true;
}

/* Turns of the CTAs of a cluster until none can run, or all that can do nothing but spin. */
static void run_cluster(pe_worker *worker, pe_cta *const *cluster, uint32_t ctas, uint32_t patience) {
  uint32_t able, spinning;
  do {
    able = spinning = 0;
    for (uint32_t i = 0; i < ctas; i++) {
      if (!cluster[i]->runnable) continue;
      run_turns(worker, cluster[i], 1);
      if (pe_stopped(worker->launch)) return;
      able++;
      spinning += cluster[i]->runnable != 0;
    }
  } while (able && (spinning < able || --patience));
}

/* Nobody in the cluster can run: it is the barriers that its CTAs wait at. */
static void deadlock(pe_cta *const *cluster, uint32_t ctas) {
  uint32_t first = ctas;
  for (uint32_t i = ctas; i-- > 0;)
    if (cluster[i]->live && (first == ctas || cluster[i]->in_use || !cluster[first]->in_use)) first = i;
  pe_barriers_deadlock(cluster[first]);
}

/* Run every cluster that the worker holds until it spins; the number of those left. */
static uint32_t run_places(pe_worker *worker) {
  uint32_t left = 0, ctas = worker->launch->cluster, patience = worker->places > ctas ? 1 : SPIN_TURNS;
  for (uint32_t i = 0; i + ctas <= worker->places; i += ctas) {
    pe_cta **cluster = &worker->place[i];
    if (!is_live(cluster, ctas)) continue;
    if (ctas == 1)
      run_turns(worker, *cluster, patience);
    else
      run_cluster(worker, cluster, ctas, patience);
    if (pe_stopped(worker->launch)) return 0;
    if (!is_live(cluster, ctas))
      complete_ctas(worker->launch, ctas);
    else if (is_runnable(cluster, ctas))
      left++;
    else
      deadlock(cluster, ctas);
  }
  return left;
}

/* Everything spins: what it waits for happens on another thread, if there is one. */
static void be_patient(const pe_launch *launch, uint32_t rounds) {
  if (launch->workers == 1) return;
  if (rounds < PATIENT_ROUNDS)
    sched_yield();
  else
    nanosleep(&(struct timespec){.tv_nsec = SLEEP_NANOSECONDS}, NULL);
}

/* ---- waits for mbarriers that never end ---- */

/* Whether every CTA that the worker holds has only waited for mbarriers, for long. */
static bool is_stuck(const pe_worker *worker) {
  uint32_t live = 0, stuck = 0;
  for (uint32_t i = 0; i < worker->places; i++) {
    pe_cta *cta = worker->place[i];
    if (!cta->live) continue;
    cta->stuck_rounds = cta->runnable & ~cta->polling ? 0 : cta->stuck_rounds + 1;
    live++;
    stuck += cta->stuck_rounds >= STUCK_ROUNDS;
  }
  return live && live == stuck;
}

static void set_stuck(pe_worker *worker, bool stuck) {
  if (stuck != worker->stuck) atomic_fetch_add(&worker->launch->stuck_workers, stuck ? 1 : -1u);
  worker->stuck = stuck;
}

/* Nothing but the threads of the launch can end the waits: if all its workers are stuck, they are deadlocked. */
static void look_for_deadlock(pe_worker *worker) {
  pe_launch *launch = worker->launch;
  set_stuck(worker, is_stuck(worker));
  if (!worker->stuck) return;
  pe_lock();
  bool all = atomic_load(&launch->stuck_workers) >= launch->running;
  pe_unlock();
  for (uint32_t i = 0; all && i < worker->places; i++) {
    if (!worker->place[i]->polling) continue;
    pe_mbarriers_deadlock(worker->place[i]);
    return;
  }
}

/* Whether a worker whose CTAs all spin should take in another. Not before every worker has had its first. */
static bool wants_more(const pe_launch *launch, uint32_t rounds) {
  return (rounds >= PROMPT_ROUNDS || launch->config.cooperative) && atomic_load(&launch->begun) == launch->workers;
}

static void record_place(const pe_worker *worker) {
  for (uint32_t i = 0; i < worker->places; i++) {
    const pe_cta *cta = worker->place[i];
    if (cta->live) pe_record_place(&cta->warps[__builtin_ctz(cta->runnable ? cta->runnable : cta->live)].warp);
    pe_record_stands(cta);
  }
}

static void run_waiting(pe_worker *worker) {
  pe_launch *launch = worker->launch;
  uint32_t rounds = 0, held = admit(worker);
  atomic_fetch_add(&launch->begun, 1);
  while (!pe_stopped(launch)) {
    bool admitted = (held == 0 || wants_more(launch, rounds)) && admit(worker);
    if (!admitted && held == 0) break;
    uint32_t before = held + admitted;
    held = run_places(worker);
    look_for_deadlock(worker);
    if (admitted || held < before)
      rounds = 0;
    else
      be_patient(launch, rounds++);
  }
  set_stuck(worker, false);
  if (pe_stopped(launch)) record_place(worker);
}

/* ---- a worker's part of a launch ---- */

/* False: there is no memory. */
static bool prepare(pe_worker *worker) {
  pe_launch *launch = worker->launch;
  worker->supply = (pe_supply){0};
  memset(worker->reaches, 0, sizeof worker->reaches);
  pe_windows windows = pe_launch_first_windows(launch, worker->index);
  if (pe_cta_prepare(worker->cta, launch, &windows, NULL)) return true;
  pe_launch_starved(launch);
  return false;
}

static bool go_on(pe_worker *worker) {
  worker->has_moved = false;
  pe_fiber_resume(worker->cta->fibers[0]);
  return !worker->has_moved;
}

bool pe_worker_run(pe_worker *worker) {
  pe_default_floating_point();
  if (worker->launch->config.daz) zero_denormals();
  if (worker->has_moved) return go_on(worker);
  if (!prepare(worker)) return true;
  if (!pe_launch_has_fibers(worker->launch)) {
    pe_fiber_start(worker->cta->fibers[0], run_straight, worker);
    return go_on(worker);
  }
  run_waiting(worker);
  forget_places(worker);
  return true;
}

void pe_worker_end(pe_worker *worker) {
  worker->running = NULL;
  pe_cta_rest(worker->cta);
  pe_twin_hand_over(worker);
}
