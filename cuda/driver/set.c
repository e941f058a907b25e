/* set.c: sets of memory to a value of 1, 2 or 4 bytes. */
#include <string.h>
#include "driver.h"
#include "px_runtime.h"

/* Rows whose values are larger than a byte: the first value is repeated. */
static CUresult fill(CUdeviceptr to, size_t pitch, uint32_t value, size_t bytes, size_t width, size_t height) {
  size_t row, extent;
  CU_ENTER();
  if (!width || !height) return CUDA_SUCCESS;
  bool fits = !__builtin_mul_overflow(width, bytes, &row) && !__builtin_mul_overflow(pitch, height - 1, &extent) &&
              !__builtin_add_overflow(extent, row, &extent);
  CU_REQUIRE(fits && (height == 1 || pitch >= row) && to % bytes == 0 && pitch % bytes == 0, CUDA_ERROR_INVALID_VALUE);
  CU_REQUIRE(px_is_device((void *)(uintptr_t)to, extent), CUDA_ERROR_INVALID_VALUE);
  for (size_t y = 0; y < height; y++) {
    uint8_t *at = (uint8_t *)(uintptr_t)to + y * pitch;
    if (bytes == 1)
      memset(at, (int)value, row);
    else
      for (size_t x = 0; x < row; x += bytes) memcpy(at + x, &value, bytes);
  }
  return CUDA_SUCCESS;
}

#define SETS(bits, type)                                                                                          \
  PX_API CUresult cuMemsetD##bits##_v2(CUdeviceptr to, type value, size_t count) {                                \
    return fill(to, 0, value, sizeof(type), count, 1);                                                            \
  }                                                                                                               \
  PX_API CUresult cuMemsetD##bits##Async(CUdeviceptr to, type value, size_t count, CUstream stream) {             \
    CU_REQUIRE(px_is_stream(stream), CUDA_ERROR_INVALID_HANDLE);                                                  \
    return fill(to, 0, value, sizeof(type), count, 1);                                                            \
  }                                                                                                               \
  PX_API CUresult cuMemsetD2D##bits##_v2(CUdeviceptr to, size_t pitch, type value, size_t width, size_t height) { \
    return fill(to, pitch, value, sizeof(type), width, height);                                                   \
  }                                                                                                               \
  PX_API CUresult cuMemsetD2D##bits##Async(CUdeviceptr to, size_t pitch, type value, size_t width, size_t height, \
                                           CUstream stream) {                                                     \
    CU_REQUIRE(px_is_stream(stream), CUDA_ERROR_INVALID_HANDLE);                                                  \
    return fill(to, pitch, value, sizeof(type), width, height);                                                   \
  }

SETS(8, uint8_t)
SETS(16, uint16_t)
SETS(32, uint32_t)
