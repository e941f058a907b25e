/* context.c: contexts, and the stack of them that each thread has.
 *
 * There is one device, whose memory and modules all contexts share; what a context has of its own is an error that stays. When no
 * context is left, the device is reset.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "driver.h"
#include "px_stream.h"

enum { DEEPEST = 64, API_VERSION = 3020 };

struct px_driver_context {
  CUcontext next;
  px_context core;
  unsigned flags;
  unsigned long long id;
  bool primary;
};

static _Atomic bool initialised;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUcontext contexts; /* that live, the primary one aside */
static struct px_driver_context primary = {.id = 1, .primary = true};
static unsigned retained; /* how often the primary context is */

static _Thread_local CUcontext stack[DEEPEST];
static _Thread_local unsigned depth;

/* ---- which lives ---- */

static bool lives(CUcontext context) {
  pthread_mutex_lock(&lock);
  CUcontext at = contexts;
  while (at && at != context) at = at->next;
  bool found = at || (context == &primary && retained);
  pthread_mutex_unlock(&lock);
  return found;
}

CUcontext cu_current(void) { return depth ? stack[depth - 1] : NULL; }

/* The primary context's error is that of the runtime API. */
static px_context *core_of(CUcontext context) { return context == &primary ? &px_primary : &context->core; }

CUresult cu_enter(void) {
  CUcontext context = cu_current();
  CU_REQUIRE(atomic_load(&initialised), CUDA_ERROR_NOT_INITIALIZED);
  CU_REQUIRE(context, CUDA_ERROR_INVALID_CONTEXT);
  CU_REQUIRE(lives(context), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  px_context_use(core_of(context));
  return cu_result(px_enter());
}

CUresult cu_enter_any(void) {
  if (cu_current()) return cu_enter();
  CU_REQUIRE(atomic_load(&initialised), CUDA_ERROR_NOT_INITIALIZED);
  px_context_use(NULL);
  return cu_result(px_enter());
}

CUresult cu_device(CUdevice device) {
  CU_REQUIRE(atomic_load(&initialised), CUDA_ERROR_NOT_INITIALIZED);
  return device == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

PX_API CUresult cuInit(unsigned flags) {
  CU_REQUIRE(!flags, CUDA_ERROR_INVALID_VALUE);
  CU_REQUIRE(px_device_get(), CUDA_ERROR_NOT_INITIALIZED);
  atomic_store(&initialised, true);
  return CUDA_SUCCESS;
}

/* ---- the thread's stack ---- */

static CUresult push(CUcontext context) {
  CU_REQUIRE(depth < DEEPEST, CUDA_ERROR_INVALID_VALUE);
  stack[depth++] = context;
  return CUDA_SUCCESS;
}

PX_API CUresult cuCtxPushCurrent_v2(CUcontext context) {
  CU_REQUIRE(atomic_load(&initialised), CUDA_ERROR_NOT_INITIALIZED);
  CU_REQUIRE(context && lives(context), CUDA_ERROR_INVALID_CONTEXT);
  return push(context);
}
CU_SAME(cuCtxPushCurrent, cuCtxPushCurrent_v2);

PX_API CUresult cuCtxPopCurrent_v2(CUcontext *out) {
  CU_REQUIRE(atomic_load(&initialised), CUDA_ERROR_NOT_INITIALIZED);
  CU_REQUIRE(depth, CUDA_ERROR_INVALID_CONTEXT);
  CUcontext top = stack[--depth];
  if (out) *out = top;
  return CUDA_SUCCESS;
}
CU_SAME(cuCtxPopCurrent, cuCtxPopCurrent_v2);

PX_API CUresult cuCtxSetCurrent(CUcontext context) {
  CU_REQUIRE(atomic_load(&initialised), CUDA_ERROR_NOT_INITIALIZED);
  CU_REQUIRE(!context || lives(context), CUDA_ERROR_INVALID_CONTEXT);
  if (depth) depth--;
  return context ? push(context) : CUDA_SUCCESS;
}

PX_API CUresult cuCtxGetCurrent(CUcontext *out) {
  CU_REQUIRE(atomic_load(&initialised), CUDA_ERROR_NOT_INITIALIZED);
  CU_REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
  *out = cu_current();
  return CUDA_SUCCESS;
}

/* ---- the primary context ---- */

/* Call with the lock held; resets the device where nobody uses it any more. */
static void unlock_and_reset(void) {
  bool last = !contexts && !retained;
  pthread_mutex_unlock(&lock);
  if (last) px_device_reset();
}

PX_API CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device) {
  CUresult error = cu_device(device);
  CU_REQUIRE(!error, error);
  CU_REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
  CU_REQUIRE(px_device_get(), CUDA_ERROR_NOT_INITIALIZED);
  pthread_mutex_lock(&lock);
  retained++;
  pthread_mutex_unlock(&lock);
  *out = &primary;
  return CUDA_SUCCESS;
}

PX_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  CUresult error = cu_device(device);
  CU_REQUIRE(!error, error);
  pthread_mutex_lock(&lock);
  if (!retained) {
    pthread_mutex_unlock(&lock);
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  if (--retained)
    pthread_mutex_unlock(&lock);
  else
    unlock_and_reset();
  return CUDA_SUCCESS;
}
CU_SAME(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2);

/* Those who have retained it keep it: it is as new to them. */
PX_API CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  CUresult error = cu_device(device);
  CU_REQUIRE(!error, error);
  pthread_mutex_lock(&lock);
  bool alone = !contexts;
  pthread_mutex_unlock(&lock);
  if (alone) px_device_reset();
  atomic_store(&px_primary.staying, cudaSuccess);
  return CUDA_SUCCESS;
}
CU_SAME(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2);

PX_API CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active) {
  CUresult error = cu_device(device);
  CU_REQUIRE(!error, error);
  CU_REQUIRE(flags && active, CUDA_ERROR_INVALID_VALUE);
  pthread_mutex_lock(&lock);
  *flags = primary.flags;
  *active = retained != 0;
  pthread_mutex_unlock(&lock);
  return CUDA_SUCCESS;
}

enum { KNOWN_FLAGS = 0xff };

PX_API CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags) {
  CUresult error = cu_device(device);
  CU_REQUIRE(!error, error);
  CU_REQUIRE(!(flags & ~(unsigned)KNOWN_FLAGS), CUDA_ERROR_INVALID_VALUE);
  pthread_mutex_lock(&lock);
  primary.flags = flags;
  pthread_mutex_unlock(&lock);
  return CUDA_SUCCESS;
}
CU_SAME(cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags_v2);

/* ---- other contexts ---- */

PX_API CUresult cuCtxCreate_v2(CUcontext *out, unsigned flags, CUdevice device) {
  static unsigned long long last = 1;
  CUresult error = cu_device(device);
  CU_REQUIRE(!error, error);
  CU_REQUIRE(out && !(flags & ~(unsigned)KNOWN_FLAGS), CUDA_ERROR_INVALID_VALUE);
  CU_REQUIRE(px_device_get(), CUDA_ERROR_NOT_INITIALIZED);
  CUcontext made = calloc(1, sizeof *made);
  CU_REQUIRE(made, CUDA_ERROR_OUT_OF_MEMORY);
  error = push(made);
  if (error) {
    free(made);
    return error;
  }
  pthread_mutex_lock(&lock);
  made->id = ++last;
  made->flags = flags;
  made->next = contexts;
  contexts = made;
  pthread_mutex_unlock(&lock);
  *out = made;
  return CUDA_SUCCESS;
}

/* Shares of the processors cannot be given to a context. */
PX_API CUresult cuCtxCreate_v3(CUcontext *out, const void *shares, int count, unsigned flags, CUdevice device) {
  CU_REQUIRE(!shares && !count, CUDA_ERROR_NOT_SUPPORTED);
  return cuCtxCreate_v2(out, flags, device);
}

/* CUctxCreateParams: a share of the processors, and work beside a graphics API. */
typedef struct {
  const void *shares;
  int count;
  const void *graphics;
} cu_context_wishes;

PX_API CUresult cuCtxCreate_v4(CUcontext *out, const cu_context_wishes *wishes, unsigned flags, CUdevice device) {
  CU_REQUIRE(!wishes || !wishes->graphics, CUDA_ERROR_NOT_SUPPORTED);
  return cuCtxCreate_v3(out, wishes ? wishes->shares : NULL, wishes ? wishes->count : 0, flags, device);
}

PX_API CUresult cuCtxDestroy_v2(CUcontext context) {
  CU_REQUIRE(atomic_load(&initialised), CUDA_ERROR_NOT_INITIALIZED);
  pthread_mutex_lock(&lock);
  CUcontext *at = &contexts;
  while (*at && *at != context) at = &(*at)->next;
  if (!context || !*at) {
    pthread_mutex_unlock(&lock);
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  *at = context->next;
  px_context_use(NULL);
  if (cu_current() == context) depth--;
  pthread_mutex_unlock(&lock);
  px_wait_all(); /* errors of what runs stay with it */
  pthread_mutex_lock(&lock);
  unlock_and_reset();
  free(context);
  return CUDA_SUCCESS;
}
CU_SAME(cuCtxDestroy, cuCtxDestroy_v2);

PX_API CUresult cuCtxDetach(CUcontext context) { return cuCtxDestroy_v2(context); }

/* ---- questions ---- */

PX_API CUresult cuCtxGetDevice(CUdevice *out) {
  CU_REQUIRE(atomic_load(&initialised), CUDA_ERROR_NOT_INITIALIZED);
  CU_REQUIRE(cu_current(), CUDA_ERROR_INVALID_CONTEXT);
  CU_REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
  *out = 0;
  return CUDA_SUCCESS;
}

/* Whatever the context is, this is its device. Some programs that look names up leave the argument out. */
PX_API CUresult cuCtxGetDevice_v2(CUdevice *out, CUcontext context) {
  (void)context;
  return cuCtxGetDevice(out);
}

static CUresult chosen(CUcontext *context) {
  if (!*context) *context = cu_current();
  return *context && lives(*context) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

PX_API CUresult cuCtxGetApiVersion(CUcontext context, unsigned *version) {
  CUresult error = chosen(&context);
  CU_REQUIRE(!error, error);
  CU_REQUIRE(version, CUDA_ERROR_INVALID_VALUE);
  *version = API_VERSION;
  return CUDA_SUCCESS;
}

PX_API CUresult cuCtxGetId(CUcontext context, unsigned long long *id) {
  CUresult error = chosen(&context);
  CU_REQUIRE(!error, error);
  CU_REQUIRE(id, CUDA_ERROR_INVALID_VALUE);
  *id = context->id;
  return CUDA_SUCCESS;
}

PX_API CUresult cuCtxGetFlags(unsigned *flags) {
  CU_ENTER();
  CU_REQUIRE(flags, CUDA_ERROR_INVALID_VALUE);
  *flags = cu_current()->flags;
  return CUDA_SUCCESS;
}

PX_API CUresult cuCtxSetFlags(unsigned flags) {
  CU_ENTER();
  CU_REQUIRE(!(flags & ~(unsigned)KNOWN_FLAGS), CUDA_ERROR_INVALID_VALUE);
  cu_current()->flags = flags;
  return CUDA_SUCCESS;
}
