/* registered.c: memory of the host that the program has registered. While there is any, kernels may touch all of the process's memory
 * (pe_config.host_memory), as a test for a few ranges would cost every access.
 */
#include <pthread.h>
#include <stdlib.h>
#include "checked.h"
#include "core.h"
#include "px_check.h"
#include "px_stream.h"

typedef struct range {
  struct range *next;
  uint64_t start, size;
} range;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static range *ranges;

static range **find(uint64_t address, uint64_t size) {
  range **at = &ranges;
  while (*at && !pe_within(address - (*at)->start, size, (*at)->size)) at = &(*at)->next;
  return at;
}

static bool overlaps(uint64_t start, uint64_t size) {
  for (const range *at = ranges; at; at = at->next)
    if (start < at->start + at->size && at->start < start + size) return true;
  return false;
}

bool px_is_registered(const void *address, uint64_t size) {
  pthread_mutex_lock(&lock);
  bool found = *find((uint64_t)(uintptr_t)address, size) != NULL;
  pthread_mutex_unlock(&lock);
  return found;
}

bool px_any_registered(void) { return __atomic_load_n(&ranges, __ATOMIC_ACQUIRE) != NULL; }

PX_API cudaError_t cudaHostRegister(void *pointer, size_t size, unsigned flags) {
  enum { PORTABLE = 1, MAPPED = 2, READ_ONLY = 8 };
  uint64_t start = (uint64_t)(uintptr_t)pointer, end;
  pe_allocation ours;
  PX_ENTER();
  PX_REQUIRE(pointer && size && !(flags & ~(unsigned)(PORTABLE | MAPPED | READ_ONLY)), cudaErrorInvalidValue);
  PX_REQUIRE(!__builtin_add_overflow(start, size, &end) && !px_find(pointer, &ours), cudaErrorInvalidValue);
  range *made = malloc(sizeof *made);
  PX_REQUIRE(made, cudaErrorMemoryAllocation);
  pthread_mutex_lock(&lock);
  bool taken = overlaps(start, size);
  if (!taken) {
    *made = (range){ranges, start, size};
    __atomic_store_n(&ranges, made, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&lock);
  if (taken)
    free(made);
  else
    px_check_registered(start, size);
  return px_report(taken ? cudaErrorHostMemoryAlreadyRegistered : cudaSuccess);
}

PX_API cudaError_t cudaHostUnregister(void *pointer) {
  enum { NOT_REGISTERED = 713 };
  PX_ENTER();
  PX_SETTLE();
  pthread_mutex_lock(&lock);
  range **at = find((uint64_t)(uintptr_t)pointer, 1), *found = *at;
  bool starts = found && found->start == (uint64_t)(uintptr_t)pointer;
  if (starts) *at = found->next;
  pthread_mutex_unlock(&lock);
  if (starts) px_check_unregistered(found->start);
  if (starts) free(found);
  return px_report(starts ? cudaSuccess : NOT_REGISTERED);
}
