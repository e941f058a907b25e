/* setup.c: launches as they were before CUDA 4, which programs still use: block, shared memory and arguments are set up one by one, and stay
 * with the kernel until they are changed.
 */
#include <stdlib.h>
#include <string.h>
#include "checked.h"
#include "driver.h"
#include "px_launch.h"

enum { MOST_BYTES = 4096 };

typedef struct px_setup {
  unsigned block[3], shared;
  size_t size; /* of the arguments */
  uint8_t arguments[MOST_BYTES];
} px_setup;

/* The set-up of a kernel, made at the first call; NULL: there is no memory. */
static px_setup *setup_of(px_kernel *kernel) {
  px_setup *known = __atomic_load_n(&kernel->setup, __ATOMIC_ACQUIRE), *made = known ? NULL : calloc(1, sizeof *made);
  if (!made) return known;
  if (__atomic_compare_exchange_n(&kernel->setup, &known, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return made;
  free(made); /* another thread was first */
  return known;
}

#define ENTER_SETUP(kernel, setup)                             \
  CU_ENTER();                                                  \
  CU_REQUIRE(px_is_kernel(kernel), CUDA_ERROR_INVALID_HANDLE); \
  px_setup *setup = setup_of(kernel);                          \
  CU_REQUIRE(setup, CUDA_ERROR_OUT_OF_MEMORY)

PX_API CUresult cuFuncSetBlockShape(CUfunction kernel, int x, int y, int z) {
  ENTER_SETUP(kernel, setup);
  CU_REQUIRE(x > 0 && y > 0 && z > 0, CUDA_ERROR_INVALID_VALUE);
  const unsigned block[] = {(unsigned)x, (unsigned)y, (unsigned)z};
  memcpy(setup->block, block, sizeof block);
  return CUDA_SUCCESS;
}

PX_API CUresult cuFuncSetSharedSize(CUfunction kernel, unsigned bytes) {
  ENTER_SETUP(kernel, setup);
  setup->shared = bytes;
  return CUDA_SUCCESS;
}

PX_API CUresult cuParamSetSize(CUfunction kernel, unsigned size) {
  ENTER_SETUP(kernel, setup);
  CU_REQUIRE(size <= MOST_BYTES, CUDA_ERROR_INVALID_VALUE);
  setup->size = size;
  return CUDA_SUCCESS;
}

PX_API CUresult cuParamSetv(CUfunction kernel, int offset, void *value, unsigned size) {
  ENTER_SETUP(kernel, setup);
  CU_REQUIRE(value && offset >= 0 && pe_within((uint64_t)offset, size, MOST_BYTES), CUDA_ERROR_INVALID_VALUE);
  memcpy(setup->arguments + offset, value, size);
  return CUDA_SUCCESS;
}

PX_API CUresult cuParamSeti(CUfunction kernel, int offset, unsigned value) {
  return cuParamSetv(kernel, offset, &value, sizeof value);
}

PX_API CUresult cuParamSetf(CUfunction kernel, int offset, float value) {
  return cuParamSetv(kernel, offset, &value, sizeof value);
}

PX_API CUresult cuLaunchGridAsync(CUfunction kernel, int width, int height, CUstream stream) {
  ENTER_SETUP(kernel, setup);
  CU_REQUIRE(width > 0 && height > 0, CUDA_ERROR_INVALID_VALUE);
  void *extra[] = {(void *)PX_EXTRA_BUFFER, setup->arguments, (void *)PX_EXTRA_SIZE, &setup->size, (void *)PX_EXTRA_END};
  px_geometry g = {.grid = {(unsigned)width, (unsigned)height, 1},
                   .block = {setup->block[0], setup->block[1], setup->block[2]},
                   .shared = setup->shared,
                   .stream = stream};
  return cu_launch(kernel, &g, NULL, extra);
}

PX_API CUresult cuLaunchGrid(CUfunction kernel, int width, int height) {
  return cuLaunchGridAsync(kernel, width, height, NULL);
}

PX_API CUresult cuLaunch(CUfunction kernel) { return cuLaunchGrid(kernel, 1, 1); }
