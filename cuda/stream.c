/* stream.c: streams and events. Work is done at once, so that a stream is idle and an event has come as soon as it is recorded. */
#include <stdlib.h>
#include <time.h>
#include "core.h"

enum { STREAM = 0x53747265, EVENT = 0x4576656e };
enum { NON_BLOCKING = 1 };
enum { BLOCKING_SYNC = 1, DISABLE_TIMING = 2, INTERPROCESS = 4 };

struct px_stream {
  uint32_t mark; /* STREAM */
  unsigned flags;
  int priority;
  unsigned long long id;
};

struct px_event {
  uint32_t mark; /* EVENT */
  unsigned flags;
  bool recorded;
  struct timespec at;
};

static bool is_default(cudaStream_t stream) { return (uintptr_t)stream <= 2; }

bool px_is_stream(cudaStream_t stream) { return is_default(stream) || stream->mark == STREAM; }

static bool is_event(cudaEvent_t event) { return event && event->mark == EVENT; }

/* ---- streams ---- */

PX_API cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags, int priority) {
  static _Atomic unsigned long long last = 2;
  PX_ENTER();
  PX_REQUIRE(out && !(flags & ~(unsigned)NON_BLOCKING), cudaErrorInvalidValue);
  cudaStream_t stream = malloc(sizeof *stream);
  PX_REQUIRE(stream, cudaErrorMemoryAllocation);
  *stream = (struct px_stream){.mark = STREAM, .flags = flags, .priority = priority, .id = ++last};
  *out = stream;
  return px_report(cudaSuccess);
}

PX_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags) {
  return cudaStreamCreateWithPriority(out, flags, 0);
}

PX_API cudaError_t cudaStreamCreate(cudaStream_t *out) { return cudaStreamCreateWithPriority(out, 0, 0); }

PX_API cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  PX_ENTER();
  PX_REQUIRE(!is_default(stream) && px_is_stream(stream), cudaErrorInvalidResourceHandle);
  stream->mark = 0;
  free(stream);
  return px_report(cudaSuccess);
}

static cudaError_t idle(cudaStream_t stream) {
  PX_ENTER();
  return px_report(px_is_stream(stream) ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

PX_API cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return idle(stream); }

PX_API cudaError_t cudaStreamQuery(cudaStream_t stream) { return idle(stream); }

PX_API cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned *flags) {
  PX_REQUIRE(flags, cudaErrorInvalidValue);
  cudaError_t error = idle(stream);
  if (!error) *flags = is_default(stream) ? 0 : stream->flags;
  return error;
}

PX_API cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority) {
  PX_REQUIRE(priority, cudaErrorInvalidValue);
  cudaError_t error = idle(stream);
  if (!error) *priority = is_default(stream) ? 0 : stream->priority;
  return error;
}

PX_API cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id) {
  PX_REQUIRE(id, cudaErrorInvalidValue);
  cudaError_t error = idle(stream);
  if (!error) *id = is_default(stream) ? (uintptr_t)stream : stream->id;
  return error;
}

PX_API cudaError_t cudaStreamIsCapturing(cudaStream_t stream, int *status) {
  PX_REQUIRE(status, cudaErrorInvalidValue);
  cudaError_t error = idle(stream);
  if (!error) *status = 0;
  return error;
}

PX_API cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  PX_ENTER();
  if (least) *least = 0;
  if (greatest) *greatest = 0; /* all are the same */
  return px_report(cudaSuccess);
}

PX_API cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data) {
  PX_REQUIRE(function, cudaErrorInvalidValue);
  cudaError_t error = idle(stream);
  if (!error) function(data);
  return error;
}

PX_API cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function, void *data, unsigned flags) {
  PX_REQUIRE(function && !flags, cudaErrorInvalidValue);
  cudaError_t error = idle(stream);
  if (!error) function(stream, cudaSuccess, data);
  return error;
}

/* ---- events ---- */

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

PX_API cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  PX_ENTER();
  PX_REQUIRE(is_event(event) && px_is_stream(stream), cudaErrorInvalidResourceHandle);
  PX_REQUIRE(!(flags & ~1u), cudaErrorInvalidValue);
  clock_gettime(CLOCK_MONOTONIC, &event->at);
  event->recorded = true;
  return px_report(cudaSuccess);
}

PX_API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, 0);
}

static cudaError_t come(cudaEvent_t event) {
  PX_ENTER();
  return px_report(is_event(event) ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

PX_API cudaError_t cudaEventSynchronize(cudaEvent_t event) { return come(event); }

PX_API cudaError_t cudaEventQuery(cudaEvent_t event) { return come(event); }

PX_API cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  PX_REQUIRE(!(flags & ~1u), cudaErrorInvalidValue);
  PX_REQUIRE(px_is_stream(stream), cudaErrorInvalidResourceHandle);
  return come(event);
}

PX_API cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to) {
  PX_ENTER();
  PX_REQUIRE(milliseconds, cudaErrorInvalidValue);
  PX_REQUIRE(is_event(from) && is_event(to), cudaErrorInvalidResourceHandle);
  PX_REQUIRE(from->recorded && to->recorded && !((from->flags | to->flags) & DISABLE_TIMING),
             cudaErrorInvalidResourceHandle);
  double seconds = (double)(to->at.tv_sec - from->at.tv_sec);
  *milliseconds = (float)(seconds * 1e3 + (double)(to->at.tv_nsec - from->at.tv_nsec) / 1e6);
  return px_report(cudaSuccess);
}

PX_API cudaError_t cudaEventDestroy(cudaEvent_t event) {
  PX_ENTER();
  PX_REQUIRE(is_event(event), cudaErrorInvalidResourceHandle);
  event->mark = 0;
  free(event);
  return px_report(cudaSuccess);
}

PX_API cudaError_t cudaEventElapsedTime_v2(float *milliseconds, cudaEvent_t from, cudaEvent_t to) {
  return cudaEventElapsedTime(milliseconds, from, to);
}
