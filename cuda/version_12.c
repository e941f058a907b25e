/* version_12.c: what CUDA 12 has otherwise than CUDA 11 and 13. */
#include "core.h"
#include "px_runtime.h"

enum { VERSION = 12090 };

PX_API cudaError_t cudaRuntimeGetVersion(int *version) { return px_tell_version(version, VERSION); }

PX_API cudaError_t cudaGetDriverEntryPoint(const char *name, void **out, unsigned long long flags, int *status) {
  return cudaGetDriverEntryPointByVersion(name, out, VERSION, flags, status);
}
