/* ipc_memory.c: device memory that other processes use, too.
 *
 * An allocation is the process's own until a handle of it is asked for. Then its pages become those of a file, with the same contents at
 * the same address; other processes have the same pages in an allocation of theirs.
 */
#include <pthread.h>
#include <search.h>
#include <stdlib.h>
#include <unistd.h>
#include "core.h"
#include "px_ipc.h"
#include "px_runtime.h"
#include "px_stream.h"

static const char opened_kind[] = "cudaIpcOpenMemHandle";
const char px_memory_imported[] = "cudaMemPoolImportPointer";

/* An allocation that has a file: one of this process that others may open, or one that was opened. */
typedef struct shared {
  uint64_t address;
  int file;          /* of what others may open; else -1 */
  uint64_t identity; /* of the file */
  unsigned opened;   /* how often it was, without being closed */
} shared;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *by_address, *by_identity; /* trees of `shared`; the second one has what was opened */

static int compare_addresses(const void *a, const void *b) {
  const shared *x = a, *y = b;
  return (x->address > y->address) - (x->address < y->address);
}

static int compare_identities(const void *a, const void *b) {
  const shared *x = a, *y = b;
  return (x->identity > y->identity) - (x->identity < y->identity);
}

static shared *find(void *tree, int (*compare)(const void *, const void *), shared wanted) {
  shared **found = tfind(&wanted, &tree, compare);
  return found ? *found : NULL;
}

/* With the lock held. */
static void forget(shared *one) {
  tdelete(one, &by_address, compare_addresses);
  if (one->opened) tdelete(one, &by_identity, compare_identities);
  if (one->file >= 0) close(one->file);
  free(one);
}

static shared *remember(shared what) {
  shared *made = malloc(sizeof *made);
  if (!made) return NULL;
  *made = what;
  if (!tsearch(made, &by_address, compare_addresses)) {
    free(made);
    return NULL;
  }
  if (!made->opened || tsearch(made, &by_identity, compare_identities)) return made;
  tdelete(made, &by_address, compare_addresses);
  free(made);
  return NULL;
}

/* Nothing is left of the arena. */
static void forget_all(void) {
  pthread_mutex_lock(&lock);
  while (by_address) forget(*(shared **)by_address);
  pthread_mutex_unlock(&lock);
}

void px_ipc_freed(uint64_t address) {
  pthread_mutex_lock(&lock);
  shared *one = find(by_address, compare_addresses, (shared){.address = address});
  if (one) forget(one);
  pthread_mutex_unlock(&lock);
}

/* ---- giving ---- */

/* The same as a file, from now on. With the lock held. */
static shared *share(const pe_allocation *what) {
  pe_arena *arena = px_device_get()->parts.arena;
  px_at_reset(forget_all);
  int file = px_ipc_create(pe_arena_pages(arena, what->address, what->size));
  shared *made = file < 0 ? NULL : remember((shared){.address = what->address, .file = file});
  if (!made && file >= 0) close(file);
  if (!made || !pe_arena_back(arena, what->address, file, true)) return made;
  forget(made);
  return NULL;
}

cudaError_t px_ipc_give(const void *pointer, cudaIpcMemHandle_t *out) {
  pe_allocation found;
  if (!px_find(pointer, &found) || !px_is_of_kind(&found, px_memory_device)) return cudaErrorInvalidValue;
  cudaError_t error = px_wait_all();
  if (error) return error;
  pthread_mutex_lock(&lock);
  shared *one = find(by_address, compare_addresses, (shared){.address = found.address});
  if (!one) one = share(&found);
  if (one) *out = px_ipc_handle(PX_IPC_MEMORY, one->file, found.size);
  pthread_mutex_unlock(&lock);
  return one ? cudaSuccess : cudaErrorMemoryAllocation;
}

PX_API cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *out, void *pointer) {
  PX_ENTER();
  PX_REQUIRE(out, cudaErrorInvalidValue);
  return px_report(px_ipc_give(pointer, out));
}

/* ---- taking ---- */

/* An allocation over the file of a handle. With the lock held. */
static cudaError_t take(const cudaIpcMemHandle_t *handle, const char *kind, shared **out) {
  pe_arena *arena = px_device_get()->parts.arena;
  uint64_t size;
  int file = px_ipc_open(PX_IPC_MEMORY, handle, &size);
  if (file < 0) return cudaErrorInvalidResourceHandle;
  px_at_reset(forget_all);
  uint64_t address = px_allocate(size, kind);
  bool fits = address && !pe_arena_back(arena, address, file, false);
  close(file);
  if (fits) *out = remember((shared){address, -1, px_ipc_identity(handle), 1});
  if (fits && *out) return cudaSuccess;
  if (address) pe_arena_free(arena, address);
  return cudaErrorMemoryAllocation;
}

cudaError_t px_ipc_take(const cudaIpcMemHandle_t *handle, const char *kind, void **out) {
  cudaError_t error = cudaSuccess;
  pthread_mutex_lock(&lock);
  shared *one = find(by_identity, compare_identities, (shared){.identity = px_ipc_identity(handle)});
  if (one)
    one->opened++;
  else
    error = take(handle, kind, &one);
  if (!error) *out = (void *)(uintptr_t)one->address;
  pthread_mutex_unlock(&lock);
  return error;
}

PX_API cudaError_t cudaIpcOpenMemHandle(void **out, cudaIpcMemHandle_t handle, unsigned flags) {
  enum { LAZY_PEER_ACCESS = 1 };
  PX_ENTER();
  PX_REQUIRE(out && !(flags & ~(unsigned)LAZY_PEER_ACCESS), cudaErrorInvalidValue);
  PX_REQUIRE(!px_ipc_is_own(&handle), cudaErrorDeviceUninitialized);
  return px_report(px_ipc_take(&handle, opened_kind, out));
}

bool px_ipc_close(const void *pointer) {
  pthread_mutex_lock(&lock);
  shared *one = find(by_address, compare_addresses, (shared){.address = (uint64_t)(uintptr_t)pointer});
  bool fits = one && one->opened;
  if (fits && one->opened == 1) {
    pe_arena_free(px_device_get()->parts.arena, one->address);
    forget(one);
  } else if (fits) {
    one->opened--;
  }
  pthread_mutex_unlock(&lock);
  return fits;
}

PX_API cudaError_t cudaIpcCloseMemHandle(void *pointer) {
  PX_ENTER();
  PX_SETTLE();
  return px_report(px_ipc_close(pointer) ? cudaSuccess : cudaErrorInvalidValue);
}
