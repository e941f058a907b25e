/* pool.c: memory pools in the driver API. */
#include "driver.h"
#include "px_runtime.h"

/* ---- which there are ---- */

PX_API CUresult cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *properties) {
  CU_ENTER_ANY();
  return cu_result(cudaMemPoolCreate(out, properties));
}

PX_API CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  CU_ENTER_ANY();
  return cu_result(cudaMemPoolDestroy(pool));
}

PX_API CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *out, CUdevice device) {
  CU_ENTER_ANY();
  return cu_result(cudaDeviceGetDefaultMemPool(out, device));
}

PX_API CUresult cuDeviceGetMemPool(CUmemoryPool *out, CUdevice device) {
  CU_ENTER_ANY();
  return cu_result(cudaDeviceGetMemPool(out, device));
}

PX_API CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  CU_ENTER_ANY();
  return cu_result(cudaDeviceSetMemPool(device, pool));
}

PX_API CUresult cuMemGetDefaultMemPool(CUmemoryPool *out, cudaMemLocation *location, int type) {
  CU_ENTER_ANY();
  return cu_result(cudaMemGetDefaultMemPool(out, location, type));
}

PX_API CUresult cuMemGetMemPool(CUmemoryPool *out, cudaMemLocation *location, int type) {
  CU_ENTER_ANY();
  return cu_result(cudaMemGetMemPool(out, location, type));
}

PX_API CUresult cuMemSetMemPool(cudaMemLocation *location, int type, CUmemoryPool pool) {
  CU_ENTER_ANY();
  return cu_result(cudaMemSetMemPool(location, type, pool));
}

/* ---- attributes ---- */

PX_API CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
  CU_ENTER_ANY();
  return cu_result(cudaMemPoolTrimTo(pool, keep));
}

PX_API CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value) {
  CU_ENTER_ANY();
  return cu_result(cudaMemPoolSetAttribute(pool, attribute, value));
}

PX_API CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value) {
  CU_ENTER_ANY();
  return cu_result(cudaMemPoolGetAttribute(pool, attribute, value));
}

PX_API CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *wanted, size_t count) {
  CU_ENTER_ANY();
  return cu_result(cudaMemPoolSetAccess(pool, wanted, count));
}

PX_API CUresult cuMemPoolGetAccess(int *out, CUmemoryPool pool, const cudaMemLocation *location) {
  CU_ENTER_ANY();
  return cu_result(cudaMemPoolGetAccess(out, pool, location));
}

/* ---- other processes ---- */

PX_API CUresult cuMemPoolExportToShareableHandle(void *out, CUmemoryPool pool, int type, unsigned long long flags) {
  CU_ENTER_ANY();
  CU_REQUIRE(!flags, CUDA_ERROR_INVALID_VALUE);
  return cu_result(cudaMemPoolExportToShareableHandle(out, pool, type, 0));
}

PX_API CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *out, void *handle, int type, unsigned long long flags) {
  CU_ENTER_ANY();
  CU_REQUIRE(!flags, CUDA_ERROR_INVALID_VALUE);
  return cu_result(cudaMemPoolImportFromShareableHandle(out, handle, type, 0));
}

PX_API CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *out, CUdeviceptr pointer) {
  CU_ENTER_ANY();
  return cu_result(cudaMemPoolExportPointer(out, (void *)(uintptr_t)pointer));
}

PX_API CUresult cuMemPoolImportPointer(CUdeviceptr *out, CUmemoryPool pool, CUmemPoolPtrExportData *data) {
  CU_ENTER_ANY();
  return cu_result(cudaMemPoolImportPointer((void **)out, pool, data));
}
