/* device.c: the device, and what holds for all of it: versions, limits, caches, peers, profilers. */
#include <string.h>
#include "driver.h"
#include "px_runtime.h"

PX_API CUresult cuDriverGetVersion(int *version) { return cu_result(cudaDriverGetVersion(version)); }

PX_API CUresult cuDeviceGet(CUdevice *out, int number) {
  CUresult error = cu_device(number);
  CU_REQUIRE(!error, error);
  CU_REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
  *out = number;
  return CUDA_SUCCESS;
}

PX_API CUresult cuDeviceGetCount(int *count) {
  CUresult error = cu_device(0);
  return error ? error : cu_result(cudaGetDeviceCount(count));
}

static const char name[] = "ptxemu CPU";

PX_API CUresult cuDeviceGetName(char *out, int size, CUdevice device) {
  CUresult error = cu_device(device);
  CU_REQUIRE(!error, error);
  CU_REQUIRE(out && size > 0, CUDA_ERROR_INVALID_VALUE);
  size_t length = (size_t)size <= sizeof name ? (size_t)size - 1 : sizeof name - 1;
  memcpy(out, name, length);
  out[length] = 0;
  return CUDA_SUCCESS;
}

PX_API CUresult cuDeviceGetUuid_v2(CUuuid *out, CUdevice device) {
  CUresult error = cu_device(device);
  CU_REQUIRE(!error, error);
  CU_REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
  memset(out, 0, sizeof *out);
  memcpy(out->bytes, "ptxemu CPU 0", 12);
  return CUDA_SUCCESS;
}
CU_SAME(cuDeviceGetUuid, cuDeviceGetUuid_v2);

PX_API CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
  CUresult error = cu_device(device);
  CU_REQUIRE(!error, error);
  CU_REQUIRE(bytes, CUDA_ERROR_INVALID_VALUE);
  const px_device *found = px_device_get();
  CU_REQUIRE(found, CUDA_ERROR_NOT_INITIALIZED);
  *bytes = found->capacity;
  return CUDA_SUCCESS;
}

PX_API CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
  CUresult error = cu_device(device);
  CU_REQUIRE(!error, error);
  CU_REQUIRE(px_device_get(), CUDA_ERROR_NOT_INITIALIZED);
  int found = px_attribute(attribute);
  CU_REQUIRE(value && found >= 0, CUDA_ERROR_INVALID_VALUE);
  *value = found;
  return CUDA_SUCCESS;
}

PX_API CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device) {
  CUresult error = cuDeviceGetAttribute(major, 75, device);
  return error ? error : cuDeviceGetAttribute(minor, 76, device);
}

PX_API CUresult cuDeviceGetProperties(CUdevprop *out, CUdevice device) {
  CUresult error = cu_device(device);
  CU_REQUIRE(!error, error);
  CU_REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
  *out = (CUdevprop){.maxThreadsPerBlock = px_attribute(1),
                     .maxThreadsDim = {px_attribute(2), px_attribute(3), px_attribute(4)},
                     .maxGridSize = {px_attribute(5), px_attribute(6), px_attribute(7)},
                     .sharedMemPerBlock = px_attribute(8),
                     .totalConstantMemory = px_attribute(9),
                     .SIMDWidth = px_attribute(10),
                     .memPitch = px_attribute(11),
                     .regsPerBlock = px_attribute(12),
                     .clockRate = px_attribute(13),
                     .textureAlign = px_attribute(14)};
  return CUDA_SUCCESS;
}

PX_API CUresult cuDeviceGetPCIBusId(char *out, int size, CUdevice device) {
  CUresult error = cu_device(device);
  return error ? error : cu_result(cudaDeviceGetPCIBusId(out, size, device));
}

PX_API CUresult cuDeviceGetByPCIBusId(CUdevice *out, const char *text) {
  CUresult error = cu_device(0);
  return error ? error : cu_result(cudaDeviceGetByPCIBusId(out, text));
}

PX_API CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) {
  CUresult error = cu_device(device);
  return error ? error : cu_result(cudaDeviceCanAccessPeer(can, device, peer));
}

/* ---- limits, caches ---- */

static CUresult limit_error(cudaError_t error) {
  return error == cudaErrorNotSupported ? CUDA_ERROR_UNSUPPORTED_LIMIT : cu_result(error);
}

PX_API CUresult cuCtxSetLimit(int limit, size_t value) {
  CU_ENTER();
  return limit_error(cudaDeviceSetLimit(limit, value));
}

PX_API CUresult cuCtxGetLimit(size_t *value, int limit) {
  CU_ENTER();
  return limit_error(cudaDeviceGetLimit(value, limit));
}

PX_API CUresult cuCtxSetCacheConfig(int config) {
  CU_ENTER();
  return cu_result(cudaDeviceSetCacheConfig(config));
}

PX_API CUresult cuCtxGetCacheConfig(int *config) {
  CU_ENTER();
  return cu_result(cudaDeviceGetCacheConfig(config));
}

PX_API CUresult cuCtxGetSharedMemConfig(int *config) {
  CU_ENTER();
  CU_REQUIRE(config, CUDA_ERROR_INVALID_VALUE);
  *config = 1; /* banks of 4 bytes */
  return CUDA_SUCCESS;
}

PX_API CUresult cuCtxSetSharedMemConfig(int config) {
  CU_ENTER();
  return config >= 0 && config <= 2 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

PX_API CUresult cuCtxResetPersistingL2Cache(void) {
  CU_ENTER();
  return CUDA_SUCCESS;
}

PX_API CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  CU_ENTER();
  return cu_result(cudaDeviceGetStreamPriorityRange(least, greatest));
}

PX_API CUresult cuCtxSynchronize(void) {
  CU_ENTER();
  return cu_result(cudaDeviceSynchronize());
}

/* All contexts are waited for. Some programs that look names up leave the argument out. */
PX_API CUresult cuCtxSynchronize_v2(CUcontext context) {
  (void)context;
  return cuCtxSynchronize();
}

/* ---- profilers: there is none that could be told ---- */

PX_API CUresult cuProfilerStart(void) { return CUDA_SUCCESS; }

PX_API CUresult cuProfilerStop(void) { return CUDA_SUCCESS; }
