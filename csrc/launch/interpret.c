/* interpret.c: launches without threads of their own.
 *
 * The caller's thread stands for a worker while it calls a function for a warp, and the function runs on a fiber: so faults and
 * traps leave it as they leave compiled code, and are recorded alike.
 */
#include <errno.h>
#include <fenv.h>
#include <signal.h>
#include <stdlib.h>
#include "interpret.h"
#include "cta.h"
#include "fault.h"
#include "launch.h"
#include "place.h"
#include "sync.h"
#include "worker.h"

#define ALTERNATE_STACK_BYTES (64u << 10)

struct pe_session {
  pe_launch *launch;
  pe_worker worker;
  fenv_t environment; /* of the thread, as it was */
  stack_t previous;   /* alternate stack */
  stack_t stack;
};

typedef uint64_t (*entry)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                          uint64_t, uint64_t, uint64_t, uint64_t);

/* ---- the life of a session ---- */

/* Signals of fibers need a stack of their own. */
static void take_thread(pe_session *session) {
  session->stack = (stack_t){.ss_sp = malloc(ALTERNATE_STACK_BYTES), .ss_size = ALTERNATE_STACK_BYTES};
  if (session->stack.ss_sp) sigaltstack(&session->stack, &session->previous);
  fegetenv(&session->environment);
  pe_default_floating_point();
}

static void give_thread_back(pe_session *session) {
  fesetenv(&session->environment);
  if (session->stack.ss_sp) sigaltstack(&session->previous, NULL);
  free(session->stack.ss_sp);
}

int pe_session_start(pe_arena *arena, const pe_config *config, pe_session **out) {
  *out = NULL;
  pe_session *session = calloc(1, sizeof *session);
  if (!session) return ENOMEM;
  int error = pe_launch_open(arena, config, &session->launch);
  if (error) {
    free(session);
    return error;
  }
  session->worker.launch = session->launch;
  take_thread(session);
  *out = session;
  return 0;
}

pe_launch *pe_session_launch(pe_session *session) { return session->launch; }

void pe_session_end(pe_session **out) {
  pe_session *session = *out;
  if (!session) return;
  *out = NULL;
  pe_worker *worker = &session->worker;
  while (worker->places) pe_cta_destroy(worker->place[--worker->places]);
  free(worker->place);
  free(worker->scratch);
  give_thread_back(session);
  pe_launch_close(session->launch);
  free(session);
}

/* ---- blocks ---- */

/* The session's thread is a worker for a moment. */
static pe_worker *begin_work(pe_session *session) {
  pe_worker *before = pe_self;
  pe_self = &session->worker;
  return before;
}

static void end_work(pe_worker *before) { pe_self = before; }

/* As many places as that. */
static bool make_places(pe_session *session, uint32_t count) {
  pe_worker *worker = &session->worker, *before = begin_work(session);
  while (worker->places < count && pe_worker_add_place(worker)) {
  }
  end_work(before);
  return worker->places >= count;
}

int pe_session_place(pe_session *session, uint32_t place, uint64_t block) {
  const pe_launch *launch = session->launch;
  uint32_t ctas = launch->cluster;
  if (place > session->worker.places || block - launch->config.first >= launch->ctas) return EINVAL;
  if (place % ctas || block % ctas) return EINVAL;
  if (!make_places(session, place + ctas)) return ENOMEM;
  pe_cta **cluster = &session->worker.place[place];
  for (uint32_t i = 0; i < ctas; i++) cluster[i]->peer = cluster[(i + 1) % ctas];
  for (uint32_t i = 0; i < ctas; i++) pe_cta_place(cluster[i], launch, block + i, block + i + 1);
  return 0;
}

void pe_session_offer(pe_session *session, uint64_t block, int left) {
  session->worker.supply = (pe_supply){block, left ? block + session->launch->cluster : block};
}

void pe_session_complete(pe_session *session) { atomic_fetch_add(&session->launch->completed, session->launch->cluster); }

pe_warp *pe_session_warp(pe_session *session, uint32_t place, uint32_t warp) {
  return &session->worker.place[place]->warps[warp].warp;
}

static pe_cta *cta_of(pe_worker *worker, const pe_warp_state *state) {
  for (uint32_t i = 0; i < worker->places; i++)
    if (state >= worker->place[i]->warps && state < worker->place[i]->warps + PE_MAX_WARPS) return worker->place[i];
  return NULL;
}

/* ---- calls ---- */

static void run_call(void *argument) {
  pe_call *call = argument;
  const uint64_t *a = call->arguments;
  entry function = (entry)call->function;
  call->result = function(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13]);
  pe_fiber_leave(pe_self->running->fiber);
}

int pe_session_call(pe_session *session, pe_warp *w, pe_call *call) {
  pe_worker *worker = &session->worker;
  if (pe_stopped(session->launch)) return 0;
  pe_worker *before = begin_work(session);
  worker->running = (pe_warp_state *)w;
  worker->cta = cta_of(worker, worker->running);
  pe_fiber_start(worker->running->fiber, run_call, call);
  pe_fiber_resume(worker->running->fiber);
  worker->running = NULL;
  end_work(before);
  return !pe_stopped(session->launch);
}

void pe_session_stop(pe_session *session, pe_warp *w) {
  pe_launch_request_stop(session->launch);
  pe_record_place(w);
}

int pe_session_observed(const pe_session *session) { return session->launch->observer != NULL; }

/* ---- functions to call ---- */

/* At once, as other threads may use it. */
static void move_element(void *target, const void *source, uint32_t size) {
  switch (size) {
    case 1: *(volatile uint8_t *)target = *(const volatile uint8_t *)source; return;
    case 2: *(volatile uint16_t *)target = *(const volatile uint16_t *)source; return;
    case 4: *(volatile uint32_t *)target = *(const volatile uint32_t *)source; return;
    case 8: *(volatile uint64_t *)target = *(const volatile uint64_t *)source; return;
    default: *(volatile unsigned __int128 *)target = *(const volatile unsigned __int128 *)source;
  }
}

/* Where the lanes' elements are, all of which must be valid. */
static void find_lanes(pe_warp *w, uint16_t kind, uint32_t pos, uint32_t space, uint32_t size, uint32_t mask,
                       const uint64_t *addr, uint8_t *host[PE_WARP_LANES]) {
  pe_access access = {.pos = pos, .space = (uint16_t)space, .within = PE_ANYWHERE, .kind = kind, .align = size};
  w->pos = pos;
  w->space = space;
  for (; mask; mask &= mask - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(mask);
    host[lane] = pe_host(w, &access, lane, addr[lane], size);
  }
}

void pe_lanes_load(pe_warp *w, uint32_t pos, uint32_t space, uint32_t element, uint32_t count, uint32_t mask,
                   const uint64_t *addr, void *data) {
  uint8_t *host[PE_WARP_LANES];
  find_lanes(w, PE_READ, pos, space, element * count, mask, addr, host);
  for (; mask; mask &= mask - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(mask);
    uint8_t *to = (uint8_t *)data + (size_t)lane * element * count;
    for (uint32_t i = 0; i < count; i++) move_element(to + i * element, host[lane] + i * element, element);
  }
}

void pe_lanes_store(pe_warp *w, uint32_t pos, uint32_t space, uint32_t element, uint32_t count, uint32_t mask,
                    const uint64_t *addr, const void *data) {
  uint8_t *host[PE_WARP_LANES];
  find_lanes(w, PE_WRITE, pos, space, element * count, mask, addr, host);
  for (; mask; mask &= mask - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(mask);
    const uint8_t *from = (const uint8_t *)data + (size_t)lane * element * count;
    for (uint32_t i = 0; i < count; i++) move_element(host[lane] + i * element, from + i * element, element);
  }
}

void pe_lanes_arrive(pe_warp *w, uint32_t pos, uint32_t id, uint32_t mask) {
  pe_tell_barrier(w, pos, id, mask, PE_BARRIER_LANES);
}

void pe_lanes_fault(pe_warp *w, uint32_t kind, uint32_t pos, int32_t lane, uint32_t space, uint64_t address, uint32_t size,
                    const char *note) {
  pe_fault_note(w, kind, pos, lane, space, address, size, note);
}

void pe_lanes_mbarrier_deadlock(pe_warp *w) {
  (void)w;
  pe_mbarriers_deadlock(pe_self->cta);
}
