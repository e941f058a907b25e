/* event.c: events, which come when all is done that was in their stream before them. */
#include <stdlib.h>
#include "px_graph.h"
#include "px_stream.h"

enum { EVENT = 0x4576656e };
enum { BLOCKING_SYNC = 1, DISABLE_TIMING = 2, INTERPROCESS = 4 };

struct px_event {
  uint32_t mark; /* EVENT */
  unsigned flags;
  px_item *item;              /* the last record of it; NULL: there is none */
  unsigned long long capture; /* not 0: it was recorded in a capture, behind a node */
  int node;
};

static bool is_event(cudaEvent_t event) { return event && event->mark == EVENT; }

/* Begin a function on an event that must have a record of its own, or none. */
#define ENTER_EVENT(event)                                       \
  do {                                                           \
    PX_ENTER();                                                  \
    PX_REQUIRE(is_event(event), cudaErrorInvalidResourceHandle); \
    PX_REQUIRE(!(event)->capture, cudaErrorCapturedEvent);       \
  } while (0)

PX_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags) {
  PX_ENTER();
  PX_REQUIRE(out && !(flags & ~(unsigned)(BLOCKING_SYNC | DISABLE_TIMING | INTERPROCESS)), cudaErrorInvalidValue);
  PX_REQUIRE(!(flags & INTERPROCESS), cudaErrorNotSupported);
  cudaEvent_t event = malloc(sizeof *event);
  PX_REQUIRE(event, cudaErrorMemoryAllocation);
  *event = (struct px_event){.mark = EVENT, .flags = flags};
  *out = event;
  return px_report(cudaSuccess);
}

PX_API cudaError_t cudaEventCreate(cudaEvent_t *out) { return cudaEventCreateWithFlags(out, 0); }

static void forget(cudaEvent_t event) {
  if (event->item) px_item_release(event->item);
  event->item = NULL;
  event->capture = 0;
}

PX_API cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  px_item *item;
  PX_ENTER();
  PX_REQUIRE(is_event(event) && px_is_stream(stream), cudaErrorInvalidResourceHandle);
  PX_REQUIRE(!(flags & ~1u), cudaErrorInvalidValue);
  struct px_stream *own = px_stream_of(stream);
  if (own->capture) {
    forget(event);
    event->capture = px_capture_id(own);
    event->node = own->tail;
    return px_report(cudaSuccess);
  }
  cudaError_t error = px_submit(stream, px_work_new(PX_NOTHING), NULL, &item);
  if (error) return px_report(error);
  forget(event);
  event->item = item;
  return px_report(cudaSuccess);
}

PX_API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, 0);
}

PX_API cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  ENTER_EVENT(event);
  cudaError_t error = px_item_wait(event->item);
  return px_report(error ? error : px_enter());
}

PX_API cudaError_t cudaEventQuery(cudaEvent_t event) {
  ENTER_EVENT(event);
  return px_report(px_item_done(event->item) ? px_enter() : cudaErrorNotReady);
}

PX_API cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  PX_ENTER();
  PX_REQUIRE(!(flags & ~1u), cudaErrorInvalidValue);
  PX_REQUIRE(px_is_stream(stream) && is_event(event), cudaErrorInvalidResourceHandle);
  if (event->capture) return px_report(px_capture_join(px_stream_of(stream), event->capture, event->node));
  PX_REQUIRE(!px_stream_of(stream)->capture, cudaErrorStreamCaptureIsolation);
  if (px_item_done(event->item)) return px_report(cudaSuccess);
  return px_report(px_submit(stream, px_work_new(PX_NOTHING), event->item, NULL));
}

PX_API cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to) {
  PX_ENTER();
  PX_REQUIRE(milliseconds, cudaErrorInvalidValue);
  PX_REQUIRE(is_event(from) && is_event(to), cudaErrorInvalidResourceHandle);
  PX_REQUIRE(from->item && to->item && !((from->flags | to->flags) & DISABLE_TIMING), cudaErrorInvalidResourceHandle);
  PX_REQUIRE(px_item_done(from->item) && px_item_done(to->item), cudaErrorNotReady);
  const struct timespec *start = &from->item->at, *end = &to->item->at;
  *milliseconds = (float)((double)(end->tv_sec - start->tv_sec) * 1e3 + (double)(end->tv_nsec - start->tv_nsec) / 1e6);
  return px_report(cudaSuccess);
}

PX_API cudaError_t cudaEventElapsedTime_v2(float *milliseconds, cudaEvent_t from, cudaEvent_t to) {
  return cudaEventElapsedTime(milliseconds, from, to);
}

PX_API cudaError_t cudaEventDestroy(cudaEvent_t event) {
  PX_ENTER();
  PX_REQUIRE(is_event(event), cudaErrorInvalidResourceHandle);
  forget(event);
  event->mark = 0;
  free(event);
  return px_report(cudaSuccess);
}
