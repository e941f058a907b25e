/* context.c: contexts, and the stack of them that each thread has. */
#include "px_context.h"
#include <pthread.h>
#include <stdlib.h>
#include "core.h"
#include "px_stream.h"

enum { DEEPEST = 64 };

static _Atomic bool initialised;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t others;            /* contexts but for the primary one */
static size_t keepers;           /* addresses and memory of the program, which no context owns */
static _Atomic unsigned holders; /* of the primary one, by the driver API */
static _Atomic bool held_by_runtime;
_Alignas(PX_HANDLE_UNIT) px_context px_primary = {.owners = 1, .id = 1};

static _Thread_local px_context *stack[DEEPEST];
static _Thread_local unsigned depth;
static _Thread_local unsigned driver_calls; /* that this thread is in */

void px_initialise(void) { atomic_store(&initialised, true); }

bool px_is_initialised(void) { return atomic_load(&initialised); }

/* ---- which there are ---- */

bool px_primary_is_held(void) { return atomic_load(&held_by_runtime) || atomic_load(&holders); }

bool px_context_lives(const px_context *context) {
  return context == &px_primary ? px_primary_is_held() : px_is_live(context, PX_CONTEXT);
}

px_context *px_context_keep(px_context *context) {
  atomic_fetch_add(&context->owners, 1);
  return context;
}

void px_context_release(px_context *context) {
  if (atomic_fetch_sub(&context->owners, 1) == 1) free(context); /* the primary one always has an owner */
}

cudaError_t px_context_create(unsigned flags, px_context **out) {
  static unsigned long long last = 1;
  px_context *made = calloc(1, sizeof *made);
  if (!made || !px_live_add(made, PX_CONTEXT)) {
    free(made);
    return cudaErrorMemoryAllocation;
  }
  if (!px_context_push(made)) {
    px_live_remove(made, PX_CONTEXT);
    free(made);
    return cudaErrorInvalidValue;
  }
  atomic_init(&made->owners, 1);
  made->flags = flags;
  pthread_mutex_lock(&lock);
  made->id = ++last;
  others++;
  pthread_mutex_unlock(&lock);
  *out = made;
  return cudaSuccess;
}

/* Call with the lock held; resets the device where nobody uses it any more. */
static cudaError_t unlock_and_reset(void) {
  bool last = !others && !holders && !keepers && !atomic_load(&held_by_runtime);
  pthread_mutex_unlock(&lock);
  return last ? px_device_reset() : cudaSuccess;
}

static void end_handle(px_mortal *object) { px_context_release((px_context *)object); }

cudaError_t px_context_destroy(px_context *context) {
  if (!px_may_wait()) return cudaErrorNotPermitted;
  if (!px_live_remove(context, PX_CONTEXT)) return cudaErrorDeviceUninitialized;
  if (px_context_top() == context) px_context_pop();
  px_wait_all(); /* errors of what runs stay with it */
  px_end_later(&context->mortal, end_handle);
  pthread_mutex_lock(&lock);
  others--;
  return unlock_and_reset();
}

void px_device_keep(void) {
  pthread_mutex_lock(&lock);
  keepers++;
  pthread_mutex_unlock(&lock);
}

cudaError_t px_device_unkeep(unsigned times) {
  if (!times) return cudaSuccess;
  pthread_mutex_lock(&lock);
  keepers = keepers > times ? keepers - times : 0;
  return unlock_and_reset();
}

void px_device_unkept(void) {
  pthread_mutex_lock(&lock);
  keepers = 0;
  pthread_mutex_unlock(&lock);
}

/* ---- the primary one ---- */

void px_primary_retain(void) {
  pthread_mutex_lock(&lock);
  holders++;
  pthread_mutex_unlock(&lock);
}

bool px_primary_release(void) {
  pthread_mutex_lock(&lock);
  if (!holders) {
    pthread_mutex_unlock(&lock);
    return false;
  }
  holders--;
  unlock_and_reset();
  return true;
}

/* Those who have retained it keep it: it is as new to them. The runtime API gets it back by its next call. */
cudaError_t px_primary_reset(void) {
  pthread_mutex_lock(&lock);
  bool alone = !others;
  pthread_mutex_unlock(&lock);
  cudaError_t error = alone ? px_device_reset() : cudaSuccess;
  if (error) return error;
  atomic_store(&held_by_runtime, false);
  atomic_store(&px_primary.staying, cudaSuccess);
  return cudaSuccess;
}

/* ---- the thread's stack ---- */

px_context *px_context_top(void) { return depth ? stack[depth - 1] : NULL; }

bool px_context_push(px_context *context) {
  if (depth == DEEPEST) return false;
  stack[depth++] = context;
  return true;
}

void px_context_pop(void) {
  if (depth) depth--;
}

/* ---- a call ---- */

px_driver_call px_driver_call_begin(void) { return (px_driver_call){driver_calls++}; }

void px_driver_call_end(px_driver_call *call) { driver_calls = call->before; }

px_context *px_context_own(void) {
  px_context *top = px_context_top();
  if (driver_calls || (top && top != &px_primary)) return top ? top : &px_primary;
  if (!atomic_load(&held_by_runtime)) {
    px_initialise();
    atomic_store(&held_by_runtime, true);
  }
  if (!top) px_context_push(&px_primary);
  return &px_primary;
}

cudaError_t px_context_error(px_context *context) { return atomic_load(&context->staying); }

void px_stay_in(px_context *context, cudaError_t error) {
  cudaError_t none = cudaSuccess;
  atomic_compare_exchange_strong(&context->staying, &none, error);
}
