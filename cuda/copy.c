/* copy.c: copies and sets of memory.
 *
 * A call with a stream checks at once and may be done later, if device memory, registered memory and arrays are all that it touches. What
 * the program may change or expects to find right after the call waits for what is before it in the stream, and is done then.
 */
#include <string.h>
#include "checked.h"
#include "core.h"
#include "observer.h"
#include "px_graph.h"
#include "px_stream.h"

/* ---- checks ---- */

static bool to_device(int kind) { return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice; }

static bool from_device(int kind) { return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice; }

static bool is_kind(int kind) { return kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault; }

/* What one side of a copy may be: px_is_known, px_is_device or px_is_any. */
typedef bool (*px_memory_test)(const void *memory, uint64_t size);

/* The same of what is written. */
static bool is_any_target(const void *memory, uint64_t size) {
  return px_is_any(memory, size) && px_may_write(memory, size);
}

static bool is_device_target(const void *memory, uint64_t size) {
  return px_is_device(memory, size) && px_may_write(memory, size);
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

static cudaError_t check(const px_side *side, size_t width, size_t height, size_t depth, px_memory_test may_touch) {
  uint64_t size;
  if (side->array && !px_is_array(side->array)) return cudaErrorInvalidResourceHandle;
  if (side->array) return fits_array(side, width, height, depth) ? cudaSuccess : cudaErrorInvalidValue;
  if ((height > 1 && side->pitch < width) || (depth > 1 && side->slice < side->pitch)) return cudaErrorInvalidPitchValue;
  bool fits = span(side, width, height, depth, &size) && may_touch(side->memory, size);
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

static void tell_filled(const uint8_t *row, size_t size) {
  pe_arena_filled(px_device_get()->parts.arena, (uint64_t)(uintptr_t)row, size, PE_CONTENTS);
}

static void copy_box(const px_box *box) {
  for (size_t z = 0; z < box->depth; z++)
    for (size_t y = 0; y < box->height; y++) {
      uint8_t *row = row_of(&box->to, y, z);
      memmove(row, row_of(&box->from, y, z), box->width);
      tell_filled(row, box->width);
    }
}

static void set_row(uint8_t *row, const px_box *box) {
  tell_filled(row, box->width);
  if (box->repeats == 1)
    memset(row, (int)box->value, box->width);
  else
    for (size_t x = 0; x < box->width; x += box->repeats) memcpy(row + x, &box->value, box->repeats);
}

static void set_box(const px_box *box) {
  for (size_t z = 0; z < box->depth; z++)
    for (size_t y = 0; y < box->height; y++) set_row(row_of(&box->to, y, z), box);
}

/* Whether a side can be touched after the call. */
static bool can_wait(const px_side *side, size_t width, size_t height, size_t depth) {
  return side->array || check(side, width, height, depth, px_is_known) == cudaSuccess;
}

static px_work *box_work(px_kind kind, const px_box *box) {
  px_work *work = px_work_new(kind);
  cudaArray_t array = box->from.array ? box->from.array : box->to.array;
  if (!work) return NULL;
  work->box = *box;
  work->box.texel = array ? array->surface.elem_bytes : 1;
  return work;
}

static cudaError_t check_copy(const px_box *box, int kind) {
  if (!is_kind(kind)) return cudaErrorInvalidMemcpyDirection;
  if (!box->width || !box->height || !box->depth) return cudaSuccess;
  px_memory_test to = to_device(kind) ? is_device_target : is_any_target,
                 from = from_device(kind) ? px_is_device : px_is_any;
  cudaError_t error = check(&box->to, box->width, box->height, box->depth, to);
  return error ? error : check(&box->from, box->width, box->height, box->depth, from);
}

cudaError_t px_copy(const px_side *to, const px_side *from, size_t width, size_t height, size_t depth, int kind) {
  const px_box box = {.to = *to, .from = *from, .width = width, .height = height, .depth = depth};
  cudaError_t error = check_copy(&box, kind);
  if (!error) error = px_capture_legacy();
  if (!error) error = px_stream_wait(NULL);
  if (!error && width) copy_box(&box);
  return error ? error : px_enter();
}

cudaError_t px_copy_in(cudaStream_t stream, const px_side *to, const px_side *from, size_t width, size_t height,
                       size_t depth, int kind) {
  const px_box box = {.to = *to, .from = *from, .width = width, .height = height, .depth = depth};
  cudaError_t error = check_copy(&box, kind);
  if (error || !width || !height || !depth) return error;
  bool waits = can_wait(to, width, height, depth) && can_wait(from, width, height, depth);
  if (waits || px_is_captured(stream)) {
    px_work *work = box_work(PX_COPY, &box);
    if (work) work->direction = kind;
    return px_submit(stream, work);
  }
  error = px_stream_wait(stream);
  if (!error) copy_box(&box);
  return error ? error : px_enter();
}

cudaError_t px_copy_work(const px_box *box, int kind, px_work **out) {
  cudaError_t error = check_copy(box, kind);
  if (error) return error;
  *out = box_work(PX_COPY, box);
  if (*out) (*out)->direction = kind;
  return *out ? cudaSuccess : cudaErrorMemoryAllocation;
}

/* `in`: the stream of a call that has one, or NULL. */
static cudaError_t copy(const px_side *to, const px_side *from, size_t width, size_t height, int kind,
                        const cudaStream_t *in) {
  PX_ENTER();
  if (!in) return px_report(px_copy(to, from, width, height, 1, kind));
  PX_REQUIRE(px_is_stream(*in), cudaErrorInvalidResourceHandle);
  return px_report(px_copy_in(*in, to, from, width, height, 1, kind));
}

static px_side linear(const void *memory, size_t pitch) { return (px_side){.memory = (uint8_t *)memory, .pitch = pitch}; }

static px_side texels(cudaArray_t array, size_t x, size_t y) { return (px_side){.array = array, .x = x, .y = y}; }

/* ---- memory to memory ---- */

static cudaError_t copy_bytes(void *to, const void *from, size_t size, int kind, const cudaStream_t *in) {
  px_side target = linear(to, size), source = linear(from, size);
  return copy(&target, &source, size, 1, kind, in);
}

PX_API cudaError_t cudaMemcpy(void *to, const void *from, size_t size, int kind) {
  return copy_bytes(to, from, size, kind, NULL);
}

PX_API cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, int kind, cudaStream_t stream) {
  return copy_bytes(to, from, size, kind, &stream);
}

PX_API cudaError_t cudaMemcpyPeer(void *to, int to_number, const void *from, int from_number, size_t size) {
  PX_REQUIRE(to_number == 0 && from_number == 0, cudaErrorInvalidDevice);
  return cudaMemcpy(to, from, size, cudaMemcpyDeviceToDevice);
}

PX_API cudaError_t cudaMemcpyPeerAsync(void *to, int to_number, const void *from, int from_number, size_t size,
                                       cudaStream_t stream) {
  PX_REQUIRE(to_number == 0 && from_number == 0, cudaErrorInvalidDevice);
  return cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToDevice, stream);
}

static cudaError_t copy_rows(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                             int kind, const cudaStream_t *in) {
  px_side target = linear(to, to_pitch), source = linear(from, from_pitch);
  return copy(&target, &source, width, height, kind, in);
}

PX_API cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                                int kind) {
  return copy_rows(to, to_pitch, from, from_pitch, width, height, kind, NULL);
}

PX_API cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                                     size_t height, int kind, cudaStream_t stream) {
  return copy_rows(to, to_pitch, from, from_pitch, width, height, kind, &stream);
}

/* ---- arrays ---- */

static cudaError_t copy_to_array(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width,
                                 size_t height, int kind, const cudaStream_t *in) {
  PX_REQUIRE(to, cudaErrorInvalidResourceHandle);
  px_side target = texels(to, x, y), source = linear(from, pitch);
  return copy(&target, &source, width, height, kind, in);
}

PX_API cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width,
                                       size_t height, int kind) {
  return copy_to_array(to, x, y, from, pitch, width, height, kind, NULL);
}

PX_API cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width,
                                            size_t height, int kind, cudaStream_t stream) {
  return copy_to_array(to, x, y, from, pitch, width, height, kind, &stream);
}

static cudaError_t copy_from_array(void *to, size_t pitch, cudaArray_t from, size_t x, size_t y, size_t width, size_t height,
                                   int kind, const cudaStream_t *in) {
  PX_REQUIRE(from, cudaErrorInvalidResourceHandle);
  px_side target = linear(to, pitch), source = texels(from, x, y);
  return copy(&target, &source, width, height, kind, in);
}

PX_API cudaError_t cudaMemcpy2DFromArray(void *to, size_t pitch, cudaArray_t from, size_t x, size_t y, size_t width,
                                         size_t height, int kind) {
  return copy_from_array(to, pitch, from, x, y, width, height, kind, NULL);
}

PX_API cudaError_t cudaMemcpy2DFromArrayAsync(void *to, size_t pitch, cudaArray_t from, size_t x, size_t y, size_t width,
                                              size_t height, int kind, cudaStream_t stream) {
  return copy_from_array(to, pitch, from, x, y, width, height, kind, &stream);
}

PX_API cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t to, size_t to_x, size_t to_y, cudaArray_t from, size_t from_x,
                                            size_t from_y, size_t width, size_t height, int kind) {
  PX_REQUIRE(to && from, cudaErrorInvalidResourceHandle);
  px_side target = texels(to, to_x, to_y), source = texels(from, from_x, from_y);
  return copy(&target, &source, width, height, kind, NULL);
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
  PX_REQUIRE(px_is_array(to), cudaErrorInvalidResourceHandle);
  return px_report(copy_run(texels(to, x, y), (uint8_t *)from, size, true, kind));
}

PX_API cudaError_t cudaMemcpyFromArray(void *to, cudaArray_t from, size_t x, size_t y, size_t size, int kind) {
  PX_ENTER();
  PX_REQUIRE(px_is_array(from), cudaErrorInvalidResourceHandle);
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

cudaError_t px_copy_parse(const cudaMemcpy3DParms *what, px_box *out) {
  if (!what || (what->srcArray && what->srcPtr.ptr) || (what->dstArray && what->dstPtr.ptr)) return cudaErrorInvalidValue;
  cudaArray_t array = what->srcArray ? what->srcArray : what->dstArray;
  if (array && !px_is_array(array)) return cudaErrorInvalidResourceHandle;
  size_t texel = array ? array->surface.elem_bytes : 1;
  *out = (px_box){.height = what->extent.height, .depth = what->extent.depth};
  bool fits = side_of(&out->to, what->dstArray, what->dstPos, what->dstPtr, texel) &&
              side_of(&out->from, what->srcArray, what->srcPos, what->srcPtr, texel) &&
              !__builtin_mul_overflow(what->extent.width, texel, &out->width);
  return fits ? cudaSuccess : cudaErrorInvalidValue;
}

static cudaError_t copy_parms(const cudaMemcpy3DParms *what, const cudaStream_t *in) {
  px_box box;
  PX_ENTER();
  cudaError_t error = px_copy_parse(what, &box);
  PX_REQUIRE(!error, error);
  if (!in) return px_report(px_copy(&box.to, &box.from, box.width, box.height, box.depth, what->kind));
  PX_REQUIRE(px_is_stream(*in), cudaErrorInvalidResourceHandle);
  return px_report(px_copy_in(*in, &box.to, &box.from, box.width, box.height, box.depth, what->kind));
}

PX_API cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms *what) { return copy_parms(what, NULL); }

PX_API cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms *what, cudaStream_t stream) {
  return copy_parms(what, &stream);
}

/* ---- sets: device memory only, so that they can always wait ---- */

static cudaError_t check_set(const px_box *box) {
  if (!box->width || !box->height || !box->depth) return cudaSuccess;
  return check(&box->to, box->width, box->height, box->depth, is_device_target);
}

bool px_work_move(const px_work *work) {
  PX_CALL();
  const px_box *box = &work->box;
  if (work->kind == PX_COPY ? check_copy(box, work->direction) : check_set(box)) return false;
  if (work->kind == PX_COPY)
    copy_box(box);
  else
    set_box(box);
  return true;
}

cudaError_t px_set_work(const px_box *box, px_work **out) {
  cudaError_t error = check_set(box);
  if (error) return error;
  *out = box_work(PX_SET, box);
  return *out ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t px_set_in(cudaStream_t stream, const px_box *box) {
  px_work *work;
  if (!box->width || !box->height || !box->depth) return cudaSuccess;
  cudaError_t error = px_set_work(box, &work);
  return error ? error : px_submit(stream, work);
}

static cudaError_t set_in(cudaStream_t stream, void *memory, size_t pitch, size_t slice, int value, size_t width,
                          size_t height, size_t depth) {
  PX_ENTER();
  PX_REQUIRE(px_is_stream(stream), cudaErrorInvalidResourceHandle);
  px_side to = {.memory = memory, .pitch = pitch, .slice = slice};
  px_box box = {.to = to, .width = width, .height = height, .depth = depth, .value = (uint8_t)value, .repeats = 1};
  return px_report(px_set_in(stream, &box));
}

PX_API cudaError_t cudaMemsetAsync(void *memory, int value, size_t size, cudaStream_t stream) {
  return set_in(stream, memory, size, size, value, size, 1, 1);
}

PX_API cudaError_t cudaMemset(void *memory, int value, size_t size) { return cudaMemsetAsync(memory, value, size, NULL); }

PX_API cudaError_t cudaMemset2DAsync(void *memory, size_t pitch, int value, size_t width, size_t height,
                                     cudaStream_t stream) {
  return set_in(stream, memory, pitch, 0, value, width, height, 1);
}

PX_API cudaError_t cudaMemset2D(void *memory, size_t pitch, int value, size_t width, size_t height) {
  return cudaMemset2DAsync(memory, pitch, value, width, height, NULL);
}

PX_API cudaError_t cudaMemset3DAsync(cudaPitchedPtr memory, int value, cudaExtent extent, cudaStream_t stream) {
  size_t slice;
  PX_REQUIRE(!__builtin_mul_overflow(memory.pitch, memory.ysize, &slice), cudaErrorInvalidValue);
  return set_in(stream, memory.ptr, memory.pitch, slice, value, extent.width, extent.height, extent.depth);
}

PX_API cudaError_t cudaMemset3D(cudaPitchedPtr memory, int value, cudaExtent extent) {
  return cudaMemset3DAsync(memory, value, extent, NULL);
}
