/* item.c: items of work, each of which waits for others. */
#include <pthread.h>
#include <stdlib.h>
#include "px_ipc.h"
#include "px_queue.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
size_t px_pending;

void px_queue_lock(void) { pthread_mutex_lock(&lock); }

void px_queue_unlock(void) { pthread_mutex_unlock(&lock); }

void px_queue_await(void) { pthread_cond_wait(&changed, &lock); }

/* ---- owners ---- */

px_item *px_item_keep(px_item *item) {
  px_queue_lock();
  item->owners++;
  px_queue_unlock();
  return item;
}

void px_item_disown(px_item *item) {
  if (!item || --item->owners) return;
  px_context_release(item->context);
  free(item->after);
  free(item);
}

void px_item_release(px_item *item) {
  px_queue_lock();
  px_item_disown(item);
  px_queue_unlock();
}

px_item *px_item_new(px_work *work, px_context *context) {
  px_item *item = calloc(1, sizeof *item);
  if (!item) return NULL;
  *item = (px_item){.owners = 1, .work = work, .context = px_context_keep(context)};
  return item;
}

bool px_item_follow(px_item *item, px_item *before) {
  if (!before || before->done || before == item) return true;
  if (before->count == before->room) {
    size_t room = before->room ? 2 * before->room : 2;
    px_item **after = realloc(before->after, room * sizeof(px_item *));
    if (!after) return false;
    before->after = after;
    before->room = room;
  }
  before->after[before->count++] = item;
  item->missing++;
  return true;
}

/* ---- the end ---- */

/* Other processes need not wait any more for the record of an event. */
static void end_record(const px_item *item) {
  if (item->work && item->work->kind == PX_RECORD && item->record) px_shared_end(item->work->event->shared, item->record);
}

void px_item_give_up(px_item *item) {
  end_record(item);
  px_work_release(item->work);
  px_plan_release(item->plan);
  item->work = NULL;
  item->plan = NULL;
  item->branch = NULL;
  item->error = cudaErrorMemoryAllocation;
}

px_item *px_item_finish(px_item *item, px_item *rest) {
  end_record(item);
  px_work_release(item->work);
  px_plan_release(item->plan);
  px_queue_lock();
  item->work = NULL;
  item->plan = NULL;
  clock_gettime(CLOCK_MONOTONIC, &item->at);
  item->done = true;
  for (size_t i = 0; i < item->count; i++) {
    px_item *next = item->after[i];
    if (--next->missing) continue;
    next->next = rest;
    rest = next;
  }
  item->count = 0;
  px_pending--;
  px_item_disown(item);
  pthread_cond_broadcast(&changed);
  px_queue_unlock();
  return rest;
}
