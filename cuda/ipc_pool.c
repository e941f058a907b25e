/* ipc_pool.c: memory pools of other processes. A file stands for a pool; its allocations are files of their own. */
#include <fcntl.h>
#include <string.h>
#include "core.h"
#include "px_ipc.h"
#include "px_pool.h"

enum { POSIX_FILE = 1 };

/* Where in a handle, behind what names the memory, the number of the pool's file is. */
enum { POOL_AT = sizeof(cudaIpcMemHandle_t) - sizeof(uint64_t) };

static uint64_t pool_of(const cudaMemPoolPtrExportData *data) {
  uint64_t number;
  memcpy(&number, data->reserved + POOL_AT, sizeof number);
  return number;
}

PX_API cudaError_t cudaMemPoolExportToShareableHandle(void *out, cudaMemPool_t pool, int type, unsigned flags) {
  PX_ENTER();
  PX_REQUIRE(out && type == POSIX_FILE && !flags, cudaErrorInvalidValue);
  int token = px_pool_token(pool), file = token < 0 ? -1 : fcntl(token, F_DUPFD_CLOEXEC, 0);
  PX_REQUIRE(file >= 0, cudaErrorInvalidValue);
  memcpy(out, &file, sizeof file);
  return px_report(cudaSuccess);
}

PX_API cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t *out, void *handle, int type, unsigned flags) {
  PX_ENTER();
  PX_REQUIRE(out && type == POSIX_FILE && !flags && (uintptr_t)handle <= INT32_MAX, cudaErrorInvalidValue);
  int given = (int)(uintptr_t)handle, token = px_ipc_size(given) == 1 ? fcntl(given, F_DUPFD_CLOEXEC, 0) : -1;
  PX_REQUIRE(token >= 0, cudaErrorInvalidValue);
  cudaMemPool_t made = px_pool_import(token);
  PX_REQUIRE(made, cudaErrorMemoryAllocation);
  *out = made;
  return px_report(cudaSuccess);
}

PX_API cudaError_t cudaMemPoolExportPointer(cudaMemPoolPtrExportData *out, void *pointer) {
  cudaIpcMemHandle_t handle;
  PX_ENTER();
  PX_REQUIRE(out, cudaErrorInvalidValue);
  cudaMemPool_t pool = px_pool_of((uintptr_t)pointer);
  int token = pool ? px_pool_token(pool) : -1;
  PX_REQUIRE(token >= 0, cudaErrorInvalidValue);
  cudaError_t error = px_ipc_give(pointer, &handle);
  PX_REQUIRE(!error, error);
  const uint64_t number = px_ipc_number(token);
  memcpy(out->reserved, &handle, sizeof handle);
  memcpy(out->reserved + POOL_AT, &number, sizeof number);
  return px_report(cudaSuccess);
}

PX_API cudaError_t cudaMemPoolImportPointer(void **out, cudaMemPool_t pool, cudaMemPoolPtrExportData *data) {
  cudaIpcMemHandle_t handle;
  PX_ENTER();
  PX_REQUIRE(out && data, cudaErrorInvalidValue);
  int token = px_pool_token(pool);
  PX_REQUIRE(token >= 0 && px_ipc_number(token) == pool_of(data), cudaErrorInvalidValue);
  memcpy(&handle, data->reserved, sizeof handle);
  return px_report(px_ipc_take(&handle, px_memory_imported, out));
}
