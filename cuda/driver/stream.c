/* stream.c: streams and events. */
#include "driver.h"
#include "px_runtime.h"
#include "px_stream.h"

/* ---- streams ---- */

PX_API CUresult cuStreamCreate(CUstream *out, unsigned flags) {
  CU_ENTER();
  return cu_result(cudaStreamCreateWithFlags(out, flags));
}

PX_API CUresult cuStreamCreateWithPriority(CUstream *out, unsigned flags, int priority) {
  CU_ENTER();
  return cu_result(cudaStreamCreateWithPriority(out, flags, priority));
}

PX_API CUresult cuStreamDestroy_v2(CUstream stream) {
  CU_ENTER_ANY();
  return cu_result(cudaStreamDestroy(stream));
}
CU_SAME(cuStreamDestroy, cuStreamDestroy_v2);

PX_API CUresult cuStreamSynchronize(CUstream stream) {
  CU_ENTER_ANY();
  return cu_result(cudaStreamSynchronize(stream));
}

PX_API CUresult cuStreamQuery(CUstream stream) {
  CU_ENTER_ANY();
  return cu_result(cudaStreamQuery(stream));
}

PX_API CUresult cuStreamGetFlags(CUstream stream, unsigned *flags) {
  CU_ENTER();
  return cu_result(cudaStreamGetFlags(stream, flags));
}

PX_API CUresult cuStreamGetPriority(CUstream stream, int *priority) {
  CU_ENTER();
  return cu_result(cudaStreamGetPriority(stream, priority));
}

PX_API CUresult cuStreamGetId(CUstream stream, unsigned long long *id) {
  CU_ENTER();
  return cu_result(cudaStreamGetId(stream, id));
}

PX_API CUresult cuStreamGetCtx(CUstream stream, CUcontext *out) {
  CU_ENTER();
  CU_REQUIRE(px_is_stream(stream), CUDA_ERROR_INVALID_HANDLE);
  CU_REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
  const px_context *made_in = px_stream_of(stream)->context;
  *out = made_in ? (CUcontext)(uintptr_t)made_in : px_context_top();
  return CUDA_SUCCESS;
}

PX_API CUresult cuStreamGetDevice(CUstream stream, CUdevice *out) {
  CU_ENTER();
  CU_REQUIRE(px_is_stream(stream), CUDA_ERROR_INVALID_HANDLE);
  CU_REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
  *out = 0;
  return CUDA_SUCCESS;
}

PX_API CUresult cuStreamIsCapturing(CUstream stream, int *status) {
  CU_ENTER();
  return cu_result(cudaStreamIsCapturing(stream, status));
}

PX_API CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  CU_ENTER();
  return cu_result(cudaStreamWaitEvent(stream, event, flags));
}

PX_API CUresult cuStreamAddCallback(CUstream stream, cudaStreamCallback_t function, void *data, unsigned flags) {
  CU_ENTER();
  return cu_result(cudaStreamAddCallback(stream, function, data, flags));
}

PX_API CUresult cuLaunchHostFunc(CUstream stream, cudaHostFn_t function, void *data) {
  CU_ENTER();
  return cu_result(cudaLaunchHostFunc(stream, function, data));
}

/* ---- events ---- */

PX_API CUresult cuEventCreate(CUevent *out, unsigned flags) {
  CU_ENTER();
  return cu_result(cudaEventCreateWithFlags(out, flags));
}

PX_API CUresult cuEventDestroy_v2(CUevent event) {
  CU_ENTER_ANY();
  return cu_result(cudaEventDestroy(event));
}
CU_SAME(cuEventDestroy, cuEventDestroy_v2);

PX_API CUresult cuEventRecord(CUevent event, CUstream stream) {
  CU_ENTER();
  return cu_result(cudaEventRecord(event, stream));
}

PX_API CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
  CU_ENTER();
  return cu_result(cudaEventRecordWithFlags(event, stream, flags));
}

PX_API CUresult cuEventSynchronize(CUevent event) {
  CU_ENTER_ANY();
  return cu_result(cudaEventSynchronize(event));
}

PX_API CUresult cuEventQuery(CUevent event) {
  CU_ENTER_ANY();
  return cu_result(cudaEventQuery(event));
}

PX_API CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent from, CUevent to) {
  CU_ENTER_ANY();
  return cu_result(cudaEventElapsedTime(milliseconds, from, to));
}
CU_SAME(cuEventElapsedTime, cuEventElapsedTime_v2);

/* ---- events of other processes ---- */

PX_API CUresult cuIpcGetEventHandle(cudaIpcEventHandle_t *out, CUevent event) {
  CU_ENTER();
  return cu_result(cudaIpcGetEventHandle(out, event));
}

PX_API CUresult cuIpcOpenEventHandle(CUevent *out, cudaIpcEventHandle_t handle) {
  CU_ENTER();
  return cu_result(cudaIpcOpenEventHandle(out, handle));
}
