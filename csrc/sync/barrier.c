/* barrier.c: the sixteen barriers of a CTA (PTX ISA, "bar, barrier"), those of its warpgroups, and the one of a cooperative grid.
 *
 * A CTA runs on one thread, so nothing here needs a lock.  Threads are counted; warps wait.
 */
#include <stdio.h>
#include <string.h>
#include "cta.h"
#include "fault.h"
#include "launch.h"
#include "matrix.h"
#include "sync.h"
#include "tmem.h"
#include "worker.h"

#define WARPGROUP 4 /* warps */
#define COUNTLESS "an arrival that does not wait needs a thread count"

static pe_warp_state *state_of(pe_warp *w) { return (pe_warp_state *)w; }

void pe_cta_progress(pe_cta *cta) {
  pe_cta *each = cta;
  do each->polling = each->stuck_rounds = 0;
  while ((each = each->peer) != cta);
}

void pe_barriers_reset(pe_cta *cta) {
  for (; cta->in_use; cta->in_use &= cta->in_use - 1) {
    uint32_t id = (uint32_t)__builtin_ctz(cta->in_use);
    for (uint32_t waiting = cta->barriers[id].waiting; waiting; waiting &= waiting - 1)
      cta->warps[__builtin_ctz(waiting)].at_barrier[id] = 0;
    cta->barriers[id] = (pe_barrier_state){0};
  }
}

/* All threads that a barrier for the whole CTA waits for: full warps that have not exited. */
static uint32_t live_threads(const pe_cta *cta) { return (uint32_t)__builtin_popcount(cta->live) * PE_WARP_LANES; }

static uint32_t result_of(const pe_barrier_state *barrier, uint32_t op) {
  return op == 0 ? barrier->popc : op == 1 ? barrier->all : barrier->any;
}

/* A result, where the operation was until now. */
static void give_result(const pe_barrier_state *barrier, uint32_t *slot) { *slot = result_of(barrier, *slot); }

/* The lanes of a warp that wait one by one may go on. */
static void release_lanes(pe_warp_state *state, uint32_t id, const pe_barrier_state *barrier) {
  for (uint32_t lanes = state->at_barrier[id]; lanes; lanes &= lanes - 1)
    give_result(barrier, &state->lane_result[__builtin_ctz(lanes)]);
  state->released |= state->at_barrier[id];
  state->at_barrier[id] = 0;
}

/* The barrier is complete: release who waits and make it ready for its next use. */
static void complete(pe_cta *cta, pe_barrier_state *barrier) {
  uint32_t id = (uint32_t)(barrier - cta->barriers);
  for (uint32_t waiting = barrier->waiting; waiting; waiting &= waiting - 1) {
    pe_warp_state *state = &cta->warps[__builtin_ctz(waiting)];
    if (state->at_barrier[id])
      release_lanes(state, id, barrier);
    else
      give_result(barrier, &state->result);
  }
  cta->runnable |= barrier->waiting;
  pe_cta_progress(cta);
  cta->in_use &= ~(1u << id);
  *barrier = (pe_barrier_state){0};
}

void pe_barriers_exit(pe_cta *cta, uint32_t warpid) {
  cta->live &= ~(1u << warpid);
  cta->runnable &= ~(1u << warpid);
  pe_cta_progress(cta);
  pe_cluster_complete(cta);
  for (uint32_t in_use = cta->in_use; in_use; in_use &= in_use - 1) {
    pe_barrier_state *barrier = &cta->barriers[__builtin_ctz(in_use)];
    if (!barrier->whole_cta) continue;
    barrier->expected = live_threads(cta);
    if (barrier->waiting && barrier->arrived >= barrier->expected) complete(cta, barrier);
  }
}

void pe_barriers_deadlock(pe_cta *cta) {
  for (uint32_t id = 0; id < PE_MEETINGS; id++) {
    const pe_barrier_state *barrier = &cta->barriers[id];
    if (!barrier->waiting) continue;
    pe_record fault = {.kind = PE_DEADLOCK, .pos = barrier->pos, .lane = -1};
    snprintf(fault.note, sizeof fault.note, "%s %u waits for %u threads, %u arrived and no warp can run",
             id < PE_BARRIERS ? "barrier" : "warpgroup", id % PE_BARRIERS, barrier->expected, barrier->arrived);
    pe_record_fault(&cta->warps[__builtin_ctz(barrier->waiting)].warp, &fault);
    return;
  }
  if (pe_tmem_deadlock(cta)) return;
  pe_record fault = {.kind = PE_DEADLOCK, .pos = cta->cluster_pos, .lane = -1, .note = "barrier.cluster: no warp can run"};
  pe_record_fault(&cta->warps[__builtin_ctz(cta->live)].warp, &fault);
}

static noreturn void misuse(pe_warp *w, uint32_t pos, uint32_t id, const char *what) {
  char note[128];
  snprintf(note, sizeof note, "barrier %u: %s", id, what);
  pe_fault_note(w, PE_BARRIER_MISUSE, pos, -1, PE_GENERIC, 0, 0, note);
}

/* What is wrong with an arrival, or NULL. */
static const char *objection(const pe_barrier_state *barrier, uint32_t count, uint32_t threads, uint32_t arrival) {
  if (count % PE_WARP_LANES) return "the thread count is not a multiple of the warp size";
  if (!barrier->expected) return NULL;
  if (barrier->whole_cta != (count == 0) || (count && barrier->expected != count))
    return "the thread count differs from that of an earlier arrival";
  if (barrier->arrival != arrival) return "reductions and other arrivals are mixed";
  if (barrier->arrived + threads > barrier->expected) return "more threads arrive than it was set up for";
  return NULL;
}

/* The threads that an arrival adds. Lanes that do not exist or have exited count with the whole warp. */
static uint32_t arriving_threads(const pe_warp *w, uint32_t mask, bool per_thread, bool whole_cta) {
  if (!per_thread) return PE_WARP_LANES;
  uint32_t absent = ~w->active | w->exited;
  return (uint32_t)__builtin_popcount(whole_cta && (mask | absent) == PE_ALL_LANES ? PE_ALL_LANES : mask);
}

/* Count an arrival; the barrier's state, or NULL if it completed the barrier. */
static pe_barrier_state *arrive(pe_warp *w, uint32_t pos, uint32_t id, uint32_t count, uint32_t threads, uint32_t arrival) {
  pe_cta *cta = pe_self->cta;
  pe_barrier_state *barrier = &cta->barriers[id];
  const char *wrong = objection(barrier, count, threads, arrival);
  if (wrong) misuse(w, pos, id, wrong);
  if (!barrier->expected) {
    barrier->whole_cta = count == 0;
    barrier->expected = count ? count : live_threads(cta);
    barrier->arrival = arrival;
    barrier->all = 1;
    cta->in_use |= 1u << id;
  }
  barrier->arrived += threads;
  barrier->pos = pos;
  return barrier;
}

/* The same at one that an instruction names. */
static pe_barrier_state *arrive_at(pe_warp *w, uint32_t pos, uint32_t id, uint32_t count, uint32_t threads,
                                   uint32_t arrival) {
  if (id >= PE_BARRIERS) misuse(w, pos, id, "there are 16 barriers, 0 to 15");
  return arrive(w, pos, id, count, threads, arrival);
}

/* Add the predicates of a reduction. */
static void combine(pe_barrier_state *barrier, uint32_t mask, uint32_t pred) {
  barrier->popc += (uint32_t)__builtin_popcount(pred & mask);
  barrier->any |= (pred & mask) != 0;
  barrier->all &= (~pred & mask) == 0;
}

/* So that it can be told where it stands. */
static void wait_at(pe_warp *w, uint32_t pos, uint32_t lanes) {
  state_of(w)->waits_at = pos;
  state_of(w)->waiting = lanes;
}

/* Wait for the barrier, or complete it. */
static void wait_or_complete(pe_warp *w, uint32_t pos, uint32_t id, uint32_t mask, pe_barrier_state *barrier) {
  pe_cta *cta = pe_self->cta;
  uint32_t self = 1u << w->warpid;
  wait_at(w, pos, mask);
  barrier->waiting |= self;
  cta->runnable &= ~self;
  if (barrier->arrived >= barrier->expected) {
    complete(cta, barrier);
  } else {
    if (!pe_launch_has_fibers(w->launch))
      misuse(w, pos, id, "the kernel was compiled as one that never waits (a bug in ptxemu)");
    pe_suspend(w);
  }
  pe_tell_left(w);
}

/* What observers are told of an arrival. */
static uint32_t how_of(uint32_t count, bool waits, bool per_thread) {
  return (count ? 0 : PE_BARRIER_WHOLE) | (waits ? 0 : PE_BARRIER_ARRIVES) | (per_thread ? PE_BARRIER_LANES : 0);
}

void pe_barrier(pe_warp *w, uint32_t pos, uint32_t id, uint32_t count, uint32_t mask, uint32_t arrive_only) {
  bool per_thread = arrive_only & PE_BARRIER_PER_THREAD;
  bool waits = !(arrive_only & ~(uint32_t)PE_BARRIER_PER_THREAD);
  if (!waits && count == 0) misuse(w, pos, id, COUNTLESS);
  uint32_t threads = arriving_threads(w, mask, per_thread, count == 0);
  pe_tell_barrier(w, pos, id, mask, how_of(count, waits, per_thread));
  pe_barrier_state *barrier = arrive_at(w, pos, id, count, threads, PE_ARRIVAL_SYNC);
  if (waits)
    wait_or_complete(w, pos, id, mask, barrier);
  else if (barrier->arrived >= barrier->expected)
    complete(pe_self->cta, barrier);
}

uint32_t pe_barrier_red(pe_warp *w, uint32_t pos, uint32_t id, uint32_t count, uint32_t mask, uint32_t op, uint32_t pred) {
  bool per_thread = op & PE_BARRIER_PER_THREAD;
  uint32_t threads = arriving_threads(w, mask, per_thread, count == 0);
  pe_tell_barrier(w, pos, id, mask, how_of(count, true, per_thread));
  pe_barrier_state *barrier = arrive_at(w, pos, id, count, threads, PE_ARRIVAL_RED);
  combine(barrier, mask, pred);
  state_of(w)->result = op & ~(uint32_t)PE_BARRIER_PER_THREAD;
  wait_or_complete(w, pos, id, mask, barrier);
  return state_of(w)->result;
}

void pe_warpgroup_wait(pe_warp *w, uint32_t pos, uint32_t mask) {
  uint32_t group = w->warpid / WARPGROUP, id = PE_BARRIERS + group, threads = WARPGROUP * PE_WARP_LANES;
  if (!pe_whole_warp(w, pos, mask)) return;
  pe_tell_barrier(w, pos, PE_BARRIER_WARPGROUP + group, mask, 0);
  wait_or_complete(w, pos, id, mask, arrive(w, pos, id, threads, PE_WARP_LANES, PE_ARRIVAL_SYNC));
}

void pe_barrier_watched(pe_warp *w, uint32_t pos, uint32_t id, uint32_t mask) {
  pe_tell_barrier(w, pos, id, mask, PE_BARRIER_WHOLE | PE_BARRIER_TOGETHER);
}

void pe_barrier_together(pe_warp *first, const int32_t *places) {
  const pe_observer *observer = first->launch->observer;
  uint32_t warps = 0;
  if (!observer || !observer->together) return;
  for (uint32_t i = 0; i < first->warps; i++) warps |= (uint32_t)(places[i] >= 0) << i;
  observer->together(observer->context, first, warps);
}

/* ---- lanes that progress independently ---- */

/* Lanes arrive at one barrier. */
static void join(pe_warp *w, uint32_t pos, uint32_t id, uint32_t count, uint32_t lanes, uint32_t action, uint32_t pred) {
  if (action == PE_LANES_ARRIVE && count == 0) misuse(w, pos, id, COUNTLESS);
  uint32_t arrival = action >= PE_LANES_RED ? PE_ARRIVAL_RED : PE_ARRIVAL_SYNC;
  pe_barrier_state *barrier = arrive_at(w, pos, id, count, (uint32_t)__builtin_popcount(lanes), arrival);
  pe_warp_state *state = state_of(w);
  if (arrival == PE_ARRIVAL_RED) combine(barrier, lanes, pred);
  if (action != PE_LANES_ARRIVE) {
    state->at_barrier[id] |= lanes;
    barrier->waiting |= 1u << w->warpid;
    for (; lanes; lanes &= lanes - 1) state->lane_result[__builtin_ctz(lanes)] = action - (action ? PE_LANES_RED : 0);
  }
  if (barrier->arrived >= barrier->expected) complete(pe_self->cta, barrier);
}

void pe_barrier_lanes(pe_warp *w, uint32_t pos, const uint32_t *id, const uint32_t *count, uint32_t mask, uint32_t action,
                      uint32_t pred) {
  while (mask) {
    int first = __builtin_ctz(mask);
    uint32_t same = 0;
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
      int lane = __builtin_ctz(rest);
      if (id[lane] == id[first] && count[lane] == count[first]) same |= 1u << lane;
    }
    pe_tell_barrier(w, pos, id[first], same, how_of(count[first], action != PE_LANES_ARRIVE, true));
    join(w, pos, id[first], count[first], same, action, pred);
    mask &= ~same;
  }
}

uint32_t pe_barrier_passed(pe_warp *w, uint32_t waiting) {
  uint32_t passed = state_of(w)->released & waiting;
  state_of(w)->released &= ~passed;
  return passed;
}

/* When all that are left of a warp wait at a barrier of the whole CTA, the others count as arrived. It happens once, as
 * nothing but the completion of that barrier ends the warp's wait. */
static void count_absent(pe_warp *w) {
  pe_cta *cta = pe_self->cta;
  uint32_t absent = ~w->active | w->exited;
  for (uint32_t in_use = absent ? cta->in_use : 0; in_use; in_use &= in_use - 1) {
    uint32_t id = (uint32_t)__builtin_ctz(in_use);
    pe_barrier_state *barrier = &cta->barriers[id];
    if (!barrier->whole_cta || (state_of(w)->at_barrier[id] | absent) != PE_ALL_LANES) continue;
    barrier->arrived += (uint32_t)__builtin_popcount(absent);
    if (barrier->arrived >= barrier->expected) complete(cta, barrier);
    return;
  }
}

void pe_barrier_idle(pe_warp *w) {
  count_absent(w);
  while (!state_of(w)->released) {
    pe_self->cta->runnable &= ~(1u << w->warpid);
    pe_suspend(w);
  }
}

void pe_barrier_results(pe_warp *w, uint32_t *results) {
  memcpy(results, state_of(w)->lane_result, sizeof state_of(w)->lane_result);
}

/* ---- the lanes of a warp ---- */

void pe_stuck(pe_warp *w, uint32_t pos, uint32_t waiting) {
  char note[128];
  snprintf(note, sizeof note, "lanes 0x%08x wait for lanes that exited or wait elsewhere", waiting);
  pe_fault_note(w, PE_DEADLOCK, pos, __builtin_ctz(waiting), PE_GENERIC, 0, 0, note);
}

/* ---- the grid ---- */

void pe_grid_sync(pe_warp *w, uint32_t pos, uint32_t mask) {
  pe_launch *launch = w->launch;
  if (!launch->config.cooperative)
    pe_fault_note(w, PE_BARRIER_MISUSE, pos, -1, PE_GENERIC, 0, 0, "grid synchronization needs a cooperative launch");
  pe_tell_barrier(w, pos, PE_BARRIER_GRID, mask, PE_BARRIER_LANES);
  uint64_t threads = (uint64_t)__builtin_popcount(mask), all = launch->ctas * launch->threads;
  uint64_t phase = atomic_load(&launch->grid_phase);
  if (atomic_fetch_add(&launch->grid_arrived, threads) + threads == all) {
    atomic_store(&launch->grid_arrived, 0);
    atomic_store(&launch->grid_phase, phase + 1);
  }
  wait_at(w, pos, mask);
  state_of(w)->meets_grid = true;
  while (atomic_load(&launch->grid_phase) == phase) pe_yield(w);
  state_of(w)->meets_grid = false;
}
