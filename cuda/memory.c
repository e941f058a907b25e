/* memory.c: memory of all kinds. It all lies in the arena, at the addresses that the host has for it, too. */
#include <stdio.h>
#include <string.h>
#include "checked.h"
#include "core.h"
#include "observer.h"
#include "px_graph.h"
#include "px_ipc.h"
#include "px_place.h"
#include "px_pool.h"

const char px_memory_device[] = "cudaMalloc", px_memory_host[] = "cudaMallocHost", px_memory_managed[] = "cudaMallocManaged",
           px_memory_array[] = "cudaArray", px_memory_embed[] = "ptxemu_alloc";

enum { PITCH = 512 };

/* What is counted; the last of them stands for all others. */
static const char *const kinds[] = {px_memory_device, px_memory_host,  px_memory_managed,
                                    px_memory_array,  px_memory_embed, px_memory_graph};
enum { KINDS = sizeof kinds / sizeof *kinds };

const char *px_memory_kind(unsigned number) { return number < KINDS ? kinds[number] : NULL; }

uint64_t px_allocate(uint64_t size, const char *kind) {
  static _Atomic unsigned long long last[KINDS];
  char name[sizeof((pe_allocation *)0)->name];
  unsigned index = 0;
  while (index < KINDS - 1 && kinds[index] != kind) index++;
  snprintf(name, sizeof name, "allocation %llu of %s", ++last[index], kind);
  pe_arena *arena = px_device_get()->parts.arena;
  uint64_t address = pe_arena_alloc(arena, size, PITCH, name);
  bool blank = kind == px_memory_device || kind == px_memory_array;
  if (address && blank) pe_arena_filled(arena, address, size, PE_BLANKS);
  return address;
}

static bool in_arena(const void *address) {
  const pe_arena *arena = px_device_get()->parts.arena;
  return (uint64_t)(uintptr_t)address - pe_arena_base(arena) < pe_arena_extent(arena);
}

bool px_find(const void *address, pe_allocation *out) {
  return in_arena(address) && pe_arena_find(px_device_get()->parts.arena, (uint64_t)(uintptr_t)address, out);
}

bool px_is_known(const void *address, uint64_t size) {
  pe_allocation found;
  if (size == 0 || px_is_registered(address, size)) return true;
  for (uint64_t left; px_find(address, &found); address = (const uint8_t *)address + left, size -= left) {
    left = found.size - ((uint64_t)(uintptr_t)address - found.address);
    if (size <= left) return true; /* else it may go on in another one: mappings lie side by side */
  }
  return false;
}

bool px_is_any(const void *address, uint64_t size) {
  if (size == 0) return true;
  return in_arena(address) ? px_is_known(address, size) : address != NULL;
}

bool px_is_device(const void *address, uint64_t size) {
  return px_device_get()->parts.host_memory ? px_is_any(address, size) : px_is_known(address, size);
}

bool px_may_write(const void *address, uint64_t size) {
  return !in_arena(address) || pe_arena_may_write(px_device_get()->parts.arena, (uint64_t)(uintptr_t)address, size);
}

bool px_is_of_kind(const pe_allocation *found, const char *kind) {
  const char *of = strstr(found->name, " of ");
  return of && strcmp(of + strlen(" of "), kind) == 0;
}

/* ---- allocation ---- */

/* Begin a function that changes what memory there is, which captures may forbid. */
#define ENTER_UNSAFE()                         \
  PX_ENTER();                                  \
  cudaError_t px_unsafe = px_capture_unsafe(); \
  PX_REQUIRE(!px_unsafe, px_unsafe)

static cudaError_t allocate(void **pointer, size_t size, const char *kind) {
  ENTER_UNSAFE();
  PX_REQUIRE(pointer, cudaErrorInvalidValue);
  uint64_t address = size ? px_allocate(size, kind) : 0;
  *pointer = (void *)(uintptr_t)address;
  return px_report(address || !size ? cudaSuccess : cudaErrorMemoryAllocation);
}

/* What a graph has allocated, and not freed. */
static cudaError_t release_of_graph(const void *pointer) {
  px_block *block = px_block_at(pointer);
  bool given = block && px_block_give(block);
  px_block_release(block);
  return px_report(given ? cudaSuccess : cudaErrorInvalidValue);
}

static cudaError_t release(void *pointer, bool host) {
  pe_allocation found;
  ENTER_UNSAFE();
  if (!pointer) return px_report(cudaSuccess);
  PX_SETTLE();
  PX_REQUIRE(px_find(pointer, &found) && found.address == (uint64_t)(uintptr_t)pointer, cudaErrorInvalidValue);
  if (!host && px_is_of_kind(&found, px_memory_graph)) return release_of_graph(pointer);
  if (!host && px_is_of_kind(&found, px_memory_imported))
    return px_report(px_ipc_close(pointer) ? cudaSuccess : cudaErrorInvalidValue);
  bool fits = host ? px_is_of_kind(&found, px_memory_host)
                   : px_is_of_kind(&found, px_memory_device) || px_is_of_kind(&found, px_memory_managed);
  PX_REQUIRE(fits && !pe_arena_free(px_device_get()->parts.arena, found.address), cudaErrorInvalidValue);
  px_ipc_freed(found.address);
  px_pool_freed(found.address);
  return px_report(cudaSuccess);
}

PX_API cudaError_t cudaMalloc(void **pointer, size_t size) { return allocate(pointer, size, px_memory_device); }

PX_API cudaError_t cudaFree(void *pointer) { return release(pointer, false); }

PX_API cudaError_t cudaMallocHost(void **pointer, size_t size) { return allocate(pointer, size, px_memory_host); }

PX_API cudaError_t cudaFreeHost(void *pointer) { return release(pointer, true); }

PX_API cudaError_t cudaHostAlloc(void **pointer, size_t size, unsigned flags) {
  enum { PORTABLE = 1, MAPPED = 2, WRITE_COMBINED = 4 };
  PX_REQUIRE(!(flags & ~(unsigned)(PORTABLE | MAPPED | WRITE_COMBINED)), cudaErrorInvalidValue);
  return allocate(pointer, size, px_memory_host);
}

PX_API cudaError_t cudaMallocManaged(void **pointer, size_t size, unsigned flags) {
  enum { GLOBAL = 1, HOST = 2 };
  PX_REQUIRE(size && (flags == GLOBAL || flags == HOST), cudaErrorInvalidValue);
  return allocate(pointer, size, px_memory_managed);
}

static cudaError_t allocate_rows(void **pointer, size_t *pitch, size_t width, size_t height, size_t depth) {
  uint64_t row, slice, total;
  PX_REQUIRE(pointer && pitch, cudaErrorInvalidValue);
  bool fits = !__builtin_add_overflow(width, PITCH - 1, &row);
  row &= ~(uint64_t)(PITCH - 1);
  fits = fits && !__builtin_mul_overflow(row, height, &slice) && !__builtin_mul_overflow(slice, depth, &total);
  PX_REQUIRE(fits, cudaErrorMemoryAllocation);
  *pitch = row;
  return allocate(pointer, total, px_memory_device);
}

PX_API cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height) {
  return allocate_rows(pointer, pitch, width, height, 1);
}

PX_API cudaError_t cudaMalloc3D(cudaPitchedPtr *out, cudaExtent extent) {
  PX_REQUIRE(out, cudaErrorInvalidValue);
  out->xsize = extent.width;
  out->ysize = extent.height;
  return allocate_rows(&out->ptr, &out->pitch, extent.width, extent.height, extent.depth);
}

/* ---- in the order of a stream: memory is there at once, and goes when all is done that may use it. In a capture, they are nodes ---- */

static cudaError_t capture_allocation(void **pointer, size_t size, cudaStream_t stream) {
  PX_REQUIRE(pointer && size, cudaErrorInvalidValue);
  px_block *block = px_block_new(size);
  PX_REQUIRE(block, cudaErrorMemoryAllocation);
  void *address = (void *)(uintptr_t)px_block_address(block);
  cudaError_t error = px_submit(stream, px_work_block(PX_TAKE, block));
  if (!error) *pointer = address;
  return px_report(error);
}

/* `pool`: NULL for the device's current one. */
static cudaError_t allocate_in(cudaStream_t stream, cudaMemPool_t pool, void **pointer, size_t size) {
  PX_ENTER();
  PX_REQUIRE(px_is_stream(stream), cudaErrorInvalidResourceHandle);
  if (px_is_captured(stream)) return capture_allocation(pointer, size, stream);
  PX_REQUIRE(pointer, cudaErrorInvalidValue);
  *pointer = NULL;
  return px_report(size ? px_pool_allocate(pool, size, pointer) : cudaSuccess);
}

PX_API cudaError_t cudaMallocAsync(void **pointer, size_t size, cudaStream_t stream) {
  return allocate_in(stream, NULL, pointer, size);
}

PX_API cudaError_t cudaMallocFromPoolAsync(void **pointer, size_t size, cudaMemPool_t pool, cudaStream_t stream) {
  PX_REQUIRE(pool, cudaErrorInvalidValue);
  return allocate_in(stream, pool, pointer, size);
}

PX_API cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream) {
  PX_ENTER();
  PX_REQUIRE(px_is_stream(stream), cudaErrorInvalidResourceHandle);
  PX_REQUIRE(pointer, cudaErrorInvalidValue);
  if (!px_is_captured(stream)) return release(pointer, false);
  px_block *block = px_block_at(pointer);
  PX_REQUIRE(block, cudaErrorInvalidValue);
  return px_report(px_submit(stream, px_work_block(PX_GIVE, block)));
}

/* ---- questions ---- */

PX_API cudaError_t cudaMemGetInfo(size_t *unused, size_t *total) {
  PX_ENTER();
  PX_REQUIRE(unused && total, cudaErrorInvalidValue);
  const px_device *device = px_device_get();
  uint64_t used = pe_arena_used(device->parts.arena);
  *total = device->capacity;
  *unused = used < device->capacity ? device->capacity - used : 0;
  return px_report(cudaSuccess);
}

static int type_of(const void *pointer) {
  pe_allocation found;
  if (px_is_registered(pointer, 1)) return cudaMemoryTypeHost;
  if (!px_find(pointer, &found)) return px_is_device(pointer, 1) ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered;
  if (px_is_of_kind(&found, px_memory_host)) return cudaMemoryTypeHost;
  return px_is_of_kind(&found, px_memory_managed) ? cudaMemoryTypeManaged : cudaMemoryTypeDevice;
}

/* The fields that CUDA 12 has, too: its structure is shorter. */
PX_API cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *out, const void *pointer) {
  enum { NO_DEVICE = -2 };
  PX_ENTER();
  PX_REQUIRE(out, cudaErrorInvalidValue);
  out->type = type_of(pointer);
  out->device = out->type == cudaMemoryTypeUnregistered ? NO_DEVICE : 0;
  out->devicePointer = out->type == cudaMemoryTypeUnregistered ? NULL : (void *)(uintptr_t)pointer;
  out->hostPointer = out->type == cudaMemoryTypeDevice ? NULL : (void *)(uintptr_t)pointer;
  return px_report(cudaSuccess);
}

PX_API cudaError_t cudaHostGetDevicePointer(void **out, void *host, unsigned flags) {
  PX_ENTER();
  PX_REQUIRE(out && !flags && type_of(host) == cudaMemoryTypeHost, cudaErrorInvalidValue);
  *out = host;
  return px_report(cudaSuccess);
}

PX_API cudaError_t cudaHostGetFlags(unsigned *flags, void *host) {
  PX_ENTER();
  PX_REQUIRE(flags && type_of(host) == cudaMemoryTypeHost, cudaErrorInvalidValue);
  *flags = 2; /* mapped */
  return px_report(cudaSuccess);
}

/* Hints on where managed memory should lie: it is everywhere already. */
static cudaError_t hint(const void *pointer, size_t size) {
  PX_ENTER();
  PX_REQUIRE(size && px_is_device(pointer, size), cudaErrorInvalidValue);
  return px_report(cudaSuccess);
}

/* Advices, of which those that end one name no place. */
enum { READ_MOSTLY = 1, READ_MOSTLY_NO_MORE, PREFERRED, PREFERRED_NO_MORE, ACCESSED_BY, ACCESSED_BY_NO_MORE };

PX_API cudaError_t cudaMemAdvise_v2(const void *pointer, size_t size, int advice, cudaMemLocation location) {
  bool placed = advice == PREFERRED || advice == ACCESSED_BY || advice == ACCESSED_BY_NO_MORE;
  PX_ENTER();
  PX_REQUIRE(advice >= READ_MOSTLY && advice <= ACCESSED_BY_NO_MORE, cudaErrorInvalidValue);
  cudaError_t error = placed ? px_place_error(&location) : cudaSuccess;
  PX_REQUIRE(!error, error);
  return hint(pointer, size);
}

PX_API cudaError_t cudaMemPrefetchAsync_v2(const void *pointer, size_t size, cudaMemLocation location, unsigned flags,
                                           cudaStream_t stream) {
  PX_ENTER();
  PX_REQUIRE(!flags, cudaErrorInvalidValue);
  cudaError_t error = px_place_error(&location);
  PX_REQUIRE(!error, error);
  PX_REQUIRE(px_is_stream(stream), cudaErrorInvalidResourceHandle);
  return hint(pointer, size);
}

PX_API cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void *pointer, size_t size, unsigned flags) {
  enum { GLOBAL = 1, HOST = 2, SINGLE = 4 };
  PX_ENTER();
  PX_REQUIRE(px_is_stream(stream), cudaErrorInvalidResourceHandle);
  PX_REQUIRE(flags == GLOBAL || flags == HOST || flags == SINGLE, cudaErrorInvalidValue);
  return hint(pointer, size ? size : 1);
}
