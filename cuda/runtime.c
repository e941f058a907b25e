/* runtime.c: devices, limits, versions, symbols, pools. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "checked.h"
#include "core.h"
#include "px_graph.h"
#include "registry.h"

enum { DRIVER_VERSION = 13000 };

/* ---- the device ---- */

PX_API cudaError_t cudaGetDeviceCount(int *count) {
  PX_REQUIRE(count, cudaErrorInvalidValue);
  *count = 1;
  return px_report(cudaSuccess);
}

PX_API cudaError_t cudaSetDevice(int number) {
  PX_REQUIRE(number == 0, cudaErrorInvalidDevice);
  px_context_pop();
  px_context_push(&px_primary);
  PX_ENTER();
  return px_report(cudaSuccess);
}

PX_API cudaError_t cudaGetDevice(int *number) {
  PX_REQUIRE(number, cudaErrorInvalidValue);
  *number = 0;
  return px_report(cudaSuccess);
}

PX_API cudaError_t cudaChooseDevice(int *number, const void *properties) {
  PX_REQUIRE(properties, cudaErrorInvalidValue);
  return cudaGetDevice(number);
}

PX_API cudaError_t cudaDeviceSynchronize(void) {
  PX_ENTER();
  cudaError_t error = px_capture_unsafe();
  if (!error) error = px_wait_all();
  return px_report(error ? error : px_enter());
}

PX_API cudaError_t cudaDeviceReset(void) { return px_report(px_primary_reset()); }

PX_API cudaError_t cudaSetDeviceFlags(unsigned flags) {
  PX_REQUIRE(!(flags & ~0x9fu), cudaErrorInvalidValue); /* how to wait, and mapped memory, which is always there */
  return px_report(cudaSuccess);
}

PX_API cudaError_t cudaGetDeviceFlags(unsigned *flags) {
  PX_REQUIRE(flags, cudaErrorInvalidValue);
  *flags = 8; /* memory of the host can be mapped */
  return px_report(cudaSuccess);
}

PX_API cudaError_t cudaDriverGetVersion(int *version) {
  PX_REQUIRE(version, cudaErrorInvalidValue);
  *version = DRIVER_VERSION;
  return px_report(cudaSuccess);
}

PX_API cudaError_t px_tell_version(int *version, int own) {
  PX_REQUIRE(version, cudaErrorInvalidValue);
  *version = own;
  return px_report(cudaSuccess);
}

PX_API cudaError_t cudaDeviceCanAccessPeer(int *can, int number, int peer) {
  PX_REQUIRE(number == 0 && peer == 0, cudaErrorInvalidDevice);
  PX_REQUIRE(can, cudaErrorInvalidValue);
  *can = 0; /* no device is its own peer */
  return px_report(cudaSuccess);
}

static const char bus_id[] = "0000:00:00.0";

PX_API cudaError_t cudaDeviceGetPCIBusId(char *text, int size, int number) {
  PX_REQUIRE(number == 0, cudaErrorInvalidDevice);
  PX_REQUIRE(text && size > (int)sizeof bus_id - 1, cudaErrorInvalidValue);
  memcpy(text, bus_id, sizeof bus_id);
  return px_report(cudaSuccess);
}

PX_API cudaError_t cudaDeviceGetByPCIBusId(int *number, const char *text) {
  PX_REQUIRE(number && text, cudaErrorInvalidValue);
  PX_REQUIRE(!strcmp(text, bus_id), cudaErrorInvalidDevice);
  *number = 0;
  return px_report(cudaSuccess);
}

/* ---- limits ---- */

enum { LIMIT_STACK, LIMIT_PRINTF, LIMIT_HEAP, LIMIT_DEPTH, LIMIT_LAUNCHES, PRINTF_BYTES = 16 << 20 };
static size_t heap_bytes = 8 << 20;
static size_t launches = 2048; /* of kernels, that may wait: a wish, as they take memory of the heap */

PX_API cudaError_t cudaDeviceSetLimit(int limit, size_t value) {
  PX_ENTER();
  switch (limit) {
    case LIMIT_STACK:
      PX_REQUIRE(value <= PE_MAX_LOCAL, cudaErrorInvalidValue);
      px_set_stack(value);
      return px_report(cudaSuccess);
    case LIMIT_PRINTF: return px_report(value <= PRINTF_BYTES ? cudaSuccess : cudaErrorInvalidValue);
    case LIMIT_HEAP:
      PX_REQUIRE(!pe_arena_set_heap(px_device_get()->parts.arena, value), cudaErrorInvalidValue);
      heap_bytes = value;
      return px_report(cudaSuccess);
    case LIMIT_LAUNCHES: launches = value; return px_report(cudaSuccess);
    default: return px_report(cudaErrorNotSupported);
  }
}

PX_API cudaError_t cudaDeviceGetLimit(size_t *value, int limit) {
  PX_ENTER();
  PX_REQUIRE(value, cudaErrorInvalidValue);
  switch (limit) {
    case LIMIT_STACK: *value = px_device_get()->parts.stack; return px_report(cudaSuccess);
    case LIMIT_PRINTF: *value = PRINTF_BYTES; return px_report(cudaSuccess);
    case LIMIT_HEAP: *value = heap_bytes; return px_report(cudaSuccess);
    case LIMIT_LAUNCHES: *value = launches; return px_report(cudaSuccess);
    default: return px_report(cudaErrorNotSupported);
  }
}

/* Preferences of caches, which a CPU does not offer. */
PX_API cudaError_t cudaDeviceSetCacheConfig(int config) {
  PX_REQUIRE(config >= 0 && config <= 3, cudaErrorInvalidValue);
  return px_report(cudaSuccess);
}

PX_API cudaError_t cudaDeviceGetCacheConfig(int *config) {
  PX_REQUIRE(config, cudaErrorInvalidValue);
  *config = 0;
  return px_report(cudaSuccess);
}

/* ---- symbols ---- */

static cudaError_t range(const void *symbol, size_t size, size_t offset, uint8_t **out) {
  uint64_t address, whole;
  cudaError_t error = px_variable_of(symbol, &address, &whole);
  if (error) return error;
  if (!pe_within(offset, size, whole)) return cudaErrorInvalidValue;
  *out = (uint8_t *)(uintptr_t)(address + offset);
  return cudaSuccess;
}

/* `in`: the stream of a call that has one, or NULL. */
static cudaError_t copy(void *to, const void *from, size_t size, int kind, const cudaStream_t *in) {
  px_side target = {.memory = to, .pitch = size}, source = {.memory = (uint8_t *)from, .pitch = size};
  if (!in) return px_copy(&target, &source, size, 1, 1, kind);
  return px_is_stream(*in) ? px_copy_in(*in, &target, &source, size, 1, 1, kind) : cudaErrorInvalidResourceHandle;
}

static cudaError_t copy_to(const void *symbol, const void *from, size_t size, size_t offset, int kind,
                           const cudaStream_t *in) {
  uint8_t *at;
  PX_ENTER();
  PX_REQUIRE(kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault,
             cudaErrorInvalidMemcpyDirection);
  cudaError_t error = range(symbol, size, offset, &at);
  return px_report(error ? error : copy(at, from, size, kind, in));
}

static cudaError_t copy_from(void *to, const void *symbol, size_t size, size_t offset, int kind, const cudaStream_t *in) {
  uint8_t *at;
  PX_ENTER();
  PX_REQUIRE(kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault,
             cudaErrorInvalidMemcpyDirection);
  cudaError_t error = range(symbol, size, offset, &at);
  return px_report(error ? error : copy(to, at, size, kind, in));
}

PX_API cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t size, size_t offset, int kind) {
  return copy_to(symbol, from, size, offset, kind, NULL);
}

PX_API cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t size, size_t offset, int kind,
                                           cudaStream_t stream) {
  return copy_to(symbol, from, size, offset, kind, &stream);
}

PX_API cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t size, size_t offset, int kind) {
  return copy_from(to, symbol, size, offset, kind, NULL);
}

PX_API cudaError_t cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t size, size_t offset, int kind,
                                             cudaStream_t stream) {
  return copy_from(to, symbol, size, offset, kind, &stream);
}

PX_API cudaError_t cudaGetSymbolAddress(void **out, const void *symbol) {
  uint64_t address, size;
  PX_ENTER();
  PX_REQUIRE(out, cudaErrorInvalidValue);
  cudaError_t error = px_variable_of(symbol, &address, &size);
  if (!error) *out = (void *)(uintptr_t)address;
  return px_report(error);
}

PX_API cudaError_t cudaGetSymbolSize(size_t *size, const void *symbol) {
  uint64_t address, whole;
  PX_ENTER();
  PX_REQUIRE(size, cudaErrorInvalidValue);
  cudaError_t error = px_variable_of(symbol, &address, &whole);
  if (!error) *size = whole;
  return px_report(error);
}

/* ---- profilers: there is none that could be told ---- */

PX_API cudaError_t cudaProfilerStart(void) { return px_report(cudaSuccess); }

PX_API cudaError_t cudaProfilerStop(void) { return px_report(cudaSuccess); }

/* ---- other names ---- */

PX_API cudaError_t cudaInitDevice(int number, unsigned flags, unsigned more) {
  (void)more;
  PX_REQUIRE(number == 0, cudaErrorInvalidDevice);
  return cudaSetDeviceFlags(flags);
}

PX_API cudaError_t cudaThreadSynchronize(void) { return cudaDeviceSynchronize(); }

PX_API cudaError_t cudaThreadExit(void) { return cudaDeviceReset(); }
