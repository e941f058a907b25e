/* perform.c: doing the work of items.
 *
 * Whoever finishes an item starts those that have waited for it alone: a thread of the pool at the end of a launch, the thread of the
 * functions of the program, or the one that submits.
 */
#include <stdio.h>
#include "fault_text.h"
#include "px_ipc.h"
#include "px_queue.h"

enum { OUTPUT = 1 << 12 };

static px_item *running;  /* launches on the pool's threads */
static unsigned stopping; /* calls of px_stop_all: nothing more is begun */

bool px_is_dropped(const px_item *item) {
  px_queue_lock();
  bool dropped = stopping;
  px_queue_unlock();
  return dropped || (px_context_error(item->context) && !(item->work && item->work->kind == PX_HOST));
}

/* ---- launches ---- */

static void drain(pe_launch *launch) {
  char text[OUTPUT];
  size_t size;
  while ((size = pe_launch_output(launch, text, sizeof text))) fwrite(text, 1, size, stdout);
}

/* A launch has ended: an error of the kernel stays. */
static void settle(px_item *item, pe_launch *launch) {
  pe_counters counters;
  drain(launch);
  px_children_collect(item, launch);
  pe_launch_result(launch, NULL, &counters);
  if (counters.kind == PE_STOPPED) return;
  if (counters.kind != PE_OK)
    px_stay_in(item->context, px_say_fault(launch, counters.kind));
  else if (counters.no_memory)
    px_stay_in(item->context, cudaErrorLaunchOutOfResources);
}

/* A launch is under way, and may be stopped. With the lock held. */
static void add_running(px_item *item, pe_launch *launch) {
  item->running = launch;
  item->next = running;
  running = item;
  if (stopping) pe_launch_request_stop(launch);
}

/* It is not any more, if it was. With the lock held. */
static void remove_running(const px_item *item) {
  for (px_item **at = &running; *at; at = &(*at)->next)
    if (*at == item) {
      *at = item->next;
      break;
    }
}

/* On a thread of the pool. */
static void ended(void *context, pe_launch *launch) {
  px_item *item = context;
  px_queue_lock();
  item->over = true;
  remove_running(item);
  px_queue_unlock();
  settle(item, launch);
  pe_launch_destroy(launch);
  if (!px_children_begin(item)) px_perform_all(px_item_finish(item, NULL));
}

/* A launch that could not be started: an error of the call that asks for it, if that does it itself. */
static void fail(px_item *item, int error) {
  if (item->direct)
    item->error = px_start_error(error);
  else
    px_stay_in(item->context, px_start_error(error));
}

/* Start a launch, which may have ended when this returns. Whether it goes on. */
static bool start(px_item *item) {
  char message[PE_MESSAGE_BYTES];
  pe_launch *launch;
  uint32_t over = false;
  pe_start what = item->work->start;
  what.ended = ended;
  what.context = px_item_keep(item);
  what.joins = pe_start_should_join(&what);
  what.over = &over;
  int error = pe_start_launch(&what, &launch, message);
  if (error) fail(item, error);
  px_queue_lock();
  if (!error && !over && !item->over) add_running(item, launch);
  px_item_disown(item);
  px_queue_unlock();
  if (error || !over) return !error;
  settle(item, launch);
  pe_launch_destroy(launch);
  return px_children_begin(item);
}

void px_perform_launch(px_item *item, const pe_start *what) {
  char message[PE_MESSAGE_BYTES];
  pe_launch *launch;
  int error = pe_start_launch(what, &launch, message);
  if (error) {
    px_stay_in(item->context, px_start_error(error));
    return;
  }
  px_queue_lock();
  add_running(item, launch);
  px_queue_unlock();
  pe_launch_wait(launch, UINT32_MAX);
  px_queue_lock();
  remove_running(item);
  px_queue_unlock();
  settle(item, launch);
  pe_launch_destroy(launch);
}

/* ---- events of other processes: each wait is a thread, as it may take any time ---- */

static void *await_record(void *argument) {
  px_item *item = argument;
  px_shared_event *event = item->work->event->shared;
  while (!px_shared_is_done(event, item->record) && !px_is_dropped(item))
    if (!px_shared_await(event, item->record)) px_stay_in(item->context, cudaErrorLaunchFailure);
  px_perform_all(px_item_finish(item, NULL));
  return NULL;
}

static bool await(px_item *item) {
  const px_shared_event *event = item->work->event->shared;
  if (!event || px_shared_is_done(event, item->record)) return true;
  if (!pe_thread_start(await_record, item)) return false;
  px_stay_in(item->context, cudaErrorMemoryAllocation);
  return true;
}

/* ---- all of it ---- */

static bool perform(px_item *item, px_item **ready) {
  if (px_is_dropped(item)) return true;
  if (item->branch) return px_plan_choose(item, ready);
  if (item->plan) px_plan_set_values(item->plan);
  if (!item->work) return true;
  switch (item->work->kind) {
    case PX_LAUNCH: return !start(item);
    case PX_HOST: return px_call_later(item);
    case PX_COPY:
    case PX_SET:
      if (!px_work_move(item->work)) px_stay_in(item->context, cudaErrorIllegalAddress);
      return true;
    case PX_WAIT: return await(item);
    case PX_NOTHING:
    case PX_RECORD:
    case PX_TAKE: /* both were done when the graph was launched: order is all that is left */
    case PX_GIVE: return true;
  }
  return true;
}

void px_perform_all(px_item *ready) {
  while (ready) {
    px_item *item = ready;
    ready = item->next;
    item->next = NULL;
    if (perform(item, &ready)) ready = px_item_finish(item, ready);
  }
}

void px_stop_all(void) {
  px_queue_lock();
  stopping++;
  while (px_pending) {
    for (const px_item *item = running; item; item = item->next) pe_launch_request_stop(item->running);
    px_queue_await();
  }
  stopping--;
  px_queue_unlock();
}
