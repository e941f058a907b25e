/* stream.c: streams. */
#include <stdlib.h>
#include "px_graph.h"
#include "px_stream.h"

enum { NON_BLOCKING = 1 };

static bool is_default(cudaStream_t stream) { return (uintptr_t)stream <= 2; }

bool px_is_stream(cudaStream_t stream) { return is_default(stream) || px_is_live(stream, PX_STREAM); }

PX_API cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags, int priority) {
  static _Atomic unsigned long long last = 2;
  PX_ENTER();
  PX_REQUIRE(out && !(flags & ~(unsigned)NON_BLOCKING), cudaErrorInvalidValue);
  cudaStream_t stream = malloc(sizeof *stream);
  PX_REQUIRE(stream, cudaErrorMemoryAllocation);
  *stream = (struct px_stream){.flags = flags, .priority = priority, .id = ++last, .context = px_context_own()};
  if (!px_live_add(stream, PX_STREAM)) {
    free(stream);
    return px_report(cudaErrorMemoryAllocation);
  }
  px_stream_add(stream);
  *out = stream;
  return px_report(cudaSuccess);
}

PX_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags) {
  return cudaStreamCreateWithPriority(out, flags, 0);
}

PX_API cudaError_t cudaStreamCreate(cudaStream_t *out) { return cudaStreamCreateWithPriority(out, 0, 0); }

/* What is in the stream goes on. */
PX_API cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  PX_ENTER();
  PX_REQUIRE(!is_default(stream) && px_is_stream(stream), cudaErrorInvalidResourceHandle);
  px_graph_lock(); /* no capture begins meanwhile */
  bool captured = !px_capture_leave(stream), live = !captured && px_live_remove(stream, PX_STREAM);
  stream->gone = stream->gone || live;
  px_graph_unlock();
  PX_REQUIRE(!captured, cudaErrorStreamCaptureUnsupported);
  PX_REQUIRE(live, cudaErrorInvalidResourceHandle);
  px_stream_remove(stream);
  return px_report(cudaSuccess);
}

/* Begin a function that a stream which is being captured does not allow. */
#define ENTER_NOW(stream)                                           \
  PX_ENTER();                                                       \
  PX_REQUIRE(px_is_stream(stream), cudaErrorInvalidResourceHandle); \
  cudaError_t px_captured = px_capture_refuse(stream);              \
  PX_REQUIRE(!px_captured, px_captured)

PX_API cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  ENTER_NOW(stream);
  cudaError_t error = px_stream_wait(stream);
  return px_report(error ? error : px_enter());
}

PX_API cudaError_t cudaStreamQuery(cudaStream_t stream) {
  ENTER_NOW(stream);
  return px_report(px_stream_idle(stream) ? px_enter() : cudaErrorNotReady);
}

/* Begin a question about a stream. */
#define ENTER_KNOWN(stream, out)          \
  PX_ENTER();                             \
  PX_REQUIRE(out, cudaErrorInvalidValue); \
  PX_REQUIRE(px_is_stream(stream), cudaErrorInvalidResourceHandle)

PX_API cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned *flags) {
  ENTER_KNOWN(stream, flags);
  *flags = px_stream_of(stream)->flags;
  return px_report(cudaSuccess);
}

PX_API cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority) {
  ENTER_KNOWN(stream, priority);
  *priority = px_stream_of(stream)->priority;
  return px_report(cudaSuccess);
}

PX_API cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id) {
  ENTER_KNOWN(stream, id);
  *id = is_default(stream) ? (uintptr_t)stream : stream->id;
  return px_report(cudaSuccess);
}

PX_API cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  PX_ENTER();
  if (least) *least = 0;
  if (greatest) *greatest = 0; /* all are the same */
  return px_report(cudaSuccess);
}

/* ---- functions of the program, in the order of a stream ---- */

px_work *px_host_work(cudaHostFn_t function, void *data) {
  px_work *work = px_work_new(PX_HOST);
  if (!work) return NULL;
  work->function = function;
  work->data = data;
  return work;
}

PX_API cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data) {
  PX_ENTER();
  PX_REQUIRE(px_is_stream(stream), cudaErrorInvalidResourceHandle);
  PX_REQUIRE(function, cudaErrorInvalidValue);
  return px_report(px_submit(stream, px_host_work(function, data)));
}

PX_API cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function, void *data, unsigned flags) {
  ENTER_NOW(stream);
  PX_REQUIRE(function && !flags, cudaErrorInvalidValue);
  px_work *work = px_work_new(PX_HOST);
  PX_REQUIRE(work, cudaErrorMemoryAllocation);
  work->callback = function;
  work->stream = stream;
  work->data = data;
  return px_report(px_submit(stream, work));
}
