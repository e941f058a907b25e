/* embed.c: the C API of ptxemu's own, ptxemu_embed.h. */
#include "ptxemu_embed.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core.h"
#include "message.h"
#include "px_check.h"
#include "px_launch.h"
#include "px_runtime.h"

enum { LONGEST = 1 << 14, SLICE_MS = 50, OUTPUT = 4096 };

struct ptxemu_module {
  px_module *module;
  char image[];
};

static _Thread_local char problem[LONGEST];
static struct {
  void (*print)(void *context, const char *text, size_t bytes);
  void *context;
} output;

/* ---- what went wrong ---- */

const char *ptxemu_problem(void) { return problem; }

__attribute__((format(printf, 2, 3))) static ptxemu_status fail(ptxemu_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(problem, sizeof problem, format, arguments);
  va_end(arguments);
  return status;
}

static ptxemu_status status_of(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return PTXEMU_OK;
    case cudaErrorInvalidPtx: return PTXEMU_BAD_PTX;
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorNotSupported: return PTXEMU_UNSUPPORTED;
    case cudaErrorMemoryAllocation: return PTXEMU_NO_MEMORY;
    case cudaErrorInitializationError: return PTXEMU_FAILED;
    default: return PTXEMU_INVALID;
  }
}

/* The status of what modules and kernels are made by, with what was said of it. */
static ptxemu_status made(cudaError_t error) {
  const char *said = px_module_problem();
  return error ? fail(status_of(error), "%s", said[0] ? said : cudaGetErrorString(error)) : PTXEMU_OK;
}

/* ---- the device ---- */

static px_settings settings_of(const ptxemu_options *o) {
  return (px_settings){.capacity = o->memory,
                       .arch = o->arch   ? o->arch
                               : o->like ? px_arch_of(o->like)
                                         : 0,
                       .workers = o->workers,
                       .slack = o->cuda_guard ? PE_CUDA_SLACK : 0,
                       .host_memory = o->host_memory != 0,
                       .like = o->like,
                       .quiet = true};
}

static ptxemu_status start(const ptxemu_options *options) {
  static const ptxemu_options defaults = {.size = sizeof defaults};
  px_settings settings = settings_of(options ? options : &defaults);
  if (!px_checks_wanted(settings.host_memory, &settings.checks))
    return fail(PTXEMU_INVALID, "PTXEMU_CHECK names a checker that there is not, or cannot be with host_memory");
  bool first = px_device_start(&settings);
  if (first && options) {
    output.print = options->print;
    output.context = options->context;
  }
  if (options && !first) return fail(PTXEMU_INVALID, "the device has been started already");
  return px_device_get() ? PTXEMU_OK : fail(PTXEMU_FAILED, "the device cannot be started, or belongs to the parent process");
}

static ptxemu_status begin(void) {
  problem[0] = 0;
  return start(NULL);
}

/* A program that was built before there were the last fields gives none of them. */
static bool is_size(size_t size) { return size == sizeof(ptxemu_options) || size == offsetof(ptxemu_options, like); }

ptxemu_status ptxemu_open(const ptxemu_options *given) {
  ptxemu_options options = {0};
  problem[0] = 0;
  if (!given || !is_size(given->size)) return fail(PTXEMU_INVALID, "size is not that of ptxemu_options");
  memcpy(&options, given, given->size);
  if (options.arch && !px_is_arch(options.arch)) return fail(PTXEMU_INVALID, "arch must be 75 to 121, not %u", options.arch);
  if (options.like && !px_is_like(options.like))
    return fail(PTXEMU_INVALID, "like must be an architecture such as sm_89 or exact, not %.20s", options.like);
  return start(&options);
}

void *ptxemu_alloc(size_t bytes) {
  if (begin()) return NULL;
  uint64_t address = px_allocate(bytes, px_memory_embed);
  if (!address) fail(PTXEMU_NO_MEMORY, "out of device memory: %zu bytes wanted", bytes);
  return (void *)(uintptr_t)address;
}

ptxemu_status ptxemu_free(void *memory) {
  pe_allocation found;
  ptxemu_status status = begin();
  if (status || !memory) return status;
  bool ours = px_find(memory, &found) && px_is_of_kind(&found, px_memory_embed);
  if (ours && !pe_arena_free(px_device_get()->parts.arena, (uint64_t)(uintptr_t)memory)) return PTXEMU_OK;
  return fail(PTXEMU_INVALID, "%p is not the address of an allocation", memory);
}

/* ---- modules ---- */

ptxemu_status ptxemu_load(const void *ptx, size_t bytes, ptxemu_module **module) {
  ptxemu_status status = begin();
  if (status) return status;
  if (!ptx || !module) return fail(PTXEMU_INVALID, "there is no text, or no place for the module");
  ptxemu_module *new = malloc(sizeof *new + bytes + 1);
  if (!new) return fail(PTXEMU_NO_MEMORY, "out of memory");
  memcpy(new->image, ptx, bytes);
  new->image[bytes] = 0;
  status = made(px_module_open(new->image, bytes, &new->module));
  if (status) free(new);
  *module = status ? NULL : new;
  return status;
}

void ptxemu_unload(ptxemu_module *module) {
  if (!module) return;
  px_module_close(module->module);
  free(module);
}

ptxemu_status ptxemu_find(ptxemu_module *module, const char *name, ptxemu_kernel **kernel) {
  problem[0] = 0;
  if (!module || !name || !kernel) return fail(PTXEMU_INVALID, "there is no module, no name, or no place for the kernel");
  *kernel = (ptxemu_kernel *)px_module_kernel(module->module, name);
  return *kernel ? PTXEMU_OK : fail(PTXEMU_NOT_FOUND, "the module has no kernel `%s`", name);
}

ptxemu_status ptxemu_variable(ptxemu_module *module, const char *name, void **address, size_t *bytes) {
  uint64_t at, size;
  problem[0] = 0;
  if (!module || !name || !address) return fail(PTXEMU_INVALID, "there is no module, no name, or no place for the address");
  if (!px_module_variable(module->module, name, &at, &size))
    return fail(PTXEMU_NOT_FOUND, "the module has no variable `%s`", name);
  *address = (void *)(uintptr_t)at;
  if (bytes) *bytes = size;
  return PTXEMU_OK;
}

/* ---- launches ---- */

static void print(pe_launch *launch) {
  char text[OUTPUT];
  size_t size;
  while ((size = pe_launch_output(launch, text, sizeof text))) {
    if (output.print)
      output.print(output.context, text, size);
    else
      fwrite(text, 1, size, stdout);
  }
}

/* Wait for the end; false: it came too late. */
static bool wait_for(pe_launch *launch, unsigned milliseconds) {
  unsigned waited = 0;
  while (!pe_launch_wait(launch, SLICE_MS)) {
    print(launch);
    waited += SLICE_MS;
    if (!milliseconds || waited < milliseconds) continue;
    pe_launch_request_stop(launch);
    pe_launch_wait(launch, UINT32_MAX);
    return false;
  }
  return true;
}

static ptxemu_status finish(pe_launch *launch, unsigned milliseconds) {
  pe_counters counters;
  bool in_time = wait_for(launch, milliseconds);
  print(launch);
  pe_launch_result(launch, NULL, &counters);
  if (counters.no_memory) return fail(PTXEMU_NO_MEMORY, "there was no memory for the stacks of the kernel's warps");
  if (!in_time && (counters.kind == PE_OK || counters.kind == PE_STOPPED))
    return fail(PTXEMU_TIMEOUT, "the kernel was stopped after %u ms", milliseconds);
  if (counters.kind == PE_OK) return PTXEMU_OK;
  pe_launch_fault_text(launch, NULL, problem, sizeof problem);
  return PTXEMU_FAULT;
}

static pe_start start_of(const px_kernel *kernel, const ptxemu_shape *shape, const unsigned *cluster,
                         const void *const *arguments) {
  pe_start what = {.module = kernel->module->resident,
                   .kernel = kernel->facts,
                   .cooperative = shape->cooperative != 0,
                   .joins = true,
                   .dynamic_shared = shape->shared,
                   .pointers = arguments};
  for (int axis = 0; axis < 3; axis++) {
    what.grid[axis] = shape->grid[axis] ? shape->grid[axis] : 1;
    what.block[axis] = shape->block[axis] ? shape->block[axis] : 1;
    if (cluster) what.cluster[axis] = cluster[axis] ? cluster[axis] : 1;
  }
  return what;
}

ptxemu_status ptxemu_launch_clusters(ptxemu_kernel *kernel, const ptxemu_shape *shape, const unsigned cluster[3],
                                     const void *const *arguments) {
  char message[PE_MESSAGE_BYTES];
  pe_launch *launch;
  ptxemu_status status = begin();
  if (status) return status;
  if (!kernel || !shape) return fail(PTXEMU_INVALID, "there is no kernel, or no shape");
  px_kernel *found = (px_kernel *)kernel;
  pe_start what = start_of(found, shape, cluster, arguments);
  if (pe_check_shape(pe_module_entry(what.module), what.kernel, what.grid, what.block, message))
    return fail(PTXEMU_INVALID, "%s", message);
  status = made(px_kernel_code(found, what.grid, what.block, &what.code));
  if (status) return status;
  int wrong = pe_start_launch(&what, &launch, message);
  if (wrong) return fail(wrong == ENOMEM ? PTXEMU_NO_MEMORY : PTXEMU_INVALID, "%s", message);
  status = finish(launch, shape->timeout_ms);
  pe_launch_destroy(launch);
  return status;
}

ptxemu_status ptxemu_launch(ptxemu_kernel *kernel, const ptxemu_shape *shape, const void *const *arguments) {
  return ptxemu_launch_clusters(kernel, shape, NULL, arguments);
}
