/* calls.c: functions of the program, on a thread of their own. */
#include <pthread.h>
#include "px_queue.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the calls */
static pthread_cond_t called = PTHREAD_COND_INITIALIZER;
static px_item *calls, **calls_end = &calls;
static _Thread_local bool is_caller;

bool px_may_wait(void) { return !is_caller; }

static void *call_all(void *unused) {
  is_caller = true;
  for (;;) {
    pthread_mutex_lock(&lock);
    while (!calls) pthread_cond_wait(&called, &lock);
    px_item *item = calls;
    calls = item->next;
    if (!calls) calls_end = &calls;
    pthread_mutex_unlock(&lock);
    const px_work *work = item->work;
    cudaError_t error = px_context_error(item->context);
    if (work->callback)
      work->callback(work->stream, error, work->data);
    else if (!error)
      work->function(work->data);
    item->next = NULL;
    px_perform_all(px_item_finish(item, NULL));
  }
  return unused;
}

bool px_call_later(px_item *item) {
  static bool started;
  pthread_mutex_lock(&lock);
  if (!started) started = !pe_thread_start(call_all, NULL);
  bool queued = started;
  if (queued) {
    item->next = NULL;
    *calls_end = item;
    calls_end = &item->next;
    pthread_cond_signal(&called);
  }
  pthread_mutex_unlock(&lock);
  if (!queued) item->error = cudaErrorMemoryAllocation;
  return !queued;
}
