/* launch.c: launches, and what programs ask before them. */
#include <stdlib.h>
#include <string.h>
#include "checked.h"
#include "core.h"
#include "px_cluster.h"
#include "px_graph.h"
#include "px_stream.h"
#include "registry.h"

cudaError_t px_launch_prepare(px_kernel *kernel, const px_geometry *g, void *const *arguments, const void *buffer,
                              pe_start *what) {
  char message[PE_MESSAGE_BYTES];
  *what = (pe_start){.module = kernel->module->resident,
                     .kernel = kernel->facts,
                     .grid = {g->grid.x, g->grid.y, g->grid.z},
                     .block = {g->block.x, g->block.y, g->block.z},
                     .cluster = {g->cluster.x, g->cluster.y, g->cluster.z},
                     .cooperative = g->cooperative,
                     .host_memory = g->host_memory || px_any_registered(),
                     .dynamic_shared = g->shared,
                     .pointers = (const void *const *)arguments,
                     .buffer = buffer,
                     .buffer_size = buffer ? kernel->facts->param_bytes : 0};
  int wrong = pe_check_shape(pe_module_entry(what->module), what->kernel, what->grid, what->block, message);
  if (!wrong) wrong = px_check_cluster(kernel, what);
  if (wrong) return px_start_error(wrong);
  if (g->shared > kernel->dynamic_shared) return cudaErrorInvalidValue;
  cudaError_t error = px_kernel_code(kernel, what->grid, what->block, &what->code);
  return error ? error : px_start_error(pe_start_check(what, message));
}

cudaError_t px_launch_work(px_kernel *kernel, const px_geometry *g, void *const *arguments, px_work **out) {
  pe_start what;
  cudaError_t error = px_launch_prepare(kernel, g, arguments, NULL, &what);
  if (error) return error;
  *out = px_work_launch(&what, kernel, g->handle);
  return *out ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t px_launch(px_kernel *kernel, const px_geometry *g, void *const *arguments) {
  px_work *work;
  cudaError_t error = px_launch_work(kernel, g, arguments, &work);
  if (!error) error = px_submit(g->stream, work);
  bool waits = !error && px_device_get()->blocking && !px_is_captured(g->stream);
  if (waits && !px_stream_wait(g->stream)) error = px_enter();
  return error;
}

static cudaError_t launch_function(const void *function, px_geometry *g, void **arguments) {
  px_kernel *kernel;
  g->handle = function;
  PX_ENTER();
  PX_REQUIRE(px_is_stream(g->stream), cudaErrorInvalidResourceHandle);
  cudaError_t error = px_kernel_of(function, &kernel);
  return px_report(error ? error : px_launch(kernel, g, arguments));
}

PX_API cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
                                    cudaStream_t stream) {
  px_geometry g = {.grid = grid, .block = block, .shared = shared, .stream = stream};
  return launch_function(function, &g, arguments);
}

PX_API cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                                      cudaStream_t stream) {
  return cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}

PX_API cudaError_t cudaLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
                                               cudaStream_t stream) {
  px_geometry g = {.grid = grid, .block = block, .shared = shared, .stream = stream, .cooperative = true};
  return launch_function(function, &g, arguments);
}

/* ---- arguments in a buffer ---- */

/* The buffer that `extra` names. */
static cudaError_t read_extra(void **extra, uint8_t **buffer, size_t *size) {
  *buffer = NULL;
  *size = 0;
  for (; (uintptr_t)*extra != PX_EXTRA_END; extra += 2) {
    if ((uintptr_t)*extra == PX_EXTRA_BUFFER)
      *buffer = extra[1];
    else if ((uintptr_t)*extra == PX_EXTRA_SIZE && extra[1])
      *size = *(size_t *)extra[1];
    else
      return cudaErrorInvalidValue;
  }
  return *buffer ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t px_places(const px_kernel *kernel, void **extra, void ***out) {
  uint8_t *buffer;
  size_t size;
  cudaError_t error = read_extra(extra, &buffer, &size);
  if (error) return error;
  void **places = calloc(kernel->facts->parameters + 1u, sizeof *places);
  if (!places) return cudaErrorMemoryAllocation;
  for (uint32_t i = 0; !error && i < kernel->facts->parameters; i++) {
    const pe_parameter_facts *parameter = &kernel->parameters[i];
    places[i] = buffer + parameter->offset;
    if (!pe_within(parameter->offset, parameter->size, size)) error = cudaErrorInvalidValue;
  }
  if (error) free(places);
  *out = error ? NULL : places;
  return error;
}

/* ---- launches that a program describes ---- */

cudaError_t px_geometry_of(const cudaLaunchConfig_t *config, px_geometry *g) {
  *g = (px_geometry){
    .grid = config->gridDim, .block = config->blockDim, .shared = config->dynamicSmemBytes, .stream = config->stream};
  return px_apply(config->attrs, config->numAttrs, g);
}

PX_API cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function, void **arguments) {
  PX_REQUIRE(config, cudaErrorInvalidValue);
  px_geometry g;
  cudaError_t error = px_geometry_of(config, &g);
  PX_REQUIRE(!error, error);
  return launch_function(function, &g, arguments);
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

/* The code of a kernel for the blocks that it requires, or for common ones; and the most threads that a block may have. */
static cudaError_t facts_of(px_kernel *kernel, const pe_code_facts **facts, int *threads) {
  const pe_entry *entry = pe_module_entry(kernel->module->resident);
  uint64_t limit[3] = {PE_MAX_BLOCK_XY, 1, 1};
  bool required = pe_kernel_limit(entry, kernel->facts, "reqntid", limit);
  if (!required) pe_kernel_limit(entry, kernel->facts, "maxntid", limit);
  uint64_t most = pe_product(pe_product(limit[0], limit[1]), limit[2]);
  *threads = most < PE_MAX_BLOCK_XY ? (int)most : PE_MAX_BLOCK_XY;
  uint32_t whole_warps = most < PE_COMMON_BLOCK ? (uint32_t)most & ~31u : PE_COMMON_BLOCK;
  uint32_t block[3] = {whole_warps ? whole_warps : 32, 1, 1};
  for (int axis = 0; required && axis < 3; axis++) block[axis] = (uint32_t)limit[axis];
  static const uint32_t one[3] = {1, 1, 1};
  pe_code *code;
  cudaError_t error = px_kernel_code(kernel, one, block, &code);
  if (!error) *facts = pe_code_facts_of(code);
  return error;
}

cudaError_t px_kernel_attributes(px_kernel *kernel, cudaFuncAttributes *out) {
  const pe_code_facts *facts;
  int most;
  cudaError_t error = facts_of(kernel, &facts, &most);
  if (error) return error;
  int arch = (int)px_device_get()->arch;
  *out = (cudaFuncAttributes){.sharedSizeBytes = facts->static_shared,
                              .constSizeBytes = px_const_size(kernel->module),
                              .localSizeBytes = facts->local_bytes,
                              .maxThreadsPerBlock = most,
                              .numRegs = 32,
                              .ptxVersion = arch,
                              .binaryVersion = arch,
                              .maxDynamicSharedSizeBytes = (int)kernel->dynamic_shared};
  px_cluster_attributes(kernel, out);
  return cudaSuccess;
}

PX_API cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *out, const void *function) {
  px_kernel *kernel;
  PX_ENTER();
  PX_REQUIRE(out, cudaErrorInvalidValue);
  cudaError_t error = px_kernel_of(function, &kernel);
  return px_report(error ? error : px_kernel_attributes(kernel, out));
}

/* CUDA 11 has the first of these. */
PX_API cudaError_t px_function_attributes_of_11(void *out, const void *function) {
  cudaFuncAttributes all;
  PX_REQUIRE(out, cudaErrorInvalidValue);
  cudaError_t error = cudaFuncGetAttributes(&all, function);
  if (!error) memcpy(out, &all, offsetof(cudaFuncAttributes, clusterDimMustBeSet));
  return error;
}

cudaError_t px_kernel_set(px_kernel *kernel, int attribute, int value) {
  enum { DYNAMIC_SHARED = 8, CARVEOUT = 9 };
  if (attribute == CARVEOUT) return value >= -1 && value <= 100 ? cudaSuccess : cudaErrorInvalidValue;
  if (attribute >= PX_CLUSTER_MUST_BE_SET && attribute <= PX_CLUSTER_POLICY) return px_cluster_set(kernel, attribute, value);
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

/* The driver API's handle of it. */
PX_API cudaError_t cudaGetFuncBySymbol(px_kernel **out, const void *function) {
  px_kernel *kernel;
  PX_ENTER();
  PX_REQUIRE(out, cudaErrorInvalidValue);
  cudaError_t error = px_kernel_of(function, &kernel);
  if (!error) *out = kernel;
  return px_report(error);
}

/* ---- occupancy: a processor has one block at a time ---- */

cudaError_t px_occupancy(px_kernel *kernel, int threads, size_t shared, int *blocks) {
  const pe_code_facts *facts;
  int most;
  if (!blocks || threads <= 0) return cudaErrorInvalidValue;
  cudaError_t error = facts_of(kernel, &facts, &most);
  if (error) return error;
  *blocks = threads <= most && shared <= PE_MAX_SHARED && facts->static_shared + shared <= PE_MAX_SHARED;
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
  const pe_code_facts *facts;
  int most;
  if (!size || blocks != 1 || threads <= 0) return cudaErrorInvalidValue;
  cudaError_t error = facts_of(kernel, &facts, &most);
  if (!error) *size = facts->static_shared < PE_MAX_SHARED ? PE_MAX_SHARED - facts->static_shared : 0;
  return error;
}

PX_API cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *size, const void *function, int blocks, int threads) {
  px_kernel *kernel;
  PX_ENTER();
  cudaError_t error = px_kernel_of(function, &kernel);
  return px_report(error ? error : px_dynamic_left(kernel, blocks, threads, size));
}
