/* pool.c: memory pools. There is one kind of memory, which is given back when it is freed: a pool counts what it has given, and says how
 * much that may be.
 */
#include "px_pool.h"
#include <pthread.h>
#include <search.h>
#include <stdlib.h>
#include <unistd.h>
#include "checked.h"
#include "core.h"
#include "px_ipc.h"
#include "px_place.h"

enum { REUSE_FIRST = 1, REUSE_LAST = 3, THRESHOLD, RESERVED, RESERVED_HIGH, USED, USED_HIGH, ATTRIBUTES };
enum { PINNED = cudaMemAllocationTypePinned, POSIX_FILE = cudaMemHandleTypePosixFileDescriptor, READ_WRITE = 3 };

struct px_pool {
  cudaMemPoolProps properties;
  uint64_t value[ATTRIBUTES]; /* of its attributes, but for what is reserved: that is what is used */
  unsigned allocations;
  int token; /* a file that stands for it in other processes; -1: none has been asked for */
  bool closed, imported;
  struct px_pool *next;
};

typedef struct given {
  uint64_t address, size;
  cudaMemPool_t pool;
} given;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const uint64_t defaults[ATTRIBUTES] = {[REUSE_FIRST] = 1, [REUSE_FIRST + 1] = 1, [REUSE_LAST] = 1};
static cudaMemPool_t all, standard, current;
static void *by_address; /* a tree of `given` */

/* ---- with the lock held ---- */

static int compare(const void *a, const void *b) {
  const given *x = a, *y = b;
  return (x->address > y->address) - (x->address < y->address);
}

static void forget(cudaMemPool_t pool) {
  cudaMemPool_t *at = &all;
  while (*at != pool) at = &(*at)->next;
  *at = pool->next;
  if (!pool->closed) px_live_remove(pool, PX_POOL);
  if (pool->token >= 0) close(pool->token);
  free(pool);
}

static cudaMemPool_t make(const cudaMemPoolProps *properties) {
  cudaMemPool_t made = calloc(1, sizeof *made);
  if (!made) return NULL;
  made->properties = *properties;
  made->token = -1;
  made->next = all;
  for (int i = 0; i < ATTRIBUTES; i++) made->value[i] = defaults[i];
  if (!px_live_add(made, PX_POOL)) {
    free(made);
    return NULL;
  }
  return all = made;
}

/* The device's own, which is there from the first question on; NULL: there is no memory. */
static cudaMemPool_t own(void) {
  static const cudaMemPoolProps properties = {.allocType = PINNED, .location = {cudaMemLocationTypeDevice, 0}};
  if (!standard) current = standard = make(&properties);
  return standard;
}

static bool is_pool(cudaMemPool_t pool) { return px_is_live(pool, PX_POOL); }

/* Nothing is left of the arena. */
static void forget_all(void) {
  pthread_mutex_lock(&lock);
  while (by_address) {
    given *one = *(given **)by_address;
    tdelete(one, &by_address, compare);
    free(one);
  }
  while (all) forget(all);
  standard = current = NULL;
  pthread_mutex_unlock(&lock);
}

static void enter(void) {
  px_at_reset(forget_all);
  pthread_mutex_lock(&lock);
}

static cudaError_t leave(cudaError_t error) {
  pthread_mutex_unlock(&lock);
  return px_report(error);
}

/* ---- what they give ---- */

static void count(cudaMemPool_t pool, uint64_t size) {
  pool->allocations++;
  pool->value[USED] += size;
  if (pool->value[USED] > pool->value[USED_HIGH]) pool->value[USED_HIGH] = pool->value[USED];
  if (pool->value[USED] > pool->value[RESERVED_HIGH]) pool->value[RESERVED_HIGH] = pool->value[USED];
}

static cudaError_t give(cudaMemPool_t pool, size_t size, void **out) {
  if (!pool) return cudaErrorMemoryAllocation;
  uint64_t most = pool->properties.maxSize ? pool->properties.maxSize : UINT64_MAX;
  given *made = pe_within(pool->value[USED], size, most) ? malloc(sizeof *made) : NULL;
  uint64_t address = made ? px_allocate(size, px_memory_device) : 0;
  if (made) *made = (given){address, size, pool};
  if (address && tsearch(made, &by_address, compare)) {
    count(pool, size);
    *out = (void *)(uintptr_t)address;
    return cudaSuccess;
  }
  if (address) pe_arena_free(px_device_get()->parts.arena, address);
  free(made);
  return cudaErrorMemoryAllocation;
}

cudaError_t px_pool_allocate(cudaMemPool_t pool, size_t size, void **out) {
  enter();
  cudaMemPool_t from = own() && !pool ? current : pool;
  bool fits = !pool || (is_pool(pool) && !pool->imported);
  cudaError_t error = fits ? give(from, size, out) : cudaErrorInvalidValue;
  pthread_mutex_unlock(&lock);
  return error;
}

/* What an address was given as, or NULL. */
static given *find(uint64_t address) {
  const given wanted = {.address = address};
  given **found = tfind(&wanted, &by_address, compare);
  return found ? *found : NULL;
}

void px_pool_freed(uint64_t address) {
  pthread_mutex_lock(&lock);
  given *one = find(address);
  if (one) {
    cudaMemPool_t pool = one->pool;
    pool->value[USED] -= one->size;
    tdelete(one, &by_address, compare);
    free(one);
    if (--pool->allocations == 0 && pool->closed) forget(pool);
  }
  pthread_mutex_unlock(&lock);
}

cudaMemPool_t px_pool_of(uint64_t address) {
  pthread_mutex_lock(&lock);
  const given *one = find(address);
  cudaMemPool_t pool = one ? one->pool : NULL;
  pthread_mutex_unlock(&lock);
  return pool;
}

/* ---- other processes ---- */

int px_pool_token(cudaMemPool_t pool) {
  pthread_mutex_lock(&lock);
  bool shared = is_pool(pool) && pool->properties.handleTypes & POSIX_FILE;
  if (shared && pool->token < 0) pool->token = px_ipc_create(1);
  int token = shared ? pool->token : -1;
  pthread_mutex_unlock(&lock);
  return token;
}

cudaMemPool_t px_pool_import(int token) {
  static const cudaMemPoolProps properties = {
    .allocType = PINNED, .handleTypes = POSIX_FILE, .location = {cudaMemLocationTypeDevice, 0}};
  enter();
  cudaMemPool_t made = own() ? make(&properties) : NULL;
  if (made) {
    made->token = token;
    made->imported = true;
  }
  pthread_mutex_unlock(&lock);
  return made;
}

/* ---- pools of the program ---- */

static cudaError_t check(const cudaMemPoolProps *wanted) {
  if (wanted->allocType != PINNED || wanted->handleTypes < 0) return cudaErrorInvalidValue;
  cudaError_t error = px_place_error(&wanted->location);
  if (error) return error;
  return wanted->handleTypes & ~POSIX_FILE ? cudaErrorNotSupported : cudaSuccess;
}

PX_API cudaError_t cudaMemPoolCreate(cudaMemPool_t *out, const cudaMemPoolProps *properties) {
  PX_ENTER();
  PX_REQUIRE(out && properties, cudaErrorInvalidValue);
  cudaError_t error = check(properties);
  PX_REQUIRE(!error, error);
  enter();
  cudaMemPool_t made = own() ? make(properties) : NULL;
  if (made) *out = made;
  return leave(made ? cudaSuccess : cudaErrorMemoryAllocation);
}

/* What it has given lives on. */
PX_API cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  PX_ENTER();
  enter();
  bool fits = is_pool(pool) && pool != standard;
  if (fits) {
    if (current == pool) current = standard;
    pool->closed = px_live_remove(pool, PX_POOL);
    if (!pool->allocations) forget(pool);
  }
  return leave(fits ? cudaSuccess : cudaErrorInvalidValue);
}

/* ---- those of the device ---- */

static cudaError_t get_pool(cudaMemPool_t *out, const cudaMemPool_t *which) {
  enter();
  if (own()) *out = *which;
  return leave(standard ? cudaSuccess : cudaErrorMemoryAllocation);
}

PX_API cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *out, int number) {
  PX_ENTER();
  PX_REQUIRE(out, cudaErrorInvalidValue);
  PX_REQUIRE(number == 0, cudaErrorInvalidDevice);
  return get_pool(out, &standard);
}

PX_API cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *out, int number) {
  PX_ENTER();
  PX_REQUIRE(out, cudaErrorInvalidValue);
  PX_REQUIRE(number == 0, cudaErrorInvalidDevice);
  return get_pool(out, &current);
}

PX_API cudaError_t cudaDeviceSetMemPool(int number, cudaMemPool_t pool) {
  PX_ENTER();
  PX_REQUIRE(number == 0, cudaErrorInvalidDevice);
  enter();
  bool fits = is_pool(pool) && !pool->imported;
  if (fits) current = pool;
  return leave(fits ? cudaSuccess : cudaErrorInvalidValue);
}

/* The device's number, if a place is the device, and memory of a type can come from its pools; else -1. */
static int device_of(const cudaMemLocation *location, int type) {
  return location && location->type == cudaMemLocationTypeDevice && type == PINNED ? location->id : -1;
}

PX_API cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t *out, cudaMemLocation *location, int type) {
  PX_REQUIRE(device_of(location, type) >= 0, cudaErrorNotSupported);
  return cudaDeviceGetDefaultMemPool(out, location->id);
}

PX_API cudaError_t cudaMemGetMemPool(cudaMemPool_t *out, cudaMemLocation *location, int type) {
  PX_REQUIRE(device_of(location, type) >= 0, cudaErrorNotSupported);
  return cudaDeviceGetMemPool(out, location->id);
}

PX_API cudaError_t cudaMemSetMemPool(cudaMemLocation *location, int type, cudaMemPool_t pool) {
  PX_REQUIRE(device_of(location, type) >= 0, cudaErrorNotSupported);
  return cudaDeviceSetMemPool(location->id, pool);
}

/* ---- attributes ---- */

/* Memory is given back when it is freed: there is nothing to trim. */
PX_API cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep) {
  (void)keep;
  PX_ENTER();
  return px_report(is_pool(pool) ? cudaSuccess : cudaErrorInvalidValue);
}

/* What streams may reuse of each other's, and how much is kept, are wishes; the greatest sums can be reset to what they are now. */
static bool set(cudaMemPool_t pool, int attribute, const void *value) {
  if (attribute >= REUSE_FIRST && attribute <= REUSE_LAST)
    pool->value[attribute] = (unsigned)*(const int *)value;
  else if (attribute == THRESHOLD)
    pool->value[THRESHOLD] = *(const uint64_t *)value;
  else if ((attribute == RESERVED_HIGH || attribute == USED_HIGH) && !*(const uint64_t *)value)
    pool->value[attribute] = pool->value[USED];
  else
    return false;
  return true;
}

PX_API cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, int attribute, void *value) {
  PX_ENTER();
  enter();
  bool fits = is_pool(pool) && value && set(pool, attribute, value);
  return leave(fits ? cudaSuccess : cudaErrorInvalidValue);
}

PX_API cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, int attribute, void *value) {
  PX_ENTER();
  enter();
  bool fits = is_pool(pool) && value && attribute >= REUSE_FIRST && attribute < ATTRIBUTES;
  if (fits && attribute <= REUSE_LAST)
    *(int *)value = (int)pool->value[attribute];
  else if (fits)
    *(uint64_t *)value = pool->value[attribute == RESERVED ? USED : attribute];
  return leave(fits ? cudaSuccess : cudaErrorInvalidValue);
}

/* The device may do everything with its memory, which cannot be changed. */
PX_API cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc *wanted, size_t number) {
  PX_ENTER();
  PX_REQUIRE(is_pool(pool) && (wanted || !number), cudaErrorInvalidValue);
  for (size_t i = 0; i < number; i++) {
    bool on_device = wanted[i].location.type == cudaMemLocationTypeDevice;
    PX_REQUIRE(on_device && wanted[i].flags == READ_WRITE, cudaErrorInvalidValue);
    cudaError_t error = px_place_error(&wanted[i].location);
    PX_REQUIRE(!error, error);
  }
  return px_report(cudaSuccess);
}

PX_API cudaError_t cudaMemPoolGetAccess(int *out, cudaMemPool_t pool, const cudaMemLocation *location) {
  PX_ENTER();
  PX_REQUIRE(out && is_pool(pool) && location, cudaErrorInvalidValue);
  cudaError_t error = px_place_error(location);
  PX_REQUIRE(!error, error);
  *out = READ_WRITE;
  return px_report(cudaSuccess);
}
