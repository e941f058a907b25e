/* queue.c: work is submitted, and waited for. */
#include <stdlib.h>
#include "px_graph.h"
#include "px_queue.h"

/* ---- submission ---- */

static cudaError_t submit(struct px_stream *stream, px_work *work, px_item **out) {
  px_item *item = px_item_new(work, px_context_own());
  if (!item) {
    px_work_release(work);
    return cudaErrorMemoryAllocation;
  }
  px_queue_lock();
  px_stream_bury();
  if (!px_stream_visit(stream, px_item_follow, item) || !px_event_heed(item)) px_item_give_up(item);
  if (!out) px_stream_set_last(stream, item);
  item->owners++;
  bool ready = item->direct = !item->missing;
  px_pending++;
  px_queue_unlock();
  if (ready) px_perform_all(item);
  px_queue_lock();
  cudaError_t error = item->done || !item->work ? item->error : cudaSuccess;
  if (!out || error) px_item_disown(item);
  if (out) *out = error ? NULL : item;
  px_queue_unlock();
  return error;
}

cudaError_t px_submit(cudaStream_t handle, px_work *work) {
  struct px_stream *stream = px_stream_of(handle);
  cudaError_t error;
  if (!work) return cudaErrorMemoryAllocation;
  if (px_capture(stream, work, &error)) return error;
  return submit(stream, work, NULL);
}

cudaError_t px_submit_graph(cudaStream_t handle, px_plan *plan, px_item **last) {
  struct px_stream *stream = px_stream_of(handle);
  px_item **items = px_plan_items(plan, px_context_own());
  if (!items) return cudaErrorMemoryAllocation;
  px_item *end = items[plan->count + 1];
  items[0]->plan = px_plan_keep(plan);
  px_queue_lock();
  px_stream_bury();
  bool fits =
      px_stream_visit(stream, px_item_follow, items[0]) && px_item_follow(items[0], *last) && px_plan_follow(plan, items);
  px_stream_set_last(stream, end);
  px_item_disown(*last);
  end->owners++;
  *last = end;
  px_item *ready = px_plan_enqueue(plan, items, fits, NULL);
  px_queue_unlock();
  px_perform_all(ready);
  free(items);
  return fits ? cudaSuccess : cudaErrorMemoryAllocation;
}

/* ---- waiting ---- */

bool px_item_done(px_item *item) {
  px_queue_lock();
  bool done = !item || item->done;
  px_queue_unlock();
  return done;
}

cudaError_t px_item_wait(px_item *item) {
  px_queue_lock();
  bool allowed = !item || item->done || px_may_wait();
  while (allowed && item && !item->done) px_queue_await();
  px_queue_unlock();
  return allowed ? cudaSuccess : cudaErrorNotPermitted;
}

cudaError_t px_stream_wait(cudaStream_t stream) {
  px_item *end;
  if (px_stream_idle(stream)) return cudaSuccess;
  if (!px_may_wait()) return cudaErrorNotPermitted;
  px_work *nothing = px_work_new(PX_NOTHING);
  cudaError_t error = nothing ? submit(px_stream_of(stream), nothing, &end) : cudaErrorMemoryAllocation;
  if (error) return error;
  error = px_item_wait(end);
  px_item_release(end);
  return error;
}

cudaError_t px_wait_all(void) {
  px_queue_lock();
  bool allowed = !px_pending || px_may_wait();
  while (allowed && px_pending) px_queue_await();
  px_queue_unlock();
  return allowed ? cudaSuccess : cudaErrorNotPermitted;
}
