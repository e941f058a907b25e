/* module.c: modules and libraries, which are the same here: loaded at once, with a copy of their images. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "driver.h"
#include "linked.h"
#include "px_launch.h"

enum { ELF_HEADER = 64, LARGEST_FILE = 1 << 30 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUmodule modules;

/* ---- images ---- */

/* Whether an image begins so; it may be a text that is shorter. */
static bool begins(const char *image, const char *with, size_t size) {
  size_t i = 0;
  while (i < size && image[i] == with[i]) i++;
  return i == size;
}

/* The image in a wrapper, and its size. */
static size_t size_of(const void **image) {
  static const char wrapper[] = "\xb1\x43\x62\x46", fat[] = "\x50\xed\x55\xba",
                    elf[] =
                        "\x7f"
                        "ELF";
  if (begins(*image, wrapper, 4)) *image = ((const px_fat_wrapper *)*image)->image;
  if (begins(*image, fat, 4)) return px_fat_size(*image);
  if (begins(*image, elf, 4)) return ELF_HEADER; /* which is all that is looked at */
  size_t linked = px_linked_size(*image);
  return linked ? linked : strlen(*image);
}

/* ---- the list of modules ---- */

static void end_module(px_mortal *object) {
  CUmodule module = (CUmodule)object;
  free(module->image);
  free(module);
}

static void close_module(CUmodule module) {
  cu_references_close(module);
  px_module_close(module->module);
  px_end_later(&module->mortal, end_module);
}

/* The device is reset: all modules go. */
static void close_all(void) {
  pthread_mutex_lock(&lock);
  CUmodule all = modules;
  modules = NULL;
  pthread_mutex_unlock(&lock);
  while (all) {
    CUmodule next = all->next;
    px_live_remove(all, PX_MODULE);
    close_module(all);
    all = next;
  }
}

static bool is_loaded(CUmodule module) { return px_is_live(module, PX_MODULE); }

static CUmodule owner_of(const px_kernel *kernel) {
  pthread_mutex_lock(&lock);
  CUmodule at = modules;
  while (at && at->module != kernel->module) at = at->next;
  pthread_mutex_unlock(&lock);
  return at;
}

static bool add(CUmodule module) {
  px_at_reset(close_all);
  pthread_mutex_lock(&lock);
  bool fits = px_live_add(module, PX_MODULE);
  if (fits) {
    module->next = modules;
    modules = module;
  }
  pthread_mutex_unlock(&lock);
  return fits;
}

static bool remove_module(CUmodule module) {
  pthread_mutex_lock(&lock);
  bool found = px_live_remove(module, PX_MODULE);
  CUmodule *at = &modules;
  while (found && *at != module) at = &(*at)->next;
  if (found) *at = module->next;
  pthread_mutex_unlock(&lock);
  return found;
}

/* ---- loads ---- */

static CUresult load(CUmodule *out, const void *image, const px_jit *jit) {
  CU_ENTER();
  CU_REQUIRE(out && image, CUDA_ERROR_INVALID_VALUE);
  size_t size = size_of(&image);
  CUmodule made = calloc(1, sizeof *made);
  void *copy = malloc(size + 1);
  if (!made || !copy) {
    free(made);
    free(copy);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  memcpy(copy, image, size);
  made->image = copy;
  cudaError_t error = px_module_open(copy, size, &made->module);
  cu_log(jit, error ? px_module_problem() : "");
  if (error) {
    free(copy);
    free(made);
    return cu_result(error);
  }
  if (!add(made)) {
    close_module(made);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *out = made;
  return CUDA_SUCCESS;
}

PX_API CUresult cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned count, const int *options, void **values) {
  return load(out, image, &(px_jit){count, options, values});
}

PX_API CUresult cuModuleLoadData(CUmodule *out, const void *image) { return load(out, image, &(px_jit){0}); }

PX_API CUresult cuModuleLoadFatBinary(CUmodule *out, const void *image) { return load(out, image, &(px_jit){0}); }

/* The contents of a file, with a zero byte behind them; NULL: it cannot be read. */
static void *contents(const char *path) {
  FILE *file = fopen(path, "rbe");
  if (!file) return NULL;
  long size = fseek(file, 0, SEEK_END) ? -1 : ftell(file);
  rewind(file);
  /* more than the file has, for headers that are looked at in images that are cut off */
  char *data = size >= 0 && size < LARGEST_FILE ? calloc(1, (size_t)size + ELF_HEADER) : NULL;
  bool whole = data && fread(data, 1, (size_t)size, file) == (size_t)size;
  fclose(file);
  if (whole) return data;
  free(data);
  return NULL;
}

static CUresult load_file(CUmodule *out, const char *path, const px_jit *jit) {
  CU_ENTER();
  CU_REQUIRE(out && path, CUDA_ERROR_INVALID_VALUE);
  void *data = contents(path);
  CU_REQUIRE(data, CUDA_ERROR_FILE_NOT_FOUND);
  CUresult error = load(out, data, jit);
  free(data);
  return error;
}

PX_API CUresult cuModuleLoad(CUmodule *out, const char *path) { return load_file(out, path, &(px_jit){0}); }

PX_API CUresult cuModuleUnload(CUmodule module) {
  CU_ENTER_ANY();
  CU_REQUIRE(remove_module(module), CUDA_ERROR_INVALID_HANDLE);
  close_module(module);
  return CUDA_SUCCESS;
}

PX_API CUresult cuLibraryLoadData(CUlibrary *out, const void *image, const int *options, void **values, unsigned count,
                                  const int *more, void **more_values, unsigned more_count) {
  (void)more, (void)more_values, (void)more_count; /* that images are kept, and when they are loaded */
  return load(out, image, &(px_jit){count, options, values});
}

PX_API CUresult cuLibraryLoadFromFile(CUlibrary *out, const char *path, const int *options, void **values, unsigned count,
                                      const int *more, void **more_values, unsigned more_count) {
  (void)more, (void)more_values, (void)more_count;
  return load_file(out, path, &(px_jit){count, options, values});
}

CU_SAME(cuLibraryUnload, cuModuleUnload);

PX_API CUresult cuLibraryGetModule(CUmodule *out, CUlibrary library) {
  CU_ENTER();
  CU_REQUIRE(out && is_loaded(library), CUDA_ERROR_INVALID_HANDLE);
  *out = library;
  return CUDA_SUCCESS;
}

/* ---- what is in them ---- */

PX_API CUresult cuModuleGetFunction(CUfunction *out, CUmodule module, const char *name) {
  CU_ENTER();
  CU_REQUIRE(out && name, CUDA_ERROR_INVALID_VALUE);
  CU_REQUIRE(is_loaded(module), CUDA_ERROR_INVALID_HANDLE);
  *out = px_module_kernel(module->module, name);
  return *out ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
CU_SAME(cuLibraryGetKernel, cuModuleGetFunction);

PX_API CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *size, CUmodule module, const char *name) {
  uint64_t at, bytes;
  CU_ENTER();
  CU_REQUIRE(name, CUDA_ERROR_INVALID_VALUE);
  CU_REQUIRE(is_loaded(module), CUDA_ERROR_INVALID_HANDLE);
  CU_REQUIRE(px_module_variable(module->module, name, &at, &bytes), CUDA_ERROR_NOT_FOUND);
  if (address) *address = at;
  if (size) *size = bytes;
  return CUDA_SUCCESS;
}
CU_SAME(cuLibraryGetGlobal, cuModuleGetGlobal_v2);
CU_SAME(cuLibraryGetManaged, cuModuleGetGlobal_v2);

PX_API CUresult cuModuleGetFunctionCount(unsigned *count, CUmodule module) {
  CU_ENTER();
  CU_REQUIRE(count, CUDA_ERROR_INVALID_VALUE);
  CU_REQUIRE(is_loaded(module), CUDA_ERROR_INVALID_HANDLE);
  *count = (unsigned)module->module->count;
  return CUDA_SUCCESS;
}
CU_SAME(cuLibraryGetKernelCount, cuModuleGetFunctionCount);

PX_API CUresult cuModuleEnumerateFunctions(CUfunction *out, unsigned count, CUmodule module) {
  CU_ENTER();
  CU_REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
  CU_REQUIRE(is_loaded(module), CUDA_ERROR_INVALID_HANDLE);
  for (unsigned i = 0; i < count && i < module->module->count; i++) out[i] = &module->module->kernels[i];
  return CUDA_SUCCESS;
}
CU_SAME(cuLibraryEnumerateKernels, cuModuleEnumerateFunctions);

PX_API CUresult cuModuleGetLoadingMode(int *mode) {
  enum { LAZY = 2 };
  CU_REQUIRE(mode, CUDA_ERROR_INVALID_VALUE);
  *mode = LAZY;
  return CUDA_SUCCESS;
}

/* ---- of which module a kernel is ---- */

PX_API CUresult cuFuncGetModule(CUmodule *out, CUfunction kernel) {
  CU_ENTER();
  CU_REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
  CU_REQUIRE(px_is_kernel(kernel), CUDA_ERROR_INVALID_HANDLE);
  *out = owner_of(kernel);
  return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
CU_SAME(cuKernelGetLibrary, cuFuncGetModule);

/* ---- libraries in the runtime's API, whose options and errors have the driver's numbers ---- */

static cudaError_t report(CUresult result) { return px_report((cudaError_t)result); }

PX_API cudaError_t cudaLibraryLoadData(CUlibrary *out, const void *image, const int *options, void **values, unsigned count,
                                       const int *more, void **more_values, unsigned more_count) {
  PX_ENTER();
  return report(cuLibraryLoadData(out, image, options, values, count, more, more_values, more_count));
}

PX_API cudaError_t cudaLibraryLoadFromFile(CUlibrary *out, const char *path, const int *options, void **values,
                                           unsigned count, const int *more, void **more_values, unsigned more_count) {
  PX_ENTER();
  return report(cuLibraryLoadFromFile(out, path, options, values, count, more, more_values, more_count));
}

PX_API cudaError_t cudaLibraryUnload(CUlibrary library) {
  PX_ENTER();
  return report(cuLibraryUnload(library));
}

PX_API cudaError_t cudaLibraryGetKernel(cudaKernel_t *out, CUlibrary library, const char *name) {
  PX_ENTER();
  return report(cuLibraryGetKernel((CUkernel *)out, library, name));
}

PX_API cudaError_t cudaLibraryGetGlobal(void **address, size_t *size, CUlibrary library, const char *name) {
  PX_ENTER();
  return report(cuLibraryGetGlobal((CUdeviceptr *)address, size, library, name));
}

PX_API cudaError_t cudaLibraryGetManaged(void **address, size_t *size, CUlibrary library, const char *name) {
  PX_ENTER();
  return report(cuLibraryGetManaged((CUdeviceptr *)address, size, library, name));
}

PX_API cudaError_t cudaLibraryGetKernelCount(unsigned *count, CUlibrary library) {
  PX_ENTER();
  return report(cuLibraryGetKernelCount(count, library));
}

PX_API cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t *out, unsigned count, CUlibrary library) {
  PX_ENTER();
  return report(cuLibraryEnumerateKernels((CUkernel *)out, count, library));
}
