/* symbol.c: cuGetProcAddress: a function by its plain name, in the version that a version of CUDA has. */
#include <dlfcn.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include "driver.h"
#include "px_runtime.h"
#include "proc.h"

enum { VERSION_NOT_SUFFICIENT = 2, SYMBOL_NOT_FOUND = 1, FOUND = 0, KNOWN_FLAGS = 3 };

/* Whether an entry is `name` itself or one of its versions. */
static bool is_version_of(const char *entry, const char *name, size_t length) {
  if (strncmp(entry, name, length) != 0) return false;
  const char *rest = entry + length;
  return !*rest || (rest[0] == '_' && rest[1] == 'v' && rest[2] >= '1' && rest[2] <= '9' && !rest[3]);
}

/* The newest version that is not newer than the one that is asked for. */
PX_API CUresult cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *status) {
  const px_proc *best = NULL;
  bool known = false;
  CU_REQUIRE(name && out && !(flags & ~(uint64_t)KNOWN_FLAGS), CUDA_ERROR_INVALID_VALUE);
  for (const px_proc *at = px_procs; at->name; at++) {
    if (!at->version || !is_version_of(at->name, name, strlen(name))) continue;
    known = true;
    if (at->version <= version && (!best || at->version > best->version)) best = at;
  }
  memset(out, 0, sizeof *out);
  if (best) memcpy(out, &best->function, sizeof best->function);
  if (status) *status = best ? FOUND : known ? VERSION_NOT_SUFFICIENT : SYMBOL_NOT_FOUND;
  return best ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

PX_API CUresult cuGetProcAddress(const char *name, void **out, int version, uint64_t flags) {
  return cuGetProcAddress_v2(name, out, version, flags, NULL);
}

/* The same in the runtime API, where a function that is not there is no error. */
PX_API cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **out, unsigned version, unsigned long long flags,
                                                    int *status) {
  PX_REQUIRE(version <= INT_MAX, cudaErrorInvalidValue);
  CUresult error = cuGetProcAddress_v2(name, out, (int)version, flags, status);
  return px_report(error == CUDA_ERROR_NOT_FOUND ? cudaSuccess : error);
}

/* The file whose code is at an address. */
static const char *file_of(const void *code) {
  Dl_info info;
  const char *path = dladdr(code, &info) && info.dli_fname ? info.dli_fname : "the program", *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* Tables of functions that are not documented, by which CUDA's own runtime uses CUDA's own driver. NVRTC asks, too, and does without. */
PX_API CUresult cuGetExportTable(const void **table, const void *id) {
  static atomic_flag said = ATOMIC_FLAG_INIT;
  CU_REQUIRE(table && id, CUDA_ERROR_INVALID_VALUE);
  *table = NULL;
  const char *file = file_of(__builtin_return_address(0));
  if (strncmp(file, "libnvrtc", 8) != 0 && !atomic_flag_test_and_set(&said))
    fprintf(stderr,
            "ptxemu: %s has CUDA's runtime linked in, as nvcc does by default: run the program with 'ptxemu cuda -- "
            "PROGRAM' and "
            "do not strip that file, or link it with -cudart shared\n",
            file);
  return CUDA_ERROR_NOT_SUPPORTED;
}
