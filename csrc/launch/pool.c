/* pool.c: threads that outlive launches.  Made when first needed; the last to become idle is the first to work again.
 *
 * A launch that ends soon is run by the thread that starts it, which then takes a spare worker: that of no thread.
 */
#include <stdlib.h>
#include "pool.h"
#include "cta.h"
#include "launch.h"
#include "processor.h"
#include "runtime.h"
#include "signals.h"
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

static void serve(pe_worker *worker) {
  pe_lock();
  for (;;) {
    while (!worker->launch) pe_wait(&worker->wake);
    pe_launch *launch = worker->launch;
    pe_unlock();
    pe_worker_run(worker);
    pe_lock();
    worker->launch = NULL;
    busy--;
    if (--launch->running == 0) finish(launch);
    worker->next_idle = idle;
    idle = worker;
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
    idle = worker->next_idle;
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

uint32_t pe_pool_assign(pe_launch *launch) {
  uint32_t hired = 0;
  for (; hired < launch->workers; hired++) {
    pe_worker *worker = hire();
    if (!worker) break;
    worker->index = hired;
    worker->launch = launch;
    pthread_cond_signal(&worker->wake);
  }
  busy += hired;
  launch->running = launch->workers = hired;
  return hired;
}

/* ---- on the caller's thread ---- */

bool pe_pool_take(pe_launch *launch) {
  pe_worker *worker = spare;
  if (worker) spare = worker->next_idle;
  if (!worker) worker = new_worker();
  if (!worker) return false;
  worker->index = 0;
  worker->launch = launch;
  launch->guest = worker;
  launch->running = launch->workers = 1;
  busy++;
  return true;
}

void pe_pool_run(pe_launch *launch) {
  pe_worker *worker = launch->guest, *before = pe_self;
  pe_self = worker;
  pe_worker_run(worker);
  pe_self = before;
  pe_lock();
  worker->launch = NULL;
  worker->next_idle = spare;
  spare = worker;
  busy--;
  launch->running = 0;
  pe_launch_finished(launch);
  pe_unlock();
}
