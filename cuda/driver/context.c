/* context.c: contexts in the driver API. */
#include "driver.h"

enum { API_VERSION = 3020, KNOWN_FLAGS = 0xff };

CUresult cu_enter(void) {
  CU_REQUIRE(px_is_initialised(), CUDA_ERROR_NOT_INITIALIZED);
  CU_REQUIRE(px_context_top(), CUDA_ERROR_INVALID_CONTEXT);
  return cu_result(px_enter());
}

CUresult cu_enter_any(void) {
  CU_REQUIRE(px_is_initialised(), CUDA_ERROR_NOT_INITIALIZED);
  return px_context_top() ? cu_result(px_enter()) : px_device_get() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult cu_device(CUdevice device) {
  CU_REQUIRE(px_is_initialised(), CUDA_ERROR_NOT_INITIALIZED);
  return device == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

PX_API CUresult cuInit(unsigned flags) {
  CU_REQUIRE(!flags, CUDA_ERROR_INVALID_VALUE);
  CU_REQUIRE(px_device_get(), CUDA_ERROR_NOT_INITIALIZED);
  px_initialise();
  return CUDA_SUCCESS;
}

/* ---- the thread's stack ---- */

PX_API CUresult cuCtxPushCurrent_v2(CUcontext context) {
  PX_CALL();
  CU_REQUIRE(px_is_initialised(), CUDA_ERROR_NOT_INITIALIZED);
  CU_REQUIRE(px_context_lives(context), CUDA_ERROR_INVALID_CONTEXT);
  return px_context_push(context) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CU_SAME(cuCtxPushCurrent, cuCtxPushCurrent_v2);

PX_API CUresult cuCtxPopCurrent_v2(CUcontext *out) {
  CU_REQUIRE(px_is_initialised(), CUDA_ERROR_NOT_INITIALIZED);
  CUcontext top = px_context_top();
  CU_REQUIRE(top, CUDA_ERROR_INVALID_CONTEXT);
  px_context_pop();
  if (out) *out = top;
  return CUDA_SUCCESS;
}
CU_SAME(cuCtxPopCurrent, cuCtxPopCurrent_v2);

PX_API CUresult cuCtxSetCurrent(CUcontext context) {
  PX_CALL();
  CU_REQUIRE(px_is_initialised(), CUDA_ERROR_NOT_INITIALIZED);
  CU_REQUIRE(!context || px_context_lives(context), CUDA_ERROR_INVALID_CONTEXT);
  px_context_pop();
  if (context) px_context_push(context); /* there is room: one is gone, or none was there */
  return CUDA_SUCCESS;
}

PX_API CUresult cuCtxGetCurrent(CUcontext *out) {
  CU_REQUIRE(px_is_initialised(), CUDA_ERROR_NOT_INITIALIZED);
  CU_REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
  *out = px_context_top();
  return CUDA_SUCCESS;
}

/* ---- the primary context ---- */

PX_API CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device) {
  CUresult error = cu_device(device);
  CU_REQUIRE(!error, error);
  CU_REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
  CU_REQUIRE(px_device_get(), CUDA_ERROR_NOT_INITIALIZED);
  px_primary_retain();
  *out = &px_primary;
  return CUDA_SUCCESS;
}

PX_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  CUresult error = cu_device(device);
  CU_REQUIRE(!error, error);
  return px_primary_release() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}
CU_SAME(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2);

PX_API CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  CUresult error = cu_device(device);
  CU_REQUIRE(!error, error);
  return cu_result(px_primary_reset());
}
CU_SAME(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2);

PX_API CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active) {
  CUresult error = cu_device(device);
  CU_REQUIRE(!error, error);
  CU_REQUIRE(flags && active, CUDA_ERROR_INVALID_VALUE);
  *flags = px_primary.flags;
  *active = px_primary_is_held();
  return CUDA_SUCCESS;
}

PX_API CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags) {
  CUresult error = cu_device(device);
  CU_REQUIRE(!error, error);
  CU_REQUIRE(!(flags & ~(unsigned)KNOWN_FLAGS), CUDA_ERROR_INVALID_VALUE);
  px_primary.flags = flags;
  return CUDA_SUCCESS;
}
CU_SAME(cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags_v2);

/* ---- other contexts ---- */

PX_API CUresult cuCtxCreate_v2(CUcontext *out, unsigned flags, CUdevice device) {
  CUresult error = cu_device(device);
  CU_REQUIRE(!error, error);
  CU_REQUIRE(out && !(flags & ~(unsigned)KNOWN_FLAGS), CUDA_ERROR_INVALID_VALUE);
  CU_REQUIRE(px_device_get(), CUDA_ERROR_NOT_INITIALIZED);
  return cu_result(px_context_create(flags, out));
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
  CU_REQUIRE(px_is_initialised(), CUDA_ERROR_NOT_INITIALIZED);
  return cu_result(px_context_destroy(context));
}
CU_SAME(cuCtxDestroy, cuCtxDestroy_v2);

/* The count that it takes one from is that of the primary context's holders, or 1. */
PX_API CUresult cuCtxDetach(CUcontext context) {
  return context == &px_primary ? cuDevicePrimaryCtxRelease_v2(0) : cuCtxDestroy_v2(context);
}

/* ---- questions ---- */

PX_API CUresult cuCtxGetDevice(CUdevice *out) {
  CU_REQUIRE(px_is_initialised(), CUDA_ERROR_NOT_INITIALIZED);
  CU_REQUIRE(px_context_top(), CUDA_ERROR_INVALID_CONTEXT);
  CU_REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
  *out = 0;
  return CUDA_SUCCESS;
}

/* Whatever the context is, this is its device. Some programs that look names up leave the argument out. */
PX_API CUresult cuCtxGetDevice_v2(CUdevice *out, CUcontext context) {
  (void)context;
  return cuCtxGetDevice(out);
}

/* Begin a question about a context; NULL: the current one. */
#define ENTER_ABOUT(context)                    \
  PX_CALL();                                    \
  if (!(context)) (context) = px_context_top(); \
  CU_REQUIRE(px_context_lives(context), CUDA_ERROR_INVALID_CONTEXT)

PX_API CUresult cuCtxGetApiVersion(CUcontext context, unsigned *version) {
  ENTER_ABOUT(context);
  CU_REQUIRE(version, CUDA_ERROR_INVALID_VALUE);
  *version = API_VERSION;
  return CUDA_SUCCESS;
}

PX_API CUresult cuCtxGetId(CUcontext context, unsigned long long *id) {
  ENTER_ABOUT(context);
  CU_REQUIRE(id, CUDA_ERROR_INVALID_VALUE);
  *id = context->id;
  return CUDA_SUCCESS;
}

PX_API CUresult cuCtxGetFlags(unsigned *flags) {
  CU_ENTER();
  CU_REQUIRE(flags, CUDA_ERROR_INVALID_VALUE);
  *flags = px_context_top()->flags;
  return CUDA_SUCCESS;
}

PX_API CUresult cuCtxSetFlags(unsigned flags) {
  CU_ENTER();
  CU_REQUIRE(!(flags & ~(unsigned)KNOWN_FLAGS), CUDA_ERROR_INVALID_VALUE);
  px_context_top()->flags = flags;
  return CUDA_SUCCESS;
}
