/* pool.c: memory pools. There is one kind of memory, so that a pool is only a name for a part of it. */
#include <stdlib.h>
#include "core.h"

struct px_pool {
  _Atomic uint64_t threshold;
};

static struct px_pool default_pool; /* the only one */

static bool is_pool(cudaMemPool_t pool) { return pool == &default_pool; }

PX_API cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *out, int number) {
  PX_ENTER();
  PX_REQUIRE(out, cudaErrorInvalidValue);
  PX_REQUIRE(number == 0, cudaErrorInvalidDevice);
  *out = &default_pool;
  return px_report(cudaSuccess);
}

PX_API cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *out, int number) { return cudaDeviceGetDefaultMemPool(out, number); }

cudaError_t cudaMallocAsync(void **pointer, size_t size, cudaStream_t stream);
PX_API cudaError_t cudaMallocFromPoolAsync(void **pointer, size_t size, cudaMemPool_t pool, cudaStream_t stream) {
  PX_REQUIRE(is_pool(pool), cudaErrorInvalidValue);
  return cudaMallocAsync(pointer, size, stream);
}

/* Memory is given back when it is freed: there is nothing to trim. */
PX_API cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep) {
  (void)keep;
  PX_ENTER();
  return px_report(is_pool(pool) ? cudaSuccess : cudaErrorInvalidValue);
}

enum { REUSE_FIRST = 1, REUSE_LAST = 3, THRESHOLD = 4 };

/* What streams may reuse of each other's: order is kept in any case. How much memory is kept: a wish. */
PX_API cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, int attribute, void *value) {
  PX_ENTER();
  PX_REQUIRE(is_pool(pool) && value && attribute >= REUSE_FIRST && attribute <= THRESHOLD, cudaErrorInvalidValue);
  if (attribute == THRESHOLD) pool->threshold = *(uint64_t *)value;
  return px_report(cudaSuccess);
}

PX_API cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, int attribute, void *value) {
  PX_ENTER();
  PX_REQUIRE(is_pool(pool) && value, cudaErrorInvalidValue);
  if (attribute >= REUSE_FIRST && attribute <= REUSE_LAST)
    *(int *)value = 1;
  else if (attribute == THRESHOLD)
    *(uint64_t *)value = pool->threshold;
  else
    return px_report(cudaErrorNotSupported);
  return px_report(cudaSuccess);
}
