/* set.c: sets of memory to a value of 1, 2 or 4 bytes. */
#include "driver.h"
#include "px_stream.h"

static CUresult fill(CUstream stream, CUdeviceptr to, size_t pitch, uint32_t value, size_t bytes, size_t width,
                     size_t height) {
  size_t row;
  CU_ENTER();
  CU_REQUIRE(px_is_stream(stream), CUDA_ERROR_INVALID_HANDLE);
  bool fits = !__builtin_mul_overflow(width, bytes, &row) && (height <= 1 || pitch >= row);
  CU_REQUIRE(fits && to % bytes == 0 && pitch % bytes == 0, CUDA_ERROR_INVALID_VALUE);
  px_side side = {.memory = (uint8_t *)(uintptr_t)to, .pitch = pitch};
  px_box box = {.to = side, .width = row, .height = height, .depth = 1, .value = value, .repeats = bytes};
  return cu_result(px_set_in(stream, &box));
}

#define SETS(bits, type)                                                                                          \
  PX_API CUresult cuMemsetD##bits##_v2(CUdeviceptr to, type value, size_t count) {                                \
    return fill(NULL, to, 0, value, sizeof(type), count, 1);                                                      \
  }                                                                                                               \
  PX_API CUresult cuMemsetD##bits##Async(CUdeviceptr to, type value, size_t count, CUstream stream) {             \
    return fill(stream, to, 0, value, sizeof(type), count, 1);                                                    \
  }                                                                                                               \
  PX_API CUresult cuMemsetD2D##bits##_v2(CUdeviceptr to, size_t pitch, type value, size_t width, size_t height) { \
    return fill(NULL, to, pitch, value, sizeof(type), width, height);                                             \
  }                                                                                                               \
  PX_API CUresult cuMemsetD2D##bits##Async(CUdeviceptr to, size_t pitch, type value, size_t width, size_t height, \
                                           CUstream stream) {                                                     \
    return fill(stream, to, pitch, value, sizeof(type), width, height);                                           \
  }

SETS(8, uint8_t)
SETS(16, uint16_t)
SETS(32, uint32_t)
