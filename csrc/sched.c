/* sched.c: a worker takes CTAs in ascending order and runs their warps on fibers.
 *
 * A kernel that never waits uses one fiber for all warps, one after another; otherwise every warp of the CTA has its own
 * and they take turns.
 */
#include <fenv.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif
#include "runtime.h"

_Thread_local pe_worker *pe_self __attribute__((tls_model("initial-exec")));

/* Round to nearest, keep subnormals, trap nothing: whatever the creator of this thread had set. */
static void default_floating_point(void) {
  fesetenv(FE_DFL_ENV);
#if defined(__x86_64__)
  _mm_setcsr(0x1f80);
#elif defined(__aarch64__)
  __asm__ volatile("msr fpcr, %0" : : "r"(0ull));
#endif
}

/* ---- what the warps of a CTA see ---- */

static void fill_threads(pe_warp *w, const pe_config *config, uint32_t threads) {
  uint32_t first = w->warpid * PE_WARP_LANES;
  uint32_t left = threads - first;
  w->active = left >= PE_WARP_LANES ? PE_ALL_LANES : (1u << left) - 1;
  for (uint32_t lane = 0; lane < PE_WARP_LANES; lane++) {
    uint32_t thread = first + lane;
    w->tid[0][lane] = thread % config->block[0];
    w->tid[1][lane] = thread / config->block[0] % config->block[1];
    w->tid[2][lane] = thread / config->block[0] / config->block[1];
  }
}

static void fill_warp(pe_worker *worker, uint32_t warpid) {
  const pe_launch *launch = worker->launch;
  const pe_config *config = &launch->config;
  const pe_windows *windows = &launch->windows[worker->index];
  uint64_t local_slot = config->suspends ? warpid : 0;  /* warps that run one after another share a window */
  pe_warp_state *state = &worker->warps[warpid];
  *state = (pe_warp_state){
    .fiber = worker->fibers[config->suspends ? warpid : 0],
    .warp = {
      .arena_base = pe_arena_base(launch->arena),
      .arena_size = pe_arena_extent(launch->arena),
      .global_base = config->global_base,
      .const_base = config->const_base,
      .const_size = config->const_size,
      .param_base = launch->params,
      .param_size = config->params_size,
      .handles = config->handles,
      .stop = (const volatile uint32_t *)&launch->stop,
      .launch = worker->launch,
      .ntid = {config->block[0], config->block[1], config->block[2]},
      .nctaid = {config->grid[0], config->grid[1], config->grid[2]},
      .shared_base = windows->shared,
      .shared_size = config->static_shared + config->dynamic_shared,
      .dynamic_shared = (uint32_t)config->dynamic_shared,
      .local_base = windows->local + local_slot * PE_WARP_LANES * launch->local_stride,
      .local_size = launch->local_stride,
      .warpid = warpid,
    },
  };
  fill_threads(&state->warp, config, launch->threads);
}

static void place_cta(pe_worker *worker, uint64_t cta) {
  const pe_launch *launch = worker->launch;
  const uint32_t *grid = launch->config.grid;
  uint32_t x = (uint32_t)(cta % grid[0]), y = (uint32_t)(cta / grid[0] % grid[1]), z = (uint32_t)(cta / grid[0] / grid[1]);
  for (uint32_t i = 0; i < launch->warps; i++) {
    pe_warp *w = &worker->warps[i].warp;
    w->ctaid[0] = x, w->ctaid[1] = y, w->ctaid[2] = z;
    w->exited = 0;
  }
  worker->cta.live = worker->cta.runnable = launch->warps == 32 ? PE_ALL_LANES : (1u << launch->warps) - 1;
  pe_barriers_reset(&worker->cta);
}

/* Take the next run of CTAs: [*first, *last). */
static bool take_ctas(pe_launch *launch, uint64_t *first, uint64_t *last) {
  *first = atomic_fetch_add(&launch->next_cta, launch->chunk);
  if (*first >= launch->ctas || pe_stopped(launch)) return false;
  *last = launch->ctas - *first < launch->chunk ? launch->ctas : *first + launch->chunk;
  return true;
}

static void complete_ctas(pe_launch *launch, uint64_t count) {
  atomic_fetch_add_explicit(&launch->completed, count, memory_order_relaxed);
}

/* ---- kernels that never wait ---- */

static void run_cta_straight(pe_worker *worker, pe_kernel kernel) {
  for (uint32_t i = 0; i < worker->launch->warps; i++) {
    worker->running = &worker->warps[i];
    kernel(&worker->warps[i].warp);
    pe_barriers_exit(worker, i);
  }
}

/* On the fiber: CTAs until there are none left. */
static void run_straight(void *argument) {
  pe_worker *worker = argument;
  pe_launch *launch = worker->launch;
  pe_kernel kernel = (pe_kernel)(uintptr_t)launch->config.kernel;
  for (uint64_t first, last, cta; take_ctas(launch, &first, &last);) {
    for (cta = first; cta < last && !pe_stopped(launch); cta++) {
      place_cta(worker, cta);
      run_cta_straight(worker, kernel);
    }
    complete_ctas(launch, cta - first);
  }
  pe_fiber_leave(worker->fibers[0]);
}

/* ---- kernels that wait ---- */

static void run_warp(void *argument) {
  pe_warp_state *state = argument;
  pe_kernel kernel = (pe_kernel)(uintptr_t)state->warp.launch->config.kernel;
  kernel(&state->warp);
  pe_barriers_exit(pe_self, state->warp.warpid);
  pe_fiber_leave(state->fiber);
}

static void run_turns(pe_worker *worker) {
  pe_cta *cta = &worker->cta;
  while (cta->runnable) {
    for (uint32_t turn = cta->runnable; turn; turn &= turn - 1) {
      worker->running = &worker->warps[__builtin_ctz(turn)];
      pe_fiber_resume(worker->running->fiber);
      worker->running = NULL;
      if (pe_stopped(worker->launch)) return;
    }
  }
  if (cta->live) pe_barriers_deadlock(worker);
}

static void run_waiting(pe_worker *worker) {
  pe_launch *launch = worker->launch;
  for (uint64_t cta, last; take_ctas(launch, &cta, &last);) {
    for (; cta < last; cta++) {
      place_cta(worker, cta);
      for (uint32_t i = 0; i < launch->warps; i++) pe_fiber_start(worker->fibers[i], run_warp, &worker->warps[i]);
      run_turns(worker);
      if (pe_stopped(launch)) return;
      complete_ctas(launch, 1);
    }
  }
}

void pe_suspend(pe_warp *w) {
  pe_warp_state *state = (pe_warp_state *)w;
  pe_fiber_suspend(state->fiber);
  if (pe_stopped(w->launch)) pe_leave();
}

void pe_yield(pe_warp *w) {
  if (pe_stopped(w->launch)) pe_leave();
  if (w->launch->config.suspends && pe_self->cta.runnable != 1u << w->warpid) pe_suspend(w);
}

/* ---- a worker's part of a launch ---- */

static bool prepare_fibers(pe_worker *worker) {
  const pe_config *config = &worker->launch->config;
  size_t bytes = config->stack_bytes ? config->stack_bytes : PE_DEFAULT_STACK;
  uint32_t count = config->suspends ? worker->launch->warps : 1;
  for (uint32_t i = 0; i < count; i++) {
    if (worker->fibers[i] && pe_fiber_stack_bytes(worker->fibers[i]) >= bytes) continue;
    pe_fiber_destroy(worker->fibers[i]);
    worker->fibers[i] = pe_fiber_create(bytes, i);
    if (!worker->fibers[i]) return false;
  }
  return true;
}

void pe_worker_run(pe_worker *worker) {
  pe_launch *launch = worker->launch;
  default_floating_point();
  if (!prepare_fibers(worker)) {
    atomic_store(&launch->no_memory, 1);
    atomic_store(&launch->stop, 1);
    return;
  }
  for (uint32_t i = 0; i < launch->warps; i++) fill_warp(worker, i);
  if (launch->config.suspends) {
    run_waiting(worker);
  } else {
    pe_fiber_start(worker->fibers[0], run_straight, worker);
    pe_fiber_resume(worker->fibers[0]);
    worker->running = NULL;
  }
}
