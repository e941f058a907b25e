/* event.c: events, which come when all is done that was in their stream before them. */
#include <stdlib.h>
#include "px_graph.h"
#include "px_ipc.h"
#include "px_stream.h"

bool px_is_event(cudaEvent_t event) { return px_is_live(event, PX_EVENT); }

cudaEvent_t px_event_keep(cudaEvent_t event) {
  atomic_fetch_add(&event->owners, 1);
  return event;
}

void px_event_release(cudaEvent_t event) {
  if (atomic_fetch_sub(&event->owners, 1) != 1) return;
  if (event->item) px_item_release(event->item);
  if (event->shared) px_shared_close(event->shared);
  free(event->behind.node);
  free(event);
}

/* Begin a function that an event of a capture does not allow. */
#define ENTER_EVENT(event)                                        \
  PX_ENTER();                                                     \
  PX_REQUIRE(px_is_event(event), cudaErrorInvalidResourceHandle); \
  cudaError_t px_captured = px_capture_refuse_event(event);       \
  PX_REQUIRE(!px_captured, px_captured)

cudaError_t px_event_new(px_shared_event *shared, unsigned flags, cudaEvent_t *out) {
  cudaEvent_t event = malloc(sizeof *event);
  if (event) {
    *event = (struct px_event){.flags = flags, .shared = shared};
    atomic_init(&event->owners, 1);
  }
  if (!event || !px_live_add(event, PX_EVENT)) {
    if (shared) px_shared_close(shared);
    free(event);
    return cudaErrorMemoryAllocation;
  }
  *out = event;
  return cudaSuccess;
}

PX_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags) {
  enum { ALL = PX_EVENT_BLOCKING | PX_EVENT_NO_TIMING | PX_EVENT_INTERPROCESS };
  PX_ENTER();
  PX_REQUIRE(out && !(flags & ~(unsigned)ALL), cudaErrorInvalidValue);
  bool shares = flags & PX_EVENT_INTERPROCESS;
  PX_REQUIRE(!shares || flags & PX_EVENT_NO_TIMING, cudaErrorInvalidValue);
  px_shared_event *shared = shares ? px_shared_new() : NULL;
  PX_REQUIRE(shared || !shares, cudaErrorMemoryAllocation);
  return px_report(px_event_new(shared, flags, out));
}

PX_API cudaError_t cudaEventCreate(cudaEvent_t *out) { return cudaEventCreateWithFlags(out, 0); }

enum { EXTERNAL = 1 }; /* in a capture: a node of the graph, instead of a place in it */

PX_API cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  cudaError_t error;
  PX_ENTER();
  PX_REQUIRE(px_is_event(event) && px_is_stream(stream), cudaErrorInvalidResourceHandle);
  PX_REQUIRE(!(flags & ~(unsigned)EXTERNAL), cudaErrorInvalidValue);
  if (!(flags & EXTERNAL) && px_capture_record(px_stream_of(stream), event, &error)) return px_report(error);
  return px_report(px_submit(stream, px_work_event(PX_RECORD, event)));
}

PX_API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, 0);
}

/* Wait until all processes have done what came before the last record. */
static cudaError_t wait_shared(px_shared_event *shared) {
  uint64_t record = px_shared_last(shared);
  while (!px_shared_is_done(shared, record)) {
    if (!px_may_wait()) return cudaErrorNotPermitted;
    if (!px_shared_await(shared, record)) return cudaErrorLaunchFailure;
  }
  return cudaSuccess;
}

static cudaError_t wait_own(cudaEvent_t event) {
  px_item *item = px_event_item(event);
  cudaError_t error = px_item_wait(item);
  if (item) px_item_release(item);
  return error;
}

PX_API cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  ENTER_EVENT(event);
  cudaError_t error = event->shared ? wait_shared(event->shared) : wait_own(event);
  return px_report(error ? error : px_enter());
}

/* Whether all is done that came before the last record of an event. */
static bool is_done(cudaEvent_t event) {
  if (event->shared) return px_shared_is_done(event->shared, px_shared_last(event->shared));
  px_item *item = px_event_item(event);
  bool done = px_item_done(item);
  if (item) px_item_release(item);
  return done;
}

PX_API cudaError_t cudaEventQuery(cudaEvent_t event) {
  ENTER_EVENT(event);
  return px_report(is_done(event) ? px_enter() : cudaErrorNotReady);
}

PX_API cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  cudaError_t error;
  PX_ENTER();
  PX_REQUIRE(!(flags & ~(unsigned)EXTERNAL), cudaErrorInvalidValue);
  PX_REQUIRE(px_is_stream(stream) && px_is_event(event), cudaErrorInvalidResourceHandle);
  if (!(flags & EXTERNAL) && px_capture_join(px_stream_of(stream), event, &error)) return px_report(error);
  return px_report(is_done(event) && !px_is_captured(stream) ? cudaSuccess
                                                             : px_submit(stream, px_work_event(PX_WAIT, event)));
}

/* Nanoseconds at which an event came; -1: it has not come yet, -2: it was never recorded. */
static double time_of(cudaEvent_t event) {
  px_item *item = px_event_item(event);
  if (!item) return -2;
  double at = px_item_done(item) ? (double)item->at.tv_sec * 1e9 + (double)item->at.tv_nsec : -1;
  px_item_release(item);
  return at;
}

PX_API cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to) {
  PX_ENTER();
  PX_REQUIRE(milliseconds, cudaErrorInvalidValue);
  PX_REQUIRE(px_is_event(from) && px_is_event(to), cudaErrorInvalidResourceHandle);
  double start = time_of(from), end = time_of(to);
  PX_REQUIRE(start != -2 && end != -2 && !((from->flags | to->flags) & PX_EVENT_NO_TIMING), cudaErrorInvalidResourceHandle);
  PX_REQUIRE(start >= 0 && end >= 0, cudaErrorNotReady);
  *milliseconds = (float)((end - start) / 1e6);
  return px_report(cudaSuccess);
}

PX_API cudaError_t cudaEventElapsedTime_v2(float *milliseconds, cudaEvent_t from, cudaEvent_t to) {
  return cudaEventElapsedTime(milliseconds, from, to);
}

static void end_handle(px_mortal *object) { px_event_release((cudaEvent_t)object); }

PX_API cudaError_t cudaEventDestroy(cudaEvent_t event) {
  PX_ENTER();
  PX_REQUIRE(px_live_remove(event, PX_EVENT), cudaErrorInvalidResourceHandle);
  px_end_later(&event->mortal, end_handle);
  return px_report(cudaSuccess);
}
