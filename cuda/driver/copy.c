/* copy.c: copies between memory of the host, of the device, and arrays. */
#include <string.h>
#include "driver.h"
#include "px_runtime.h"
#include "px_stream.h"

static void *host(CUdeviceptr pointer) { return (void *)(uintptr_t)pointer; }

/* ---- bytes ---- */

static CUresult copy(void *to, const void *from, size_t size, int kind, CUstream stream) {
  CU_ENTER();
  return cu_result(cudaMemcpyAsync(to, from, size, kind, stream));
}

static CUresult copy_now(void *to, const void *from, size_t size, int kind) {
  CU_ENTER();
  return cu_result(cudaMemcpy(to, from, size, kind));
}

PX_API CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size) {
  return copy_now(host(to), host(from), size, cudaMemcpyDefault);
}

PX_API CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
  return copy(host(to), host(from), size, cudaMemcpyDefault, stream);
}

PX_API CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t size) {
  return copy_now(host(to), from, size, cudaMemcpyHostToDevice);
}

PX_API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t size, CUstream stream) {
  return copy(host(to), from, size, cudaMemcpyHostToDevice, stream);
}

PX_API CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t size) {
  return copy_now(to, host(from), size, cudaMemcpyDeviceToHost);
}

PX_API CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t size, CUstream stream) {
  return copy(to, host(from), size, cudaMemcpyDeviceToHost, stream);
}

PX_API CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t size) {
  return copy_now(host(to), host(from), size, cudaMemcpyDeviceToDevice);
}

PX_API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
  return copy(host(to), host(from), size, cudaMemcpyDeviceToDevice, stream);
}

/* Contexts share one memory. */
PX_API CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t size) {
  PX_CALL();
  CU_REQUIRE(px_context_lives(to_context) && px_context_lives(from_context), CUDA_ERROR_INVALID_CONTEXT);
  return cuMemcpyDtoD_v2(to, from, size);
}

PX_API CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                                  size_t size, CUstream stream) {
  PX_CALL();
  CU_REQUIRE(px_context_lives(to_context) && px_context_lives(from_context), CUDA_ERROR_INVALID_CONTEXT);
  return cuMemcpyDtoDAsync_v2(to, from, size, stream);
}

/* ---- bytes of arrays: their first rows ---- */

static px_side memory_at(const void *memory, size_t size) { return (px_side){.memory = (uint8_t *)memory, .pitch = size}; }

/* `in`: the stream of a call that has one, or NULL. */
static CUresult array_copy(const px_side *to, const px_side *from, size_t size, int kind, const CUstream *in) {
  CU_ENTER();
  if (!in) return cu_result(px_copy(to, from, size, 1, 1, kind));
  CU_REQUIRE(px_is_stream(*in), CUDA_ERROR_INVALID_HANDLE);
  return cu_result(px_copy_in(*in, to, from, size, 1, 1, kind));
}

static CUresult to_array(CUarray to, size_t offset, const void *from, size_t size, int kind, const CUstream *in) {
  CU_REQUIRE(to, CUDA_ERROR_INVALID_HANDLE);
  px_side target = {.array = to, .x = offset}, source = memory_at(from, size);
  return array_copy(&target, &source, size, kind, in);
}

static CUresult from_array(void *to, CUarray from, size_t offset, size_t size, int kind, const CUstream *in) {
  CU_REQUIRE(from, CUDA_ERROR_INVALID_HANDLE);
  px_side target = memory_at(to, size), source = {.array = from, .x = offset};
  return array_copy(&target, &source, size, kind, in);
}

PX_API CUresult cuMemcpyHtoA_v2(CUarray to, size_t offset, const void *from, size_t size) {
  return to_array(to, offset, from, size, cudaMemcpyHostToDevice, NULL);
}

PX_API CUresult cuMemcpyHtoAAsync_v2(CUarray to, size_t offset, const void *from, size_t size, CUstream stream) {
  return to_array(to, offset, from, size, cudaMemcpyHostToDevice, &stream);
}

PX_API CUresult cuMemcpyAtoH_v2(void *to, CUarray from, size_t offset, size_t size) {
  return from_array(to, from, offset, size, cudaMemcpyDeviceToHost, NULL);
}

PX_API CUresult cuMemcpyAtoHAsync_v2(void *to, CUarray from, size_t offset, size_t size, CUstream stream) {
  return from_array(to, from, offset, size, cudaMemcpyDeviceToHost, &stream);
}

PX_API CUresult cuMemcpyDtoA_v2(CUarray to, size_t offset, CUdeviceptr from, size_t size) {
  return to_array(to, offset, host(from), size, cudaMemcpyDeviceToDevice, NULL);
}

PX_API CUresult cuMemcpyAtoD_v2(CUdeviceptr to, CUarray from, size_t offset, size_t size) {
  return from_array(host(to), from, offset, size, cudaMemcpyDeviceToDevice, NULL);
}

PX_API CUresult cuMemcpyAtoA_v2(CUarray to, size_t to_offset, CUarray from, size_t from_offset, size_t size) {
  CU_REQUIRE(to && from, CUDA_ERROR_INVALID_HANDLE);
  px_side target = {.array = to, .x = to_offset}, source = {.array = from, .x = from_offset};
  return array_copy(&target, &source, size, cudaMemcpyDeviceToDevice, NULL);
}

/* ---- boxes ---- */

/* One side of a box as the API states it. */
typedef struct box_side {
  int type;
  const void *host;
  CUdeviceptr device;
  CUarray array;
  size_t x, y, z, pitch, height;
} box_side;

static int is_on_device(const box_side *side) {
  return side->type == CU_MEMORYTYPE_DEVICE || side->type == CU_MEMORYTYPE_ARRAY;
}

/* A pitch or height of 0 is that of the box itself. */
static CUresult side_of(const box_side *from, size_t width, size_t rows, px_side *out) {
  *out = (px_side){.x = from->x, .y = from->y, .z = from->z};
  if (from->type == CU_MEMORYTYPE_ARRAY) {
    out->array = from->array;
    return px_is_array(from->array) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  }
  CU_REQUIRE(from->type >= CU_MEMORYTYPE_HOST && from->type <= CU_MEMORYTYPE_UNIFIED, CUDA_ERROR_INVALID_VALUE);
  const void *start = from->type == CU_MEMORYTYPE_HOST ? from->host : host(from->device);
  size_t y, z, at;
  out->pitch = from->pitch ? from->pitch : width;
  bool fits = !__builtin_mul_overflow(out->pitch, from->height ? from->height : rows, &out->slice) &&
              !__builtin_mul_overflow(out->pitch, from->y, &y) && !__builtin_mul_overflow(out->slice, from->z, &z) &&
              !__builtin_add_overflow(from->x, y, &at) && !__builtin_add_overflow(at, z, &at);
  if (fits) out->memory = (uint8_t *)(uintptr_t)start + at;
  return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* What the two sides say of the direction. */
static int kind_of(const box_side *to, const box_side *from) {
  if (to->type == CU_MEMORYTYPE_UNIFIED || from->type == CU_MEMORYTYPE_UNIFIED) return cudaMemcpyDefault;
  if (is_on_device(from)) return is_on_device(to) ? cudaMemcpyDeviceToDevice : cudaMemcpyDeviceToHost;
  return is_on_device(to) ? cudaMemcpyHostToDevice : cudaMemcpyHostToHost;
}

static CUresult box_of(const box_side *to, const box_side *from, size_t width, size_t height, size_t depth, px_box *out) {
  *out = (px_box){.width = width, .height = height, .depth = depth};
  CUresult error = side_of(to, width, height, &out->to);
  return error ? error : side_of(from, width, height, &out->from);
}

static CUresult copy_box(const box_side *to, const box_side *from, size_t width, size_t height, size_t depth,
                         const CUstream *in) {
  px_box box;
  CU_ENTER();
  CUresult error = box_of(to, from, width, height, depth, &box);
  CU_REQUIRE(!error, error);
  int kind = kind_of(to, from);
  if (!in) return cu_result(px_copy(&box.to, &box.from, width, height, depth, kind));
  CU_REQUIRE(px_is_stream(*in), CUDA_ERROR_INVALID_HANDLE);
  return cu_result(px_copy_in(*in, &box.to, &box.from, width, height, depth, kind));
}

static CUresult copy_rows(const CUDA_MEMCPY2D *what, const CUstream *in) {
  CU_REQUIRE(what, CUDA_ERROR_INVALID_VALUE);
  box_side to = {what->dstMemoryType,
                 what->dstHost,
                 what->dstDevice,
                 what->dstArray,
                 what->dstXInBytes,
                 what->dstY,
                 0,
                 what->dstPitch,
                 0};
  box_side from = {what->srcMemoryType,
                   what->srcHost,
                   what->srcDevice,
                   what->srcArray,
                   what->srcXInBytes,
                   what->srcY,
                   0,
                   what->srcPitch,
                   0};
  return copy_box(&to, &from, what->WidthInBytes, what->Height, 1, in);
}

PX_API CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *what) { return copy_rows(what, NULL); }
CU_SAME(cuMemcpy2DUnaligned_v2, cuMemcpy2D_v2);

PX_API CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *what, CUstream stream) { return copy_rows(what, &stream); }

static box_side target_of(const CUDA_MEMCPY3D_PEER *what) {
  return (box_side){what->dstMemoryType, what->dstHost, what->dstDevice, what->dstArray, what->dstXInBytes,
                    what->dstY,          what->dstZ,    what->dstPitch,  what->dstHeight};
}

static box_side source_of(const CUDA_MEMCPY3D_PEER *what) {
  return (box_side){what->srcMemoryType, what->srcHost, what->srcDevice, what->srcArray, what->srcXInBytes,
                    what->srcY,          what->srcZ,    what->srcPitch,  what->srcHeight};
}

static CUresult copy_slices(const CUDA_MEMCPY3D_PEER *what, const CUstream *in) {
  CU_REQUIRE(what && !what->srcLOD && !what->dstLOD, CUDA_ERROR_INVALID_VALUE);
  box_side to = target_of(what), from = source_of(what);
  return copy_box(&to, &from, what->WidthInBytes, what->Height, what->Depth, in);
}

CUresult cu_copy_work(const CUDA_MEMCPY3D_PEER *what, px_work **out) {
  px_box box;
  CU_REQUIRE(what && !what->srcLOD && !what->dstLOD, CUDA_ERROR_INVALID_VALUE);
  box_side to = target_of(what), from = source_of(what);
  CUresult error = box_of(&to, &from, what->WidthInBytes, what->Height, what->Depth, &box);
  return error ? error : cu_result(px_copy_work(&box, kind_of(&to, &from), out));
}

/* The type of memory on a side. */
static int type_of(const px_side *side, int kind, bool device) {
  if (side->array) return CU_MEMORYTYPE_ARRAY;
  if (kind == cudaMemcpyDefault) return CU_MEMORYTYPE_UNIFIED;
  return device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
}

void cu_copy_params(const px_work *work, CUDA_MEMCPY3D_PEER *out) {
  const px_box *box = &work->box;
  const px_side *from = &box->from, *to = &box->to;
  int kind = work->direction;
  bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  *out = (CUDA_MEMCPY3D_PEER){.srcMemoryType = type_of(from, kind, from_device),
                              .srcHost = from->memory,
                              .srcDevice = (CUdeviceptr)(uintptr_t)from->memory,
                              .srcArray = from->array,
                              .srcPitch = from->pitch,
                              .srcHeight = from->pitch ? from->slice / from->pitch : 0,
                              .dstMemoryType = type_of(to, kind, to_device),
                              .dstHost = to->memory,
                              .dstDevice = (CUdeviceptr)(uintptr_t)to->memory,
                              .dstArray = to->array,
                              .dstPitch = to->pitch,
                              .dstHeight = to->pitch ? to->slice / to->pitch : 0,
                              .WidthInBytes = box->width,
                              .Height = box->height,
                              .Depth = box->depth};
  if (from->array) out->srcXInBytes = from->x, out->srcY = from->y, out->srcZ = from->z;
  if (to->array) out->dstXInBytes = to->x, out->dstY = to->y, out->dstZ = to->z;
}

PX_API CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *what) { return copy_slices(what, NULL); }

PX_API CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *what, CUstream stream) { return copy_slices(what, &stream); }

/* The same structure, in which contexts are reserved. */
CU_SAME(cuMemcpy3D_v2, cuMemcpy3DPeer);
CU_SAME(cuMemcpy3DAsync_v2, cuMemcpy3DPeerAsync);
