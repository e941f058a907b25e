/* pool.c: threads that outlive launches.  Made when first needed; the last to become idle is the first to work again.
 *
 * The thread that starts a launch may take part in it as a guest. It then takes a spare worker: one that has no thread.
 */
#include <stdlib.h>
#include "pool.h"
#include "cta.h"
#include "launch.h"
#include "processor.h"
#include "runtime.h"
#include "signals.h"
#include "watch.h"
#include "worker.h"

static pe_worker *idle;
static pe_worker *spare; /* without threads */
static uint32_t busy;

/* The threads of the parent do not exist in the child; what they owned is lost. */
void pe_pool_forget(void) {
  idle = spare = NULL;
  busy = 0;
}

/* The last worker is done.  Whoever waits may destroy the launch as soon as the lock is free, unless it has a hook. */
static void finish(pe_launch *launch) {
  void (*ended)(void *, pe_launch *) = launch->config.ended;
  void *context = launch->config.context;
  pe_launch_finished(launch);
  if (!ended) return;
  pe_unlock();
  ended(context, launch);
  pe_lock();
}

/* The thread has come: it is not called any more. */
static void come(pe_worker *worker) {
  pe_worker **link = &worker->launch->called;
  while (*link && *link != worker) link = &(*link)->next;
  if (*link) *link = worker->next;
}

static void put(pe_worker **list, pe_worker *worker) {
  worker->next = *list;
  *list = worker;
}

/* The thread goes on as another worker. */
static pe_worker *succeed(pe_worker *worker) {
  pe_worker *successor = worker->successor;
  worker->successor = NULL;
  put(&spare, worker);
  return pe_self = successor;
}

/* Launches follow each other as a rule: an idle thread looks out for the next one itself for a moment. */
static void look_out(const pe_worker *worker) {
  if (pe_cpu_count() == 1) return;
  uint64_t end = pe_nanoseconds(CLOCK_MONOTONIC) + PE_LOOK_OUT_NANOSECONDS;
  while (!atomic_load_explicit(&worker->called, memory_order_relaxed) && pe_nanoseconds(CLOCK_MONOTONIC) < end) pe_breathe();
}

static void serve(pe_worker *worker) {
  pe_lock();
  for (;;) {
    while (!worker->launch && !worker->successor) pe_wait(&worker->wake);
    if (worker->successor) worker = succeed(worker);
    pe_launch *launch = worker->launch;
    come(worker);
    pe_unlock();
    pe_worker_run(worker);
    pe_worker_end(worker);
    pe_lock();
    worker->launch = NULL;
    busy--;
    if (--launch->running == 0) finish(launch);
    atomic_store(&worker->called, false);
    put(&idle, worker);
    pe_unlock();
    look_out(worker);
    pe_lock();
  }
}

static void *thread_main(void *argument) {
  pe_self = argument;
  pe_signals_thread();
  serve(argument);
  return NULL;
}

static void free_worker(pe_worker *worker) {
  pe_cta_destroy(worker->cta);
  free(worker->place);
  free(worker);
}

static pe_worker *new_worker(void) {
  pe_worker *worker = calloc(1, sizeof *worker);
  if (!worker) return NULL;
  worker->place = malloc(sizeof *worker->place);
  worker->cta = pe_cta_create();
  if (!worker->place || !worker->cta) {
    free_worker(worker);
    return NULL;
  }
  worker->place[worker->places++] = worker->cta;
  pe_condition_init(&worker->wake);
  return worker;
}

static pe_worker *hire(void) {
  pe_worker *worker = idle;
  if (worker) {
    idle = worker->next;
    return worker;
  }
  worker = new_worker();
  if (worker && !pe_thread_start(thread_main, worker)) return worker;
  if (worker) free_worker(worker);
  return NULL;
}

uint32_t pe_pool_offer(uint32_t wanted) {
  uint32_t limit = pe_cpu_count();
  if (limit < wanted) limit = wanted;
  uint32_t free_threads = limit > busy ? limit - busy : 1;
  return wanted < free_threads ? wanted : free_threads;
}

/* The index is taken. */
static void give(pe_launch *launch, pe_worker *worker, uint32_t index) {
  worker->index = index;
  worker->launch = launch;
  busy++;
}

uint32_t pe_pool_assign(pe_launch *launch) {
  uint32_t taken = launch->guest != NULL;
  for (; taken < launch->workers; taken++) {
    pe_worker *worker = hire();
    if (!worker) break;
    give(launch, worker, taken);
    put(&launch->called, worker);
    atomic_store(&worker->called, true);
    pthread_cond_signal(&worker->wake);
  }
  return launch->running = launch->workers = taken;
}

/* ---- on the caller's thread ---- */

bool pe_pool_take(pe_launch *launch) {
  pe_worker *worker = spare;
  if (worker) spare = worker->next;
  if (!worker) worker = new_worker();
  if (!worker) return false;
  give(launch, worker, 0);
  worker->is_guest = true;
  launch->guest = worker;
  return true;
}

/* There is nothing left to do for those that have been called and have not come. */
static void call_off(pe_launch *launch) {
  pe_lock();
  for (pe_worker *worker = launch->called, *next; worker; worker = next) {
    next = worker->next;
    worker->launch = NULL;
    put(&idle, worker);
    busy--;
    launch->running--;
    launch->workers--;
  }
  launch->called = NULL;
  pe_unlock();
}

/* Let a thread of the pool go on as this worker. False: there is none, and this one has to. */
static bool hand_on(pe_worker *worker) {
  pe_launch *launch = worker->launch;
  pe_lock();
  pe_worker *other = idle;
  pe_watch_end(launch);
  atomic_fetch_and(&launch->asked, ~(uint32_t)PE_ASKED_TO_MOVE);
  worker->is_guest = false;
  launch->guest = NULL;
  if (other) {
    idle = other->next;
    other->successor = worker;
    pthread_cond_signal(&other->wake);
  }
  bool done = other || !pe_thread_start(thread_main, worker);
  if (!done) worker->is_guest = pe_watch_begin(launch);
  pe_unlock();
  return done;
}

/* Whether the launch has ended by that. */
static bool leave(pe_worker *worker) {
  pe_launch *launch = worker->launch;
  pe_lock();
  pe_watch_end(launch);
  launch->guest = NULL;
  worker->launch = NULL;
  worker->is_guest = false;
  put(&spare, worker);
  busy--;
  bool last = --launch->running == 0;
  if (last) pe_launch_finished(launch);
  pe_unlock();
  return last;
}

bool pe_pool_join(pe_launch *launch) {
  pe_worker *worker = launch->guest, *before = pe_self;
  pe_self = worker;
  bool done, last = false;
  do {
    done = pe_worker_run(worker);
  } while (!done && !hand_on(worker));
  if (done) {
    call_off(launch);
    pe_worker_end(worker);
    last = leave(worker);
  }
  pe_self = before;
  return last;
}
