/* launch.c: launches, and what programs ask before them. A launch has ended when the call returns. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core.h"
#include "fault_text.h"
#include "px_launch.h"
#include "registry.h"

enum { PATIENCE_MS = 50, OUTPUT = 1 << 14, FRAMELESS_STACK = (1 << 20) - (64 << 10) };

/* ---- checks ---- */

static bool in_range(const px_geometry *g) {
  uint64_t threads = (uint64_t)g->block.x * g->block.y;
  return g->grid.x && g->grid.y && g->grid.z && g->grid.x <= (unsigned)px_attribute(5) &&
         g->grid.y <= (unsigned)px_attribute(6) && g->grid.z <= (unsigned)px_attribute(7) && g->block.x && g->block.y &&
         g->block.z && g->block.x <= 1024 && g->block.y <= 1024 && g->block.z <= 64 && threads * g->block.z <= 1024;
}

static cudaError_t check(const px_kernel *kernel, const px_code *code, const px_geometry *g) {
  uint64_t threads = (uint64_t)g->block.x * g->block.y * g->block.z;
  const uint32_t *most = kernel->most, *required = kernel->required;
  if (required[0] && (required[0] != g->block.x || required[1] != g->block.y || required[2] != g->block.z))
    return cudaErrorInvalidConfiguration;
  if (most[0] && threads > (uint64_t)most[0] * most[1] * most[2]) return cudaErrorLaunchOutOfResources;
  if (g->shared > kernel->dynamic_shared || code->facts.static_shared + g->shared > PE_MAX_SHARED)
    return cudaErrorInvalidValue;
  return cudaSuccess;
}

/* ---- the launch ---- */

static void drain(pe_launch *launch) {
  char text[OUTPUT];
  size_t size;
  while ((size = pe_launch_output(launch, text, sizeof text))) fwrite(text, 1, size, stdout);
}

static cudaError_t ended(const px_kernel *kernel, pe_launch *launch) {
  pe_record record;
  pe_counters counters;
  pe_launch_result(launch, &record, &counters);
  if (record.kind != PE_OK) return px_stay(px_say_fault(kernel, &record));
  return counters.no_memory ? px_stay(cudaErrorLaunchOutOfResources) : cudaSuccess;
}

static uint64_t local_bytes(const px_code *code) {
  uint64_t more = code->facts.stacked ? px_device_get()->parts.stack : 0;
  return code->facts.local_bytes + more < PE_MAX_LOCAL ? code->facts.local_bytes + more : PE_MAX_LOCAL;
}

static cudaError_t error_of(int error) {
  switch (error) {
    case 0: return cudaSuccess;
    case ENOMEM: return cudaErrorMemoryAllocation;
    case E2BIG: return cudaErrorCooperativeLaunchTooLarge;
    case EINVAL: return cudaErrorInvalidConfiguration;
    default: return cudaErrorLaunchFailure;
  }
}

/* Run a kernel on a buffer of parameters and wait for its end. */
static cudaError_t run(const px_kernel *kernel, const px_code *code, const px_geometry *g, const void *params) {
  const px_module *module = kernel->module;
  const pe_device *parts = &px_device_get()->parts;
  pe_su_context surfaces = {.table = parts->surfaces, .textures = parts->textures, .policy = parts->policy};
  pe_config config = {
    .kernel = pe_code_address(code->code),
    .grid = {g->grid.x, g->grid.y, g->grid.z},
    .block = {g->block.x, g->block.y, g->block.z},
    .params = params,
    .params_size = kernel->facts->param_bytes,
    .static_shared = code->facts.static_shared,
    .dynamic_shared = g->shared,
    .local_bytes = local_bytes(code),
    .stack_bytes = code->facts.frame_bytes + (code->facts.calls ? parts->host_stack : FRAMELESS_STACK),
    .global_base = pe_module_block(module->resident, PE_BLOCK_GLOBAL),
    .const_base = pe_module_block(module->resident, PE_BLOCK_CONST),
    .const_size = px_const_size(module),
    .handles = (uint64_t)(uintptr_t)pe_module_handles(module->resident),
    .surfaces = &surfaces,
    .suspends = g->cooperative || code->facts.suspends || code->facts.spins,
    .spins = code->facts.spins,
    .cooperative = g->cooperative,
    .host_memory = g->host_memory || px_any_registered(),
  };
  pe_launch *launch;
  cudaError_t error = error_of(pe_launch_start(parts->arena, &config, &launch));
  if (error) return error;
  while (!pe_launch_wait(launch, PATIENCE_MS)) drain(launch);
  drain(launch);
  ended(kernel, launch); /* an error of the kernel stays, for the next call */
  pe_launch_end(&launch);
  return cudaSuccess;
}

cudaError_t px_launch(px_kernel *kernel, const px_geometry *g, void *const *arguments) {
  const px_code *code;
  if (!in_range(g)) return cudaErrorInvalidConfiguration;
  const uint32_t block[3] = {g->block.x, g->block.y, g->block.z};
  cudaError_t error = px_kernel_code(kernel, block, &code);
  if (!error) error = check(kernel, code, g);
  if (error) return error;
  uint8_t small[512], *params = kernel->facts->param_bytes <= sizeof small ? small : malloc(kernel->facts->param_bytes);
  if (!params) return cudaErrorMemoryAllocation;
  for (uint32_t i = 0; i < kernel->facts->parameters; i++)
    memcpy(params + kernel->parameters[i].offset, arguments[i], kernel->parameters[i].size);
  error = run(kernel, code, g, params);
  if (params != small) free(params);
  return error;
}

static cudaError_t launch_function(const void *function, const px_geometry *g, void **arguments, cudaStream_t stream) {
  px_kernel *kernel;
  PX_ENTER();
  PX_REQUIRE(px_is_stream(stream), cudaErrorInvalidResourceHandle);
  cudaError_t error = px_kernel_of(function, &kernel);
  return px_report(error ? error : px_launch(kernel, g, arguments));
}

PX_API cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
                                    cudaStream_t stream) {
  return launch_function(function, &(px_geometry){grid, block, shared, false, false}, arguments, stream);
}

PX_API cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                                      cudaStream_t stream) {
  return cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}

PX_API cudaError_t cudaLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
                                               cudaStream_t stream) {
  return launch_function(function, &(px_geometry){grid, block, shared, true, false}, arguments, stream);
}

/* What a launch attribute asks for; hints change nothing. */
static cudaError_t apply(const cudaLaunchAttribute *attribute, px_geometry *g) {
  enum { WINDOW = 1, POLICY = 3, SERIALIZATION = 6, PRIORITY = 8, CARVEOUT = 14 };
  switch (attribute->id) {
    case cudaLaunchAttributeCooperative: g->cooperative = attribute->val.cooperative != 0; return cudaSuccess;
    case cudaLaunchAttributeClusterDimension: {
      bool one = attribute->val.clusterDim.x <= 1 && attribute->val.clusterDim.y <= 1 && attribute->val.clusterDim.z <= 1;
      return one ? cudaSuccess : cudaErrorNotSupported;
    }
    case cudaLaunchAttributeIgnore:
    case WINDOW:
    case POLICY:
    case SERIALIZATION:
    case PRIORITY:
    case CARVEOUT: return cudaSuccess;
    default: return cudaErrorNotSupported;
  }
}

cudaError_t px_apply(const cudaLaunchAttribute *attributes, unsigned count, px_geometry *g) {
  cudaError_t error = cudaSuccess;
  for (unsigned i = 0; !error && i < count; i++) error = apply(&attributes[i], g);
  return error;
}

PX_API cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function, void **arguments) {
  PX_REQUIRE(config, cudaErrorInvalidValue);
  px_geometry g = {config->gridDim, config->blockDim, config->dynamicSmemBytes, false, false};
  cudaError_t error = px_apply(config->attrs, config->numAttrs, &g);
  PX_REQUIRE(!error, error);
  return launch_function(function, &g, arguments, config->stream);
}

/* ---- the configuration between <<< and >>> ---- */

enum { MOST_PUSHED = 16 };

static _Thread_local struct {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
} pushed[MOST_PUSHED];
static _Thread_local unsigned pushes;

PX_API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
  if (pushes == MOST_PUSHED) return (unsigned)px_report(cudaErrorInvalidConfiguration);
  pushed[pushes].grid = grid;
  pushed[pushes].block = block;
  pushed[pushes].shared = shared;
  pushed[pushes++].stream = stream;
  return 0;
}

PX_API cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, cudaStream_t *stream) {
  if (!pushes) return px_report(cudaErrorMissingConfiguration);
  pushes--;
  *grid = pushed[pushes].grid;
  *block = pushed[pushes].block;
  *shared = pushed[pushes].shared;
  *stream = pushed[pushes].stream;
  return cudaSuccess;
}

/* ---- attributes of kernels ---- */

static const uint32_t common_block[3] = {32, 1, 1};

static int most_threads(const px_kernel *kernel) {
  const uint32_t *limit = kernel->required[0] ? kernel->required : kernel->most;
  return limit[0] ? (int)(limit[0] * limit[1] * limit[2]) : 1024;
}

/* The code that most launches take. */
static cudaError_t common_code(px_kernel *kernel, const px_code **code) {
  return px_kernel_code(kernel, kernel->required[0] ? kernel->required : common_block, code);
}

cudaError_t px_kernel_attributes(px_kernel *kernel, cudaFuncAttributes *out) {
  const px_code *code;
  cudaError_t error = common_code(kernel, &code);
  if (error) return error;
  int arch = (int)px_device_get()->arch;
  *out = (cudaFuncAttributes){.sharedSizeBytes = code->facts.static_shared,
                              .constSizeBytes = px_const_size(kernel->module),
                              .localSizeBytes = code->facts.local_bytes,
                              .maxThreadsPerBlock = most_threads(kernel),
                              .numRegs = 32,
                              .ptxVersion = arch,
                              .binaryVersion = arch,
                              .maxDynamicSharedSizeBytes = (int)kernel->dynamic_shared};
  return cudaSuccess;
}

PX_API cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *out, const void *function) {
  px_kernel *kernel;
  PX_ENTER();
  PX_REQUIRE(out, cudaErrorInvalidValue);
  cudaError_t error = px_kernel_of(function, &kernel);
  return px_report(error ? error : px_kernel_attributes(kernel, out));
}

cudaError_t px_kernel_set(px_kernel *kernel, int attribute, int value) {
  enum { DYNAMIC_SHARED = 8, CARVEOUT = 9 };
  if (attribute == CARVEOUT) return value >= -1 && value <= 100 ? cudaSuccess : cudaErrorInvalidValue;
  if (attribute != DYNAMIC_SHARED) return cudaErrorNotSupported;
  if (value < 0 || value > PE_MAX_SHARED) return cudaErrorInvalidValue;
  kernel->dynamic_shared = (uint32_t)value;
  return cudaSuccess;
}

PX_API cudaError_t cudaFuncSetAttribute(const void *function, int attribute, int value) {
  px_kernel *kernel;
  PX_ENTER();
  cudaError_t error = px_kernel_of(function, &kernel);
  return px_report(error ? error : px_kernel_set(kernel, attribute, value));
}

/* A preference that changes nothing: there is one kind of memory. */
PX_API cudaError_t cudaFuncSetCacheConfig(const void *function, int config) {
  px_kernel *kernel;
  PX_ENTER();
  PX_REQUIRE(config >= 0 && config <= 3, cudaErrorInvalidValue);
  return px_report(px_kernel_of(function, &kernel));
}

PX_API cudaError_t cudaFuncGetName(const char **name, const void *function) {
  px_kernel *kernel;
  PX_ENTER();
  PX_REQUIRE(name, cudaErrorInvalidValue);
  cudaError_t error = px_kernel_of(function, &kernel);
  if (!error) *name = kernel->name;
  return px_report(error);
}

/* ---- occupancy: a processor has one block at a time ---- */

cudaError_t px_occupancy(px_kernel *kernel, int threads, size_t shared, int *blocks) {
  const px_code *code;
  if (!blocks || threads <= 0) return cudaErrorInvalidValue;
  cudaError_t error = common_code(kernel, &code);
  if (error) return error;
  *blocks =
      threads <= most_threads(kernel) && shared <= PE_MAX_SHARED && code->facts.static_shared + shared <= PE_MAX_SHARED;
  return cudaSuccess;
}

PX_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *function, int threads,
                                                                          size_t shared, unsigned flags) {
  px_kernel *kernel;
  PX_ENTER();
  PX_REQUIRE(flags <= 1, cudaErrorInvalidValue);
  cudaError_t error = px_kernel_of(function, &kernel);
  return px_report(error ? error : px_occupancy(kernel, threads, shared, blocks));
}

PX_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int threads,
                                                                 size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, shared, 0);
}

cudaError_t px_dynamic_left(px_kernel *kernel, int blocks, int threads, size_t *size) {
  const px_code *code;
  if (!size || blocks != 1 || threads <= 0) return cudaErrorInvalidValue;
  cudaError_t error = common_code(kernel, &code);
  if (!error) *size = code->facts.static_shared < PE_MAX_SHARED ? PE_MAX_SHARED - code->facts.static_shared : 0;
  return error;
}

PX_API cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *size, const void *function, int blocks, int threads) {
  px_kernel *kernel;
  PX_ENTER();
  cudaError_t error = px_kernel_of(function, &kernel);
  return px_report(error ? error : px_dynamic_left(kernel, blocks, threads, size));
}
