/* cluster.c: barrier.cluster: arrival and wait are two instructions (PTX ISA, "barrier.cluster").
 *
 * Lanes arrive; when all of the cluster's that have not exited have, the phase is complete and each may pass its wait.  The CTAs of a
 * cluster run on one thread.
 */
#include "async.h"
#include "cta.h"
#include "fault.h"
#include "launch.h"
#include "place.h"
#include "sync.h"
#include "worker.h"

#define BEYOND (1ull << 63) /* all memory */

uint64_t pe_cluster_peer(const pe_warp *w, uint32_t space, uint64_t address, uint32_t rank) {
  bool own = space == PE_SHARED;
  uint64_t generic = own ? w->shared_base + address : address;
  bool inside = own ? address < w->shared_size : pe_in_window(address, w->cluster_base, w->cluster_bytes);
  if (!inside || rank >= w->cluster_nctarank) return BEYOND | address;
  return w->cluster_base + ((uint64_t)rank << w->cluster_shift) + pe_cluster_offset(w, generic);
}

static noreturn void misuse(pe_warp *w, uint32_t pos, uint32_t lanes, const char *what) {
  pe_fault_note(w, PE_BARRIER_MISUSE, pos, __builtin_ctz(lanes), PE_GENERIC, 0, 0, what);
}

static bool all_arrived(const pe_cta *cta) {
  for (uint32_t live = cta->live; live; live &= live - 1) {
    const pe_warp_state *state = &cta->warps[__builtin_ctz(live)];
    if (state->warp.active & ~state->warp.exited & ~state->cluster_arrived) return false;
  }
  return true;
}

/* The next phase begins in a CTA. */
static void release(pe_cta *cta) {
  for (uint32_t live = cta->live; live; live &= live - 1) {
    pe_warp_state *state = &cta->warps[__builtin_ctz(live)];
    state->cluster_passes |= state->cluster_arrived;
    state->cluster_arrived = 0;
  }
  cta->cluster_arrivals = false;
  cta->cluster_phase++;
  cta->runnable |= cta->cluster_waiting;
  cta->cluster_waiting = 0;
}

bool pe_cluster_complete(pe_cta *cta) {
  bool arrivals = false;
  pe_cta *each = cta;
  do {
    arrivals |= each->cluster_arrivals;
    if (!all_arrived(each)) return false;
  } while ((each = each->peer) != cta);
  if (!arrivals) return false;
  do release(each);
  while ((each = each->peer) != cta);
  pe_cta_progress(cta);
  return true;
}

/* Tell the observer what lanes do in a phase. */
static void tell(pe_warp *w, uint32_t pos, uint32_t what, uint32_t phase, uint32_t mask) {
  pe_observe_order(w, pos, what | phase << PE_PHASE_AT, mask);
}

void pe_cluster_arrive(pe_warp *w, uint32_t pos, uint32_t mask, uint32_t relaxed) {
  pe_warp_state *state = (pe_warp_state *)w;
  uint32_t again = mask & (state->cluster_arrived | state->cluster_passes);
  if (again) misuse(w, pos, again, "barrier.cluster: a thread arrives twice without waiting");
  pe_tell_barrier(w, pos, PE_BARRIER_CLUSTER, mask, PE_BARRIER_LANES | PE_BARRIER_ARRIVES);
  tell(w, pos, PE_CLUSTER_ARRIVE | (relaxed ? PE_RELAXED : 0), pe_self->cta->cluster_phase, mask);
  state->cluster_arrived |= mask;
  pe_self->cta->cluster_arrivals |= mask != 0;
  pe_cluster_complete(pe_self->cta);
}

void pe_cluster_wait(pe_warp *w, uint32_t pos, uint32_t mask) {
  pe_cta *cta = pe_self->cta;
  pe_warp_state *state = (pe_warp_state *)w;
  uint32_t early = mask & ~(state->cluster_arrived | state->cluster_passes);
  if (early) misuse(w, pos, early, "barrier.cluster: a thread waits without having arrived");
  if (mask & ~state->cluster_passes) pe_cluster_complete(cta); /* lanes may have exited meanwhile */
  while (mask & ~state->cluster_passes) {
    cta->cluster_waiting |= 1u << w->warpid;
    cta->cluster_pos = pos;
    cta->runnable &= ~(1u << w->warpid);
    pe_suspend(w);
  }
  state->cluster_passes &= ~mask;
  tell(w, pos, PE_CLUSTER_WAIT, cta->cluster_phase - 1, mask);
}
