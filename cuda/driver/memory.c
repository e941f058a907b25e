/* memory.c: memory of all kinds, and what is known of addresses. Device pointers are the host's, too. */
#include <string.h>
#include "driver.h"
#include "px_place.h"
#include "px_pool.h"
#include "px_runtime.h"

static void *host(CUdeviceptr pointer) { return (void *)(uintptr_t)pointer; }

/* ---- allocation ---- */

PX_API CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t size) {
  CU_ENTER();
  CU_REQUIRE(out && size, CUDA_ERROR_INVALID_VALUE);
  return cu_result(cudaMalloc((void **)out, size));
}

PX_API CUresult cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch, size_t width, size_t height, unsigned element) {
  CU_ENTER();
  CU_REQUIRE(out && width && height && (element == 4 || element == 8 || element == 16), CUDA_ERROR_INVALID_VALUE);
  return cu_result(cudaMallocPitch((void **)out, pitch, width, height));
}

PX_API CUresult cuMemAllocManaged(CUdeviceptr *out, size_t size, unsigned flags) {
  CU_ENTER();
  return cu_result(cudaMallocManaged((void **)out, size, flags));
}

PX_API CUresult cuMemFree_v2(CUdeviceptr pointer) {
  CU_ENTER_ANY();
  return cu_result(cudaFree(host(pointer)));
}

PX_API CUresult cuMemAllocHost_v2(void **out, size_t size) {
  CU_ENTER();
  CU_REQUIRE(out && size, CUDA_ERROR_INVALID_VALUE);
  return cu_result(cudaMallocHost(out, size));
}
CU_SAME(cuMemAllocHost, cuMemAllocHost_v2);

PX_API CUresult cuMemHostAlloc(void **out, size_t size, unsigned flags) {
  CU_ENTER();
  CU_REQUIRE(out && size, CUDA_ERROR_INVALID_VALUE);
  return cu_result(cudaHostAlloc(out, size, flags));
}

PX_API CUresult cuMemFreeHost(void *pointer) {
  CU_ENTER_ANY();
  CU_REQUIRE(pointer, CUDA_ERROR_INVALID_VALUE);
  return cu_result(cudaFreeHost(pointer));
}

PX_API CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *pointer, unsigned flags) {
  CU_ENTER();
  return cu_result(cudaHostGetDevicePointer((void **)out, pointer, flags));
}

PX_API CUresult cuMemHostGetFlags(unsigned *flags, void *pointer) {
  CU_ENTER();
  return cu_result(cudaHostGetFlags(flags, pointer));
}

PX_API CUresult cuMemHostRegister_v2(void *pointer, size_t size, unsigned flags) {
  CU_ENTER();
  return cu_result(cudaHostRegister(pointer, size, flags));
}
CU_SAME(cuMemHostRegister, cuMemHostRegister_v2);

PX_API CUresult cuMemHostUnregister(void *pointer) {
  CU_ENTER_ANY();
  return cu_result(cudaHostUnregister(pointer));
}

/* ---- in the order of a stream ---- */

PX_API CUresult cuMemAllocAsync(CUdeviceptr *out, size_t size, CUstream stream) {
  CU_ENTER();
  CU_REQUIRE(out && size, CUDA_ERROR_INVALID_VALUE);
  return cu_result(cudaMallocAsync((void **)out, size, stream));
}

PX_API CUresult cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t size, CUmemoryPool pool, CUstream stream) {
  CU_ENTER();
  CU_REQUIRE(out && size, CUDA_ERROR_INVALID_VALUE);
  return cu_result(cudaMallocFromPoolAsync((void **)out, size, pool, stream));
}

PX_API CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
  CU_ENTER();
  return cu_result(cudaFreeAsync(host(pointer), stream));
}

/* ---- what graphs own ---- */

PX_API CUresult cuDeviceGetGraphMemAttribute(CUdevice device, int attribute, void *value) {
  CU_ENTER_ANY();
  return cu_result(cudaDeviceGetGraphMemAttribute(device, attribute, value));
}

PX_API CUresult cuDeviceSetGraphMemAttribute(CUdevice device, int attribute, void *value) {
  CU_ENTER_ANY();
  return cu_result(cudaDeviceSetGraphMemAttribute(device, attribute, value));
}

PX_API CUresult cuDeviceGraphMemTrim(CUdevice device) {
  CU_ENTER_ANY();
  return cu_result(cudaDeviceGraphMemTrim(device));
}

/* ---- other processes ---- */

PX_API CUresult cuIpcGetMemHandle(cudaIpcMemHandle_t *out, CUdeviceptr pointer) {
  CU_ENTER();
  return cu_result(cudaIpcGetMemHandle(out, host(pointer)));
}

PX_API CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *out, cudaIpcMemHandle_t handle, unsigned flags) {
  CU_ENTER();
  return cu_result(cudaIpcOpenMemHandle((void **)out, handle, flags));
}
CU_SAME(cuIpcOpenMemHandle, cuIpcOpenMemHandle_v2);

PX_API CUresult cuIpcCloseMemHandle(CUdeviceptr pointer) {
  CU_ENTER();
  return cu_result(cudaIpcCloseMemHandle(host(pointer)));
}

/* ---- questions ---- */

PX_API CUresult cuMemGetInfo_v2(size_t *unused, size_t *total) {
  CU_ENTER();
  return cu_result(cudaMemGetInfo(unused, total));
}

PX_API CUresult cuMemGetAddressRange_v2(CUdeviceptr *start, size_t *size, CUdeviceptr pointer) {
  pe_allocation found;
  CU_ENTER_ANY();
  CU_REQUIRE(px_find(host(pointer), &found), CUDA_ERROR_NOT_FOUND);
  if (start) *start = found.address;
  if (size) *size = found.size;
  return CUDA_SUCCESS;
}

enum {
  CONTEXT = 1,
  MEMORY_TYPE,
  DEVICE_POINTER,
  HOST_POINTER,
  SYNC_MEMOPS = 6,
  BUFFER_ID,
  IS_MANAGED,
  DEVICE_ORDINAL,
  IPC_CAPABLE,
  RANGE_START,
  RANGE_SIZE,
  MAPPED,
  HANDLE_TYPES,
  RDMA_CAPABLE,
  ACCESS,
  POOL,
  MAPPING_SIZE,
  MAPPING_BASE,
  BLOCK_ID,
  DECOMPRESSION
};

/* What is known of an address; `known`: CUDA has given or registered it. */
typedef struct address_facts {
  uint64_t address;
  cudaPointerAttributes attributes;
  pe_allocation allocation;
  bool known, allocated;
} address_facts;

static CUresult write_attribute(const address_facts *f, int attribute, void *out) {
  bool device = f->attributes.type == cudaMemoryTypeDevice;
  switch (attribute) {
    case CONTEXT: *(CUcontext *)out = f->known ? px_context_top() : NULL; return CUDA_SUCCESS;
    case MEMORY_TYPE:
      *(unsigned *)out = !f->known                                  ? 0
                         : f->attributes.type == cudaMemoryTypeHost ? CU_MEMORYTYPE_HOST
                                                                    : CU_MEMORYTYPE_DEVICE;
      break;
    case DEVICE_POINTER: *(CUdeviceptr *)out = f->known ? f->address : 0; break;
    case HOST_POINTER:
      *(void **)out = device ? NULL : f->attributes.hostPointer;
      return device ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case SYNC_MEMOPS: *(int *)out = 1; break;
    case BUFFER_ID:
    case BLOCK_ID: *(unsigned long long *)out = f->allocated ? f->allocation.address : f->address; break;
    case IS_MANAGED: *(int *)out = f->attributes.type == cudaMemoryTypeManaged; break;
    case DEVICE_ORDINAL: *(int *)out = f->known ? 0 : -2; break;
    case IPC_CAPABLE: *(int *)out = f->allocated && px_is_of_kind(&f->allocation, px_memory_device); break;
    case RDMA_CAPABLE:
    case DECOMPRESSION: *(int *)out = 0; break;
    case RANGE_START:
    case MAPPING_BASE: *(CUdeviceptr *)out = f->allocated ? f->allocation.address : 0; break;
    case RANGE_SIZE:
    case MAPPING_SIZE: *(size_t *)out = f->allocated ? f->allocation.size : 0; break;
    case MAPPED: *(int *)out = f->known; return CUDA_SUCCESS;
    case HANDLE_TYPES: *(unsigned long long *)out = 0; break;
    case ACCESS: *(int *)out = f->known ? 3 : 0; break; /* reads and writes */
    case POOL: *(void **)out = f->allocated ? px_pool_of(f->allocation.address) : NULL; break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return f->known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult facts_of(CUdeviceptr pointer, address_facts *out) {
  *out = (address_facts){.address = pointer};
  CUresult error = cu_result(cudaPointerGetAttributes(&out->attributes, host(pointer)));
  out->known = out->attributes.type != cudaMemoryTypeUnregistered;
  out->allocated = px_find(host(pointer), &out->allocation);
  return error;
}

PX_API CUresult cuPointerGetAttribute(void *out, int attribute, CUdeviceptr pointer) {
  address_facts facts;
  CU_ENTER_ANY();
  CU_REQUIRE(out && pointer, CUDA_ERROR_INVALID_VALUE);
  CUresult error = facts_of(pointer, &facts);
  return error ? error : write_attribute(&facts, attribute, out);
}

/* Addresses that CUDA does not know are no error here: the values say so. */
PX_API CUresult cuPointerGetAttributes(unsigned count, const int *attributes, void **out, CUdeviceptr pointer) {
  address_facts facts;
  CU_ENTER_ANY();
  CU_REQUIRE(attributes && out && pointer, CUDA_ERROR_INVALID_VALUE);
  CUresult error = facts_of(pointer, &facts);
  for (unsigned i = 0; !error && i < count; i++) {
    CU_REQUIRE(attributes[i] > 0 && attributes[i] <= DECOMPRESSION && attributes[i] != 5, CUDA_ERROR_INVALID_VALUE);
    write_attribute(&facts, attributes[i], out[i]);
  }
  return error;
}

/* Every operation on memory has ended when its call returns, which is what the one attribute asks for. */
PX_API CUresult cuPointerSetAttribute(const void *value, int attribute, CUdeviceptr pointer) {
  CU_ENTER();
  return value && attribute == SYNC_MEMOPS && px_find(host(pointer), &(pe_allocation){0}) ? CUDA_SUCCESS
                                                                                          : CUDA_ERROR_INVALID_VALUE;
}

/* ---- hints on managed memory ---- */

PX_API CUresult cuMemAdvise_v2(CUdeviceptr pointer, size_t size, int advice, cudaMemLocation location) {
  CU_ENTER();
  return cu_result(cudaMemAdvise_v2(host(pointer), size, advice, location));
}

PX_API CUresult cuMemAdvise(CUdeviceptr pointer, size_t size, int advice, CUdevice device) {
  return cuMemAdvise_v2(pointer, size, advice, px_place(device));
}

PX_API CUresult cuMemPrefetchAsync_v2(CUdeviceptr pointer, size_t size, cudaMemLocation location, unsigned flags,
                                      CUstream stream) {
  CU_ENTER();
  return cu_result(cudaMemPrefetchAsync_v2(host(pointer), size, location, flags, stream));
}

PX_API CUresult cuMemPrefetchAsync(CUdeviceptr pointer, size_t size, CUdevice device, CUstream stream) {
  return cuMemPrefetchAsync_v2(pointer, size, px_place(device), 0, stream);
}

PX_API CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr pointer, size_t size, unsigned flags) {
  CU_ENTER();
  return cu_result(cudaStreamAttachMemAsync(stream, host(pointer), size, flags));
}
