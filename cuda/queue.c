/* queue.c: items of work, each of which waits for others.
 *
 * One lock guards all streams and items. Whoever finishes an item starts those that have waited for it alone: a thread of the pool at the
 * end of a launch, the thread of the functions of the program, or the one that submits. No lock is held meanwhile.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "fault_text.h"
#include "px_graph.h"
#include "px_ipc.h"
#include "px_stream.h"

enum { OUTPUT = 1 << 12 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct px_stream legacy, for_threads = {.id = 2};
static struct px_stream *streams = &for_threads; /* but for the legacy one */
static size_t pending;
static px_item *running;  /* launches on the pool's threads */
static unsigned stopping; /* calls of px_stop_all: nothing more is begun */

enum { NON_BLOCKING = 1 };

/* ---- items ---- */

static px_item *keep(px_item *item) {
  pthread_mutex_lock(&lock);
  item->owners++;
  pthread_mutex_unlock(&lock);
  return item;
}

/* With the lock held. */
static void disown(px_item *item) {
  if (!item || --item->owners) return;
  px_context_release(item->context);
  free(item->after);
  free(item);
}

void px_item_release(px_item *item) {
  pthread_mutex_lock(&lock);
  disown(item);
  pthread_mutex_unlock(&lock);
}

/* Owned by the queue until it is done. */
static px_item *new_item(px_work *work, px_context *context) {
  px_item *item = calloc(1, sizeof *item);
  if (!item) return NULL;
  *item = (px_item){.owners = 1, .work = work, .context = px_context_keep(context)};
  return item;
}

/* Let an item wait for another one. With the lock held. */
static bool follow(px_item *item, px_item *before) {
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

/* ---- streams ---- */

struct px_stream *px_stream_of(cudaStream_t stream) {
  uintptr_t number = (uintptr_t)stream;
  return number == 2 ? &for_threads : number < 2 ? &legacy : stream;
}

void px_stream_add(struct px_stream *stream) {
  pthread_mutex_lock(&lock);
  stream->next = streams;
  streams = stream;
  pthread_mutex_unlock(&lock);
}

static void end_stream(px_mortal *object) {
  struct px_stream *stream = (struct px_stream *)object;
  if (stream->last) px_item_release(stream->last);
  free(stream->tail.node);
  free(stream);
}

/* Forget destroyed streams whose work is done. With the lock held. */
static void bury(void) {
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
  pthread_mutex_lock(&lock);
  stream->dead = true;
  bury();
  pthread_mutex_unlock(&lock);
}

/* Look at each item that new work in a stream has to wait for, until one is not as it should be. With the lock held. */
static bool visit(const struct px_stream *stream, bool (*look)(px_item *item, px_item *before), px_item *item) {
  bool fits = look(item, stream->last);
  if (stream == &legacy)
    for (const struct px_stream *other = streams; fits && other; other = other->next)
      fits = other->flags & NON_BLOCKING || look(item, other->last);
  else if (!(stream->flags & NON_BLOCKING))
    fits = fits && look(item, legacy.last);
  return fits;
}

static bool is_done(px_item *item, px_item *before) {
  (void)item;
  return !before || before->done;
}

static void set_last(struct px_stream *stream, px_item *item) {
  disown(stream->last);
  item->owners++;
  stream->last = item;
}

/* ---- doing it ---- */

static void run_all(px_item *ready);

static bool is_dropped(const px_item *item) {
  pthread_mutex_lock(&lock);
  bool dropped = stopping;
  pthread_mutex_unlock(&lock);
  return dropped || (px_context_error(item->context) && !(item->work && item->work->kind == PX_HOST));
}

/* Other processes need not wait any more for the record of an event. */
static void end_record(const px_item *item) {
  if (item->work && item->work->kind == PX_RECORD && item->record) px_shared_end(item->work->event->shared, item->record);
}

/* An item is done: what can be begun now, before `rest`. */
static px_item *finish(px_item *item, px_item *rest) {
  end_record(item);
  px_work_release(item->work);
  px_plan_release(item->plan);
  pthread_mutex_lock(&lock);
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
  pending--;
  disown(item);
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  return rest;
}

static void drain(pe_launch *launch) {
  char text[OUTPUT];
  size_t size;
  while ((size = pe_launch_output(launch, text, sizeof text))) fwrite(text, 1, size, stdout);
}

/* A launch has ended: an error of the kernel stays. */
static void settle(px_item *item, pe_launch *launch) {
  pe_counters counters;
  drain(launch);
  pe_launch_result(launch, NULL, &counters);
  if (counters.kind == PE_STOPPED) return;
  if (counters.kind != PE_OK)
    px_stay_in(item->context, px_say_fault(launch, counters.kind));
  else if (counters.no_memory)
    px_stay_in(item->context, cudaErrorLaunchOutOfResources);
}

/* On a thread of the pool. */
static void ended(void *context, pe_launch *launch) {
  px_item *item = context;
  pthread_mutex_lock(&lock);
  item->over = true;
  for (px_item **at = &running; *at; at = &(*at)->next)
    if (*at == item) {
      *at = item->next;
      break;
    }
  pthread_mutex_unlock(&lock);
  settle(item, launch);
  pe_launch_destroy(launch);
  run_all(finish(item, NULL));
}

/* A launch that could not be started: an error of the call that asks for it, if that does it itself. */
static void fail(px_item *item, int error) {
  if (item->direct)
    item->error = px_start_error(error);
  else
    px_stay_in(item->context, px_start_error(error));
}

/* Start a launch on the pool's threads, where it may have ended when this returns. false: it cannot be. */
static bool start(px_item *item) {
  char message[PE_MESSAGE_BYTES];
  pe_launch *launch;
  pe_start what = item->work->start;
  what.ended = ended;
  what.context = keep(item);
  int error = pe_start_launch(&what, &launch, message);
  if (error) fail(item, error);
  pthread_mutex_lock(&lock);
  if (!error && !item->over) {
    item->running = launch;
    item->next = running;
    running = item;
    if (stopping) pe_launch_request_stop(launch);
  }
  disown(item);
  pthread_mutex_unlock(&lock);
  return !error;
}

/* Launch on this thread. */
static void launch_here(px_item *item, const pe_start *what) {
  char message[PE_MESSAGE_BYTES];
  pe_launch *launch;
  int error = pe_start_launch(what, &launch, message);
  if (error) {
    fail(item, error);
    return;
  }
  pe_launch_wait(launch, UINT32_MAX);
  settle(item, launch);
  pe_launch_destroy(launch);
}

/* Launch; false: it goes on. */
static bool launch(px_item *item) {
  pe_start what = item->work->start;
  what.waited = 1;
  if (!pe_start_is_brief(&what)) return !start(item);
  launch_here(item, &what);
  return true;
}

/* Do work, or begin it; false: it goes on, and whoever ends it calls `finish`. What can be begun by that goes before `*ready`. */
static bool perform(px_item *item, px_item **ready);

/* Do items, and those that come to be ready by that. */
static void run_all(px_item *ready) {
  while (ready) {
    px_item *item = ready;
    ready = item->next;
    item->next = NULL;
    if (perform(item, &ready)) ready = finish(item, ready);
  }
}

/* ---- functions of the program, on a thread of their own ---- */

static pthread_cond_t called = PTHREAD_COND_INITIALIZER;
static px_item *calls, **calls_end = &calls;
static _Thread_local bool is_caller;

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
    run_all(finish(item, NULL));
  }
  return unused;
}

static bool call(px_item *item) {
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

/* ---- events of other processes: each wait is a thread, as it may take any time ---- */

static void *await_record(void *argument) {
  px_item *item = argument;
  px_shared_event *event = item->work->event->shared;
  while (!px_shared_is_done(event, item->record) && !is_dropped(item))
    if (!px_shared_await(event, item->record)) px_stay_in(item->context, cudaErrorLaunchFailure);
  run_all(finish(item, NULL));
  return NULL;
}

static bool await(px_item *item) {
  const px_shared_event *event = item->work->event->shared;
  if (!event || px_shared_is_done(event, item->record)) return true;
  if (!pe_thread_start(await_record, item)) return false;
  px_stay_in(item->context, cudaErrorMemoryAllocation);
  return true;
}

/* ---- graphs ---- */

/* An item for which no memory was left to wait properly does nothing. */
static void give_up(px_item *item) {
  end_record(item);
  px_work_release(item->work);
  px_plan_release(item->plan);
  item->work = NULL;
  item->plan = NULL;
  item->branch = NULL;
  item->error = cudaErrorMemoryAllocation;
}

/* What work on events means for the order of items; false: there is no memory. With the lock held. */
static bool heed_event(px_item *item) {
  struct px_event *event = item->work ? item->work->event : NULL;
  if (!event) return true;
  bool waits = item->work->kind == PX_WAIT;
  if (event->shared) item->record = waits ? px_shared_last(event->shared) : px_shared_record(event->shared);
  if (waits) return follow(item, event->item);
  disown(event->item);
  item->owners++;
  event->item = item;
  return true;
}

/* The item of a plan's node. */
static void fill(px_item *item, px_plan *plan, size_t number) {
  if (plan->work[number]) item->work = px_work_keep(plan->work[number]);
  item->branch = plan->branch[number];
  if (item->branch) item->plan = px_plan_keep(plan);
}

/* Items for a plan, between one before and one behind all of them; NULL: there is no memory. */
static px_item **new_items(px_plan *plan, px_context *context) {
  size_t count = plan->count + 2, made = 0;
  px_item **items = calloc(count, sizeof *items);
  if (!items) return NULL;
  while (made < count && (items[made] = new_item(NULL, context))) made++;
  for (size_t i = 0; made == count && i < plan->count; i++) fill(items[i + 1], plan, i);
  if (made == count) return items;
  while (made--) px_item_release(items[made]);
  free(items);
  return NULL;
}

/* Let the items of a plan wait for each other. With the lock held. */
static bool follow_plan(const px_plan *plan, px_item **items) {
  px_item *begin = items[0], *end = items[plan->count + 1];
  bool fits = true;
  for (size_t i = 0; i < plan->edges; i++) fits = fits && follow(items[plan->edge[i][1] + 1], items[plan->edge[i][0] + 1]);
  for (size_t i = 1; i <= plan->count; i++) {
    if (!items[i]->missing) fits = fits && follow(items[i], begin);
    fits = fits && follow(end, items[i]);
  }
  if (!plan->count) fits = fits && follow(end, begin);
  for (size_t i = 1; i <= plan->count; i++) fits = fits && heed_event(items[i]);
  return fits;
}

/* The items of a plan are under way: those that can be begun, before `rest`. With the lock held. */
static px_item *enqueue(const px_plan *plan, px_item **items, bool fits, px_item *rest) {
  for (size_t i = 0; !fits && i < plan->count + 2; i++) give_up(items[i]);
  pending += plan->count + 2;
  for (size_t i = plan->count + 2; i-- > 0;) {
    if (items[i]->missing) continue;
    items[i]->next = rest;
    rest = items[i];
  }
  return rest;
}

/* ---- graphs that a value chooses ---- */

static void set_values(const px_plan *plan) {
  for (size_t i = 0; i < plan->starts; i++) px_block_set_value(plan->start[i].value, plan->start[i].word);
  for (size_t i = 0; i < plan->count; i++)
    for (unsigned k = 0; plan->branch[i] && k < plan->branch[i]->count; k++) set_values(plan->branch[i]->plan[k]);
}

/* What is to be done, for the first time or again; NULL: nothing more. */
static px_plan *chosen_plan(const px_branch *branch, bool again) {
  uint32_t value = px_block_value(branch->value);
  switch (branch->kind) {
    case cudaGraphCondTypeWhile: return value ? branch->plan[0] : NULL;
    case cudaGraphCondTypeIf:
      if (again) return NULL;
      return value ? branch->plan[0] : branch->count > 1 ? branch->plan[1] : NULL;
    default: return !again && value < branch->count ? branch->plan[value] : NULL;
  }
}

/* Begin the graph that an item chooses, behind which the item comes again; true: there is none, or none any more. */
static bool choose(px_item *item, px_item **ready) {
  px_plan *plan = chosen_plan(item->branch, item->chosen);
  item->chosen = true;
  if (!plan) return true;
  px_item **items = new_items(plan, item->context);
  bool fits = items != NULL, goes_on = false;
  if (fits) {
    pthread_mutex_lock(&lock);
    px_item *end = items[plan->count + 1];
    goes_on = follow(item, end);
    fits = goes_on && follow_plan(plan, items);
    *ready = enqueue(plan, items, fits, *ready);
    pthread_mutex_unlock(&lock);
    free(items);
  }
  if (!fits) px_stay_in(item->context, cudaErrorMemoryAllocation);
  return !goes_on;
}

static bool perform(px_item *item, px_item **ready) {
  if (is_dropped(item)) return true;
  if (item->branch) return choose(item, ready);
  if (item->plan) set_values(item->plan);
  if (!item->work) return true;
  switch (item->work->kind) {
    case PX_LAUNCH: return launch(item);
    case PX_HOST: return call(item);
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

/* ---- submission ---- */

static cudaError_t submit(struct px_stream *stream, px_work *work, px_item **out) {
  px_item *item = new_item(work, px_context_own());
  if (!item) {
    px_work_release(work);
    return cudaErrorMemoryAllocation;
  }
  pthread_mutex_lock(&lock);
  bury();
  if (!visit(stream, follow, item) || !heed_event(item)) give_up(item);
  if (!out) set_last(stream, item);
  item->owners++;
  bool ready = item->direct = !item->missing;
  pending++;
  pthread_mutex_unlock(&lock);
  if (ready) run_all(item);
  pthread_mutex_lock(&lock);
  cudaError_t error = item->done || !item->work ? item->error : cudaSuccess;
  if (!out || error) disown(item);
  if (out) *out = error ? NULL : item;
  pthread_mutex_unlock(&lock);
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
  px_item **items = new_items(plan, px_context_own());
  if (!items) return cudaErrorMemoryAllocation;
  px_item *end = items[plan->count + 1];
  items[0]->plan = px_plan_keep(plan);
  pthread_mutex_lock(&lock);
  bury();
  bool fits = visit(stream, follow, items[0]) && follow(items[0], *last) && follow_plan(plan, items);
  set_last(stream, end);
  disown(*last);
  end->owners++;
  *last = end;
  px_item *ready = enqueue(plan, items, fits, NULL);
  pthread_mutex_unlock(&lock);
  run_all(ready);
  free(items);
  return fits ? cudaSuccess : cudaErrorMemoryAllocation;
}

/* ---- waiting ---- */

px_item *px_event_item(cudaEvent_t event) {
  pthread_mutex_lock(&lock);
  px_item *item = event->item;
  if (item) item->owners++;
  pthread_mutex_unlock(&lock);
  return item;
}

bool px_item_done(px_item *item) {
  pthread_mutex_lock(&lock);
  bool done = !item || item->done;
  pthread_mutex_unlock(&lock);
  return done;
}

cudaError_t px_item_wait(px_item *item) {
  pthread_mutex_lock(&lock);
  bool allowed = !item || item->done || !is_caller;
  while (allowed && item && !item->done) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
  return allowed ? cudaSuccess : cudaErrorNotPermitted;
}

bool px_stream_idle(cudaStream_t stream) {
  pthread_mutex_lock(&lock);
  bool idle = !pending || visit(px_stream_of(stream), is_done, NULL);
  pthread_mutex_unlock(&lock);
  return idle;
}

cudaError_t px_stream_wait(cudaStream_t stream) {
  px_item *end;
  if (px_stream_idle(stream)) return cudaSuccess;
  if (is_caller) return cudaErrorNotPermitted;
  px_work *nothing = px_work_new(PX_NOTHING);
  cudaError_t error = nothing ? submit(px_stream_of(stream), nothing, &end) : cudaErrorMemoryAllocation;
  if (error) return error;
  error = px_item_wait(end);
  px_item_release(end);
  return error;
}

cudaError_t px_wait_all(void) {
  pthread_mutex_lock(&lock);
  bool allowed = !pending || !is_caller;
  while (allowed && pending) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
  return allowed ? cudaSuccess : cudaErrorNotPermitted;
}

bool px_may_wait(void) { return !is_caller; }

void px_stop_all(void) {
  pthread_mutex_lock(&lock);
  stopping++;
  while (pending) {
    for (const px_item *item = running; item; item = item->next) pe_launch_request_stop(item->running);
    pthread_cond_wait(&changed, &lock);
  }
  stopping--;
  pthread_mutex_unlock(&lock);
}
