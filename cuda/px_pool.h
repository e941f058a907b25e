/* px_pool.h: memory pools: who has asked for memory, and how much of it there may be. */
#ifndef PTXEMU_CUDA_POOL_H
#define PTXEMU_CUDA_POOL_H
#include "abi.h"

/* Memory of a pool, NULL: the device's current one; it counts until px_pool_freed. */
cudaError_t px_pool_allocate(cudaMemPool_t pool, size_t size, void **out);

/* An allocation is gone. */
void px_pool_freed(uint64_t address);

/* The pool of an allocation, or NULL. */
cudaMemPool_t px_pool_of(uint64_t address);

/* The file that stands for a pool which other processes may have, or -1; and a pool of another process, which owns its file. NULL: there
 * is no memory. */
int px_pool_token(cudaMemPool_t pool);
cudaMemPool_t px_pool_import(int token);

#endif
