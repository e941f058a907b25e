/* standing.c: where the warps of a launch stand that is stuck, or was stopped.
 *
 * It is known of warps that have fibers of their own: those that wait have left their places, of others the last access is known.
 */
#include <string.h>
#include "cta.h"
#include "fault.h"
#include "internal.h"
#include "launch.h"

static void keep(const pe_warp *w, pe_stand stand) {
  pe_launch *launch = w->launch;
  uint32_t index = atomic_fetch_add(&launch->stands, 1);
  if (index >= PE_MOST_STANDS) return;
  memcpy(stand.ctaid, w->ctaid, sizeof stand.ctaid);
  stand.warp = w->warpid;
  launch->stand[index] = stand;
}

/* Those that wait at a barrier of the CTA: the lanes, which may be none. */
static uint32_t at_barrier(const pe_cta *cta, const pe_warp_state *state, uint32_t id) {
  const pe_barrier_state *barrier = &cta->barriers[id];
  if (!(barrier->waiting >> state->warp.warpid & 1)) return 0;
  bool one_by_one = state->at_barrier[id];
  uint32_t lanes = one_by_one ? state->at_barrier[id] : state->waiting;
  keep(&state->warp, (pe_stand){.lanes = lanes,
                                .pos = one_by_one ? barrier->pos : state->waits_at,
                                .waits = PE_STANDS_AT_BARRIER,
                                .number = id,
                                .arrived = barrier->arrived,
                                .expected = barrier->expected});
  return lanes;
}

static void record(const pe_cta *cta, const pe_warp_state *state) {
  const pe_warp *w = &state->warp;
  uint32_t rest = w->active & ~w->exited, self = 1u << w->warpid;
  for (uint32_t in_use = cta->in_use; in_use; in_use &= in_use - 1)
    rest &= ~at_barrier(cta, state, (uint32_t)__builtin_ctz(in_use));
  pe_stand stand = {.lanes = rest, .pos = pe_last_position(w), .waits = PE_STANDS};
  if (cta->cluster_waiting & self)
    stand.pos = cta->cluster_pos, stand.waits = PE_STANDS_AT_CLUSTER;
  else if (state->meets_grid)
    stand.pos = state->waits_at, stand.waits = PE_STANDS_AT_GRID, stand.lanes = state->waiting;
  else if (cta->polling & self)
    stand.pos = state->awaits->pos, stand.waits = PE_STANDS_AT_MBARRIER;
  if (stand.lanes) keep(w, stand);
}

void pe_record_stands(const pe_cta *cta) {
  for (uint32_t live = cta->live; live; live &= live - 1) record(cta, &cta->warps[__builtin_ctz(live)]);
}

uint32_t pe_launch_stands(const pe_launch *launch, pe_stand *out) {
  uint32_t count = atomic_load(&launch->stands);
  memcpy(out, launch->stand, (count < PE_MOST_STANDS ? count : PE_MOST_STANDS) * sizeof *out);
  return count;
}
