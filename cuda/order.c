/* order.c: streams, and what new work in them waits for. */
#include <stdlib.h>
#include "px_graph.h"
#include "px_ipc.h"
#include "px_queue.h"

static struct px_stream legacy, for_threads = {.id = 2};
static struct px_stream *streams = &for_threads; /* but for the legacy one */

enum { NON_BLOCKING = 1 };

/* ---- streams ---- */

struct px_stream *px_stream_of(cudaStream_t stream) {
  uintptr_t number = (uintptr_t)stream;
  return number == 2 ? &for_threads : number < 2 ? &legacy : stream;
}

void px_stream_add(struct px_stream *stream) {
  px_queue_lock();
  stream->next = streams;
  streams = stream;
  px_queue_unlock();
}

static void end_stream(px_mortal *object) {
  struct px_stream *stream = (struct px_stream *)object;
  if (stream->last) px_item_release(stream->last);
  free(stream->tail.node);
  free(stream);
}

void px_stream_bury(void) {
  for (struct px_stream **at = &streams; *at;) {
    struct px_stream *stream = *at;
    bool gone = stream->dead && (!stream->last || stream->last->done);
    if (!gone) {
      at = &stream->next;
      continue;
    }
    *at = stream->next;
    px_end_later(&stream->mortal, end_stream);
  }
}

void px_stream_remove(struct px_stream *stream) {
  px_queue_lock();
  stream->dead = true;
  px_stream_bury();
  px_queue_unlock();
}

bool px_stream_visit(const struct px_stream *stream, bool (*look)(px_item *item, px_item *before), px_item *item) {
  bool fits = look(item, stream->last);
  if (stream == &legacy)
    for (const struct px_stream *other = streams; fits && other; other = other->next)
      fits = other->flags & NON_BLOCKING || look(item, other->last);
  else if (!(stream->flags & NON_BLOCKING))
    fits = fits && look(item, legacy.last);
  return fits;
}

void px_stream_set_last(struct px_stream *stream, px_item *item) {
  px_item_disown(stream->last);
  item->owners++;
  stream->last = item;
}

static bool is_done(px_item *item, px_item *before) {
  (void)item;
  return !before || before->done;
}

bool px_stream_idle(cudaStream_t stream) {
  px_queue_lock();
  bool idle = !px_pending || px_stream_visit(px_stream_of(stream), is_done, NULL);
  px_queue_unlock();
  return idle;
}

/* ---- events ---- */

bool px_event_heed(px_item *item) {
  struct px_event *event = item->work ? item->work->event : NULL;
  if (!event) return true;
  bool waits = item->work->kind == PX_WAIT;
  if (event->shared) item->record = waits ? px_shared_last(event->shared) : px_shared_record(event->shared);
  if (waits) return px_item_follow(item, event->item);
  px_item_disown(event->item);
  item->owners++;
  event->item = item;
  return true;
}

px_item *px_event_item(cudaEvent_t event) {
  px_queue_lock();
  px_item *item = event->item;
  if (item) item->owners++;
  px_queue_unlock();
  return item;
}
