/* copy.c: copies and sets of memory. All are done when the call returns. */
#include <string.h>
#include "checked.h"
#include "core.h"

/* ---- checks ---- */

static bool to_device(int kind) { return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice; }

static bool from_device(int kind) { return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice; }

static bool is_kind(int kind) { return kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault; }

static bool may_touch(const void *memory, uint64_t size, bool device) {
  return device ? px_is_device(memory, size) : px_is_any(memory, size);
}

/* Bytes from the first one of a box of rows to its end; false: more than there can be. */
static bool span(const px_side *side, size_t width, size_t height, size_t depth, uint64_t *size) {
  uint64_t slices, rows;
  return !__builtin_mul_overflow(side->slice, depth - 1, &slices) &&
         !__builtin_mul_overflow(side->pitch, height - 1, &rows) && !__builtin_add_overflow(slices, rows, &rows) &&
         !__builtin_add_overflow(rows, width, size);
}

static size_t slices_of(const pe_surface_desc *surface) {
  return surface->layers > 1 ? surface->layers : surface->level[0].depth;
}

static bool fits_array(const px_side *side, size_t width, size_t height, size_t depth) {
  const pe_surface_desc *surface = &side->array->surface;
  return pe_within(side->x, width, surface->level[0].row_bytes) && pe_within(side->y, height, surface->level[0].height) &&
         pe_within(side->z, depth, slices_of(surface));
}

static cudaError_t check(const px_side *side, size_t width, size_t height, size_t depth, bool device) {
  uint64_t size;
  if (side->array) return fits_array(side, width, height, depth) ? cudaSuccess : cudaErrorInvalidValue;
  if ((height > 1 && side->pitch < width) || (depth > 1 && side->slice < side->pitch)) return cudaErrorInvalidPitchValue;
  bool fits = span(side, width, height, depth, &size) && may_touch(side->memory, size, device);
  return fits ? cudaSuccess : cudaErrorInvalidValue;
}

/* ---- the copy ---- */

static uint8_t *row_of(const px_side *side, size_t y, size_t z) {
  if (!side->array) return side->memory + z * side->slice + y * side->pitch;
  const pe_surface_desc *surface = &side->array->surface;
  bool layered = surface->layers > 1;
  uint64_t plane = side->z + z;
  return surface->base + pe_surface_offset(surface, 0, side->x, side->y + y, layered ? 0 : plane, layered ? plane : 0);
}

cudaError_t px_copy(const px_side *to, const px_side *from, size_t width, size_t height, size_t depth, int kind) {
  if (!is_kind(kind)) return cudaErrorInvalidMemcpyDirection;
  if (!width || !height || !depth) return cudaSuccess;
  cudaError_t error = check(to, width, height, depth, to_device(kind));
  if (!error) error = check(from, width, height, depth, from_device(kind));
  if (error) return error;
  for (size_t z = 0; z < depth; z++)
    for (size_t y = 0; y < height; y++) memmove(row_of(to, y, z), row_of(from, y, z), width);
  return cudaSuccess;
}

static cudaError_t copy(const px_side *to, const px_side *from, size_t width, size_t height, int kind) {
  PX_ENTER();
  return px_report(px_copy(to, from, width, height, 1, kind));
}

static px_side linear(const void *memory, size_t pitch) { return (px_side){.memory = (uint8_t *)memory, .pitch = pitch}; }

static px_side texels(cudaArray_t array, size_t x, size_t y) { return (px_side){.array = array, .x = x, .y = y}; }

/* ---- memory to memory ---- */

PX_API cudaError_t cudaMemcpy(void *to, const void *from, size_t size, int kind) {
  px_side target = linear(to, size), source = linear(from, size);
  return copy(&target, &source, size, 1, kind);
}

PX_API cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, int kind, cudaStream_t stream) {
  PX_REQUIRE(px_is_stream(stream), cudaErrorInvalidResourceHandle);
  return cudaMemcpy(to, from, size, kind);
}

PX_API cudaError_t cudaMemcpyPeer(void *to, int to_number, const void *from, int from_number, size_t size) {
  PX_REQUIRE(to_number == 0 && from_number == 0, cudaErrorInvalidDevice);
  return cudaMemcpy(to, from, size, cudaMemcpyDeviceToDevice);
}

PX_API cudaError_t cudaMemcpyPeerAsync(void *to, int to_number, const void *from, int from_number, size_t size,
                                       cudaStream_t stream) {
  PX_REQUIRE(px_is_stream(stream), cudaErrorInvalidResourceHandle);
  return cudaMemcpyPeer(to, to_number, from, from_number, size);
}

PX_API cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                                int kind) {
  px_side target = linear(to, to_pitch), source = linear(from, from_pitch);
  return copy(&target, &source, width, height, kind);
}

PX_API cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                                     size_t height, int kind, cudaStream_t stream) {
  PX_REQUIRE(px_is_stream(stream), cudaErrorInvalidResourceHandle);
  return cudaMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind);
}

/* ---- arrays ---- */

PX_API cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width,
                                       size_t height, int kind) {
  PX_REQUIRE(to, cudaErrorInvalidResourceHandle);
  px_side target = texels(to, x, y), source = linear(from, pitch);
  return copy(&target, &source, width, height, kind);
}

PX_API cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width,
                                            size_t height, int kind, cudaStream_t stream) {
  PX_REQUIRE(px_is_stream(stream), cudaErrorInvalidResourceHandle);
  return cudaMemcpy2DToArray(to, x, y, from, pitch, width, height, kind);
}

PX_API cudaError_t cudaMemcpy2DFromArray(void *to, size_t pitch, cudaArray_t from, size_t x, size_t y, size_t width,
                                         size_t height, int kind) {
  PX_REQUIRE(from, cudaErrorInvalidResourceHandle);
  px_side target = linear(to, pitch), source = texels(from, x, y);
  return copy(&target, &source, width, height, kind);
}

PX_API cudaError_t cudaMemcpy2DFromArrayAsync(void *to, size_t pitch, cudaArray_t from, size_t x, size_t y, size_t width,
                                              size_t height, int kind, cudaStream_t stream) {
  PX_REQUIRE(px_is_stream(stream), cudaErrorInvalidResourceHandle);
  return cudaMemcpy2DFromArray(to, pitch, from, x, y, width, height, kind);
}

PX_API cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t to, size_t to_x, size_t to_y, cudaArray_t from, size_t from_x,
                                            size_t from_y, size_t width, size_t height, int kind) {
  PX_REQUIRE(to && from, cudaErrorInvalidResourceHandle);
  px_side target = texels(to, to_x, to_y), source = texels(from, from_x, from_y);
  return copy(&target, &source, width, height, kind);
}

/* `size` bytes that go on from row to row: the rest of the first row, whole rows, a part of the last one. */
static cudaError_t copy_run(px_side array, uint8_t *memory, size_t size, bool to_array, int kind) {
  size_t row = (size_t)array.array->surface.level[0].row_bytes;
  while (size) {
    if (array.x > row) return cudaErrorInvalidValue;
    size_t part = size < row - array.x ? size : row - array.x;
    px_side run = linear(memory, part);
    cudaError_t error = px_copy(to_array ? &array : &run, to_array ? &run : &array, part, 1, 1, kind);
    if (error) return error;
    memory += part;
    size -= part;
    array.x = 0;
    array.y++;
  }
  return cudaSuccess;
}

PX_API cudaError_t cudaMemcpyToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t size, int kind) {
  PX_ENTER();
  PX_REQUIRE(to, cudaErrorInvalidResourceHandle);
  return px_report(copy_run(texels(to, x, y), (uint8_t *)from, size, true, kind));
}

PX_API cudaError_t cudaMemcpyFromArray(void *to, cudaArray_t from, size_t x, size_t y, size_t size, int kind) {
  PX_ENTER();
  PX_REQUIRE(from, cudaErrorInvalidResourceHandle);
  return px_report(copy_run(texels(from, x, y), to, size, false, kind));
}

/* ---- boxes ---- */

/* One side of a 3D copy; positions and extents count texels where arrays take part, else bytes.  false: sizes overflow. */
static bool side_of(px_side *out, cudaArray_t array, cudaPos at, cudaPitchedPtr memory, size_t texel) {
  size_t x, y, z;
  if (__builtin_mul_overflow(at.x, array ? texel : 1, &x)) return false;
  *out = (px_side){.array = array, .x = x, .y = at.y, .z = at.z, .pitch = memory.pitch};
  if (array) return true;
  bool fits = !__builtin_mul_overflow(memory.pitch, memory.ysize, &out->slice) &&
              !__builtin_mul_overflow(memory.pitch, at.y, &y) && !__builtin_mul_overflow(out->slice, at.z, &z) &&
              !__builtin_add_overflow(x, y, &x) && !__builtin_add_overflow(x, z, &x);
  out->memory = (uint8_t *)memory.ptr + (fits ? x : 0);
  return fits;
}

PX_API cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms *what) {
  px_side target, source;
  size_t width;
  PX_ENTER();
  PX_REQUIRE(what && !(what->srcArray && what->srcPtr.ptr) && !(what->dstArray && what->dstPtr.ptr), cudaErrorInvalidValue);
  cudaArray_t array = what->srcArray ? what->srcArray : what->dstArray;
  size_t texel = array ? array->surface.elem_bytes : 1;
  bool fits = side_of(&target, what->dstArray, what->dstPos, what->dstPtr, texel) &&
              side_of(&source, what->srcArray, what->srcPos, what->srcPtr, texel) &&
              !__builtin_mul_overflow(what->extent.width, texel, &width);
  PX_REQUIRE(fits, cudaErrorInvalidValue);
  return px_report(px_copy(&target, &source, width, what->extent.height, what->extent.depth, what->kind));
}

PX_API cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms *what, cudaStream_t stream) {
  PX_REQUIRE(px_is_stream(stream), cudaErrorInvalidResourceHandle);
  return cudaMemcpy3D(what);
}

/* ---- sets ---- */

static cudaError_t fill(void *memory, size_t pitch, size_t slice, int value, size_t width, size_t height, size_t depth) {
  PX_ENTER();
  if (!width || !height || !depth) return px_report(cudaSuccess);
  px_side side = {.memory = memory, .pitch = pitch, .slice = slice};
  cudaError_t error = check(&side, width, height, depth, true);
  for (size_t z = 0; !error && z < depth; z++)
    for (size_t y = 0; y < height; y++) memset(row_of(&side, y, z), value, width);
  return px_report(error);
}

PX_API cudaError_t cudaMemset(void *memory, int value, size_t size) { return fill(memory, size, size, value, size, 1, 1); }

PX_API cudaError_t cudaMemsetAsync(void *memory, int value, size_t size, cudaStream_t stream) {
  PX_REQUIRE(px_is_stream(stream), cudaErrorInvalidResourceHandle);
  return cudaMemset(memory, value, size);
}

PX_API cudaError_t cudaMemset2D(void *memory, size_t pitch, int value, size_t width, size_t height) {
  return fill(memory, pitch, 0, value, width, height, 1);
}

PX_API cudaError_t cudaMemset2DAsync(void *memory, size_t pitch, int value, size_t width, size_t height,
                                     cudaStream_t stream) {
  PX_REQUIRE(px_is_stream(stream), cudaErrorInvalidResourceHandle);
  return cudaMemset2D(memory, pitch, value, width, height);
}

PX_API cudaError_t cudaMemset3D(cudaPitchedPtr memory, int value, cudaExtent extent) {
  size_t slice;
  PX_REQUIRE(!__builtin_mul_overflow(memory.pitch, memory.ysize, &slice), cudaErrorInvalidValue);
  return fill(memory.ptr, memory.pitch, slice, value, extent.width, extent.height, extent.depth);
}

PX_API cudaError_t cudaMemset3DAsync(cudaPitchedPtr memory, int value, cudaExtent extent, cudaStream_t stream) {
  PX_REQUIRE(px_is_stream(stream), cudaErrorInvalidResourceHandle);
  return cudaMemset3D(memory, value, extent);
}
