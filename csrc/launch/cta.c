/* cta.c: the places of a worker, each of which holds one CTA: its warps, their fibers and its windows. */
#include <stdlib.h>
#include <string.h>
#include "cta.h"
#include "internal.h"
#include "launch.h"
#include "processor.h"
#include "spread.h"
#include "sync.h"
#include "tmem.h"
#include "worker.h"

#define KEPT_STACK (256u << 10) /* of each warp between launches */

pe_cta *pe_cta_create(void) {
  pe_cta *cta = calloc(1, sizeof *cta);
  if (!cta) return NULL;
  cta->peer = cta;
  cta->warps = aligned_alloc(64, PE_MAX_WARPS * sizeof *cta->warps);
  if (cta->warps) return cta;
  free(cta);
  return NULL;
}

void pe_cta_destroy(pe_cta *cta) {
  if (!cta) return;
  for (uint32_t i = 0; i < PE_MAX_WARPS; i++) pe_fiber_destroy(cta->fibers[i]);
  free(cta->warps);
  free(cta->tensors);
  free(cta);
}

static void fill_threads(pe_warp *w, const pe_config *config) {
  const uint32_t *block = config->block;
  uint32_t width = pe_row_lanes(block, config->spread);
  w->active = 0;
  for (uint32_t lane = 0; lane < PE_WARP_LANES; lane++) {
    uint32_t place = w->warpid * PE_WARP_LANES + lane, x = place % width, row = place / width;
    w->tid[0][lane] = x;
    w->tid[1][lane] = row % block[1];
    w->tid[2][lane] = row / block[1];
    if (x < block[0] && row < block[1] * block[2]) w->active |= 1u << lane;
  }
}

/* What a warp sees that is the same for all CTAs of the place. */
static uint32_t watched_of(const pe_observer *observer) {
  if (!observer || !observer->barrier) return 0;
  return observer->no_whole_warps ? PE_WATCH_PARTS : PE_WATCH_ALL;
}

/* `number` counts the warps of all CTAs abreast. */
static void fill_warp(pe_cta *cta, pe_launch *launch, const pe_windows *windows, uint32_t number) {
  const pe_config *config = &launch->config;
  uint64_t shared_size = config->static_shared + config->dynamic_shared;
  uint64_t shared = windows->shared + number / launch->warps * pe_launch_shared_stride(launch);
  uint64_t local_slot = pe_launch_windows_of_warps(launch) > 1 ? number : 0;
  pe_fiber *fiber = cta->fibers[pe_launch_has_fibers(launch) ? number : 0];
  pe_warp_state *state = &cta->warps[number];
  *state = (pe_warp_state){
    .fiber = fiber,
    .warp =
        {
          .arena_base = config->host_memory ? PE_NULL_BYTES : pe_arena_base(launch->arena),
          .arena_size = config->host_memory ? PE_ADDRESS_SPACE - PE_NULL_BYTES : pe_arena_extent(launch->arena),
          .global_base = config->global_base,
          .const_base = config->const_base,
          .const_size = config->const_size,
          .param_base = launch->params,
          .param_size = config->params_size,
          .handles = config->handles,
          .asked = (const volatile uint32_t *)&launch->asked,
          .launch = launch,
          .ntid = {config->block[0], config->block[1], config->block[2]},
          .nctaid = {config->grid[0], config->grid[1], config->grid[2]},
          .gridid = launch->gridid,
          .cached = pe_cached_bytes(),
          .smid = pe_self->index,
          .nsmid = launch->workers,
          .grid_workspace = launch->workspace,
          .shared_base = shared,
          .shared_size = shared_size,
          .cluster_base = shared,
          .cluster_bytes = launch->cluster > 1 ? pe_launch_shared(launch) : pe_round_up(shared_size, 256),
          .cluster_shift = launch->cluster_shift,
          .cluster_nctaid = {config->cluster[0], config->cluster[1], config->cluster[2]},
          .cluster_nctarank = launch->cluster,
          .dynamic_shared = (uint32_t)config->dynamic_shared,
          .local_base = windows->local + local_slot * PE_WARP_LANES * launch->local_stride,
          .local_size = launch->local_stride,
          .warpid = number % launch->warps,
          .stack_limit = pe_fiber_limit(fiber),
          .warps = launch->warps,
          .warp_stride = sizeof *state,
          .running = (void **)&pe_self->running,
          .watched = watched_of(launch->observer),
          .ranges = launch->ranges ? (uint64_t)(uintptr_t)&launch->ranges[(size_t)pe_self->index * PE_ALL_RANGES] : 0,
          .apart = &pe_self->apart,
        },
  };
  fill_threads(&state->warp, config);
}

static bool charge_fibers(pe_cta *cta, pe_launch *launch, uint32_t count, bool further) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < count; i++)
    bytes += further ? pe_fiber_committed(cta->fibers[i]) : pe_fiber_grown(cta->fibers[i]);
  return pe_launch_charge(launch, bytes);
}

static bool make_fibers(pe_cta *cta, const pe_launch *launch, uint32_t count) {
  size_t bytes = launch->config.stack_bytes ? launch->config.stack_bytes : PE_DEFAULT_STACK;
  for (uint32_t i = 0; i < count; i++) {
    if (cta->fibers[i] && pe_fiber_stack_bytes(cta->fibers[i]) >= bytes) continue;
    pe_fiber_destroy(cta->fibers[i]);
    cta->fibers[i] = pe_fiber_create(bytes, i);
    if (!cta->fibers[i]) return false;
  }
  return true;
}

static bool grow_fibers(pe_cta *cta, const pe_cta *first, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    size_t want = pe_fiber_committed(first->fibers[i]), have = pe_fiber_committed(cta->fibers[i]);
    if (want > have && !pe_fiber_grow(cta->fibers[i], want - have)) return false;
  }
  return true;
}

/* Stacks that an earlier launch has left large are made small again if this one cannot afford them. */
static bool prepare_fibers(pe_cta *cta, pe_launch *launch, const pe_cta *first) {
  uint32_t count = pe_launch_has_fibers(launch) ? launch->warps : 1;
  if (!make_fibers(cta, launch, count)) return false;
  if (first) return grow_fibers(cta, first, count) && charge_fibers(cta, launch, count, true);
  if (!charge_fibers(cta, launch, count, false))
    for (uint32_t i = 0; i < count; i++) pe_fiber_shrink(cta->fibers[i], 0);
  return true;
}

bool pe_cta_prepare(pe_cta *cta, pe_launch *launch, const pe_windows *windows, const pe_cta *first) {
  if (!prepare_fibers(cta, launch, first)) return false;
  for (uint32_t i = 0; i < launch->warps * launch->abreast; i++) fill_warp(cta, launch, windows, i);
  cta->live = 0;
  return true;
}

void pe_cta_rest(pe_cta *cta) {
  free(cta->tensors);
  cta->tensors = NULL;
  for (uint32_t i = 0; i < PE_MAX_WARPS; i++)
    if (cta->fibers[i]) pe_fiber_shrink(cta->fibers[i], KEPT_STACK);
}

/* The place of a number in a box of these extents. */
static void unfold(uint64_t number, const uint32_t *extent, uint32_t *out) {
  out[0] = (uint32_t)(number % extent[0]);
  out[1] = (uint32_t)(number / extent[0] % extent[1]);
  out[2] = (uint32_t)(number / extent[0] / extent[1]);
}

/* Where a CTA of a cluster is in the grid. */
static void unfold_clusters(uint64_t number, const pe_launch *launch, uint32_t *out) {
  const uint32_t *cluster = launch->config.cluster, *grid = launch->config.grid;
  uint32_t clusters[3] = {grid[0] / cluster[0], grid[1] / cluster[1], grid[2] / cluster[2]}, inner[3];
  unfold(number / launch->cluster, clusters, out);
  unfold(number % launch->cluster, cluster, inner);
  for (int axis = 0; axis < 3; axis++) out[axis] = out[axis] * cluster[axis] + inner[axis];
}

void pe_cta_index(const pe_launch *launch, uint64_t number, uint32_t at[3]) {
  if (launch->cluster > 1)
    unfold_clusters(number, launch, at);
  else
    unfold(number, launch->config.grid, at);
}

/* The windows of a cluster's CTAs follow each other. */
static void give_window(pe_cta *cta, const pe_launch *launch, uint64_t rank) {
  for (uint32_t i = 0; i < launch->warps; i++) {
    pe_warp *w = &cta->warps[i].warp;
    w->shared_base = w->cluster_base ? w->cluster_base + (rank << launch->cluster_shift) : 0;
  }
}

/* The first CTA of its cluster; the CTA itself, if they run one after another. */
static const pe_cta *first_of(const pe_cta *cta, uint32_t ctas) {
  for (uint32_t steps = cta->rank ? ctas - cta->rank : 0; steps--;) cta = cta->peer;
  return cta;
}

/* How many CTAs, from one at this place of the grid on, the code runs in one call. */
static uint32_t ctas_of_call(const pe_launch *launch, const uint32_t at[3], uint64_t left) {
  const pe_observer *observer = launch->observer;
  uint64_t row = launch->config.grid[0] - at[0], most = launch->abreast;
  if (launch->config.rows && launch->cluster == 1 && (!observer || !observer->block || observer->rows)) most = row;
  return (uint32_t)(left < most ? left : most);
}

static void place_warps(pe_cta *cta, const pe_launch *launch, uint32_t first, const uint32_t at[3], uint32_t ctas) {
  for (uint32_t i = first; i < first + launch->warps; i++) {
    pe_warp *w = &cta->warps[i].warp;
    w->ctaid[0] = at[0], w->ctaid[1] = at[1], w->ctaid[2] = at[2];
    w->exited = 0;
    w->ctas = ctas;
  }
}

uint32_t pe_cta_place(pe_cta *cta, const pe_launch *launch, uint64_t number, uint64_t last) {
  uint32_t at[3];
  pe_cta_index(launch, number, at);
  cta->rank = (uint32_t)(number % launch->cluster);
  if (launch->cluster > 1) give_window(cta, launch, cta->rank);
  uint32_t ctas = ctas_of_call(launch, at, last - number), warps = launch->warps;
  place_warps(cta, launch, 0, at, ctas);
  for (uint32_t i = 1; launch->abreast > 1 && i < ctas; i++, warps += launch->warps) {
    pe_cta_index(launch, number + i, at);
    place_warps(cta, launch, warps, at, ctas);
  }
  for (uint32_t i = 0; !launch->config.looped && i < launch->warps; i++) /* others never touch that */
    cta->warps[i].cluster_arrived = cta->warps[i].cluster_passes = cta->warps[i].released = 0;
  pe_tmem_reset(cta->tensors);
  cta->cluster_arrivals = false;
  cta->cluster_waiting = cta->cluster_phase = 0;
  cta->live = cta->runnable = warps == PE_MAX_WARPS ? PE_ALL_LANES : (1u << warps) - 1;
  pe_barriers_reset(cta);
  pe_cta_progress(cta);
  const pe_observer *observer = launch->observer;
  if (!observer || !observer->block) return ctas;
  uint64_t watch = observer->block(observer->context, &cta->warps[0].warp, &first_of(cta, launch->cluster)->warps[0].warp);
  for (uint32_t i = 0; i < launch->warps; i++) cta->warps[i].warp.watch = watch;
  return ctas;
}
