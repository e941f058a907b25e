/* result.c: errors of the driver API: their numbers, names and texts. */
#include "driver.h"

/* Most errors have one number in both APIs. */
CUresult cu_result(cudaError_t error) {
  switch (error) {
    case cudaErrorInvalidConfiguration:
    case cudaErrorInvalidPitchValue:
    case cudaErrorInvalidTexture:
    case cudaErrorInvalidChannelDescriptor:
    case cudaErrorInvalidMemcpyDirection:
    case cudaErrorMissingConfiguration: return CUDA_ERROR_INVALID_VALUE;
    case cudaErrorInvalidSymbol: return CUDA_ERROR_NOT_FOUND;
    case cudaErrorInvalidDeviceFunction: return CUDA_ERROR_INVALID_HANDLE;
    default: return error;
  }
}

/* What a program's stub answers. */
int px_driver_not_supported(void);
int px_driver_not_supported(void) { return CUDA_ERROR_NOT_SUPPORTED; }

static const struct {
  CUresult error;
  const char *name, *text;
} names[] = {
#include "result_names.h"
};

enum { ERRORS = sizeof names / sizeof *names };

PX_API CUresult cuGetErrorName(CUresult error, const char **out) {
  CU_REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
  *out = NULL;
  for (size_t i = 0; !*out && i < ERRORS; i++)
    if (names[i].error == error) *out = names[i].name;
  return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

PX_API CUresult cuGetErrorString(CUresult error, const char **out) {
  CU_REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
  *out = NULL;
  for (size_t i = 0; !*out && i < ERRORS; i++)
    if (names[i].error == error) *out = names[i].text;
  return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
