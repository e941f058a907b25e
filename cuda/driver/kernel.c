/* kernel.c: kernels: CUfunction and CUkernel are one. Their attributes, launches and occupancy. */
#include <stdlib.h>
#include "driver.h"
#include "px_cluster.h"
#include "registry.h"

/* ---- launches ---- */

static CUresult launch_buffer(px_kernel *kernel, const px_geometry *g, void **extra) {
  void **places;
  cudaError_t error = px_places(kernel, extra, &places);
  if (error) return cu_result(error);
  error = px_launch(kernel, g, places);
  free(places);
  return cu_result(error);
}

CUresult cu_launch(px_kernel *kernel, px_geometry *g, void **pointers, void **extra) {
  g->handle = kernel;
  CU_ENTER();
  CU_REQUIRE(px_is_kernel(kernel) && px_is_stream(g->stream), CUDA_ERROR_INVALID_HANDLE);
  CU_REQUIRE(!(pointers && extra), CUDA_ERROR_INVALID_VALUE);
  if (extra) return launch_buffer(kernel, g, extra);
  CU_REQUIRE(pointers || !kernel->facts->parameters, CUDA_ERROR_INVALID_VALUE);
  return cu_result(px_launch(kernel, g, pointers));
}

PX_API CUresult cuLaunchKernel(CUfunction kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                               unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **pointers,
                               void **extra) {
  px_geometry g = {
    .grid = {grid_x, grid_y, grid_z}, .block = {block_x, block_y, block_z}, .shared = shared, .stream = stream};
  return cu_launch(kernel, &g, pointers, extra);
}

PX_API CUresult cuLaunchCooperativeKernel(CUfunction kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                          unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                          CUstream stream, void **pointers) {
  px_geometry g = {.grid = {grid_x, grid_y, grid_z},
                   .block = {block_x, block_y, block_z},
                   .shared = shared,
                   .stream = stream,
                   .cooperative = true};
  return cu_launch(kernel, &g, pointers, NULL);
}

/* A launch as its configuration says it. */
static CUresult geometry_of(const CUlaunchConfig *c, px_geometry *g) {
  CU_REQUIRE(c && (c->attrs || !c->numAttrs), CUDA_ERROR_INVALID_VALUE);
  *g = (px_geometry){.grid = {c->gridDimX, c->gridDimY, c->gridDimZ},
                     .block = {c->blockDimX, c->blockDimY, c->blockDimZ},
                     .shared = c->sharedMemBytes,
                     .stream = c->hStream};
  return cu_result(px_apply(c->attrs, c->numAttrs, g));
}

PX_API CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction kernel, void **pointers, void **extra) {
  px_geometry g;
  CUresult error = geometry_of(c, &g);
  return error ? error : cu_launch(kernel, &g, pointers, extra);
}

static CUresult ask(px_cluster_question *asked, int *answer, CUfunction kernel, const CUlaunchConfig *config) {
  px_geometry g;
  CU_ENTER();
  CU_REQUIRE(px_is_kernel(kernel), CUDA_ERROR_INVALID_HANDLE);
  CUresult error = geometry_of(config, &g);
  return error ? error : cu_result(asked(kernel, &g, answer));
}

PX_API CUresult cuOccupancyMaxPotentialClusterSize(int *blocks, CUfunction kernel, const CUlaunchConfig *config) {
  return ask(px_cluster_potential, blocks, kernel, config);
}

PX_API CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction kernel, const CUlaunchConfig *config) {
  return ask(px_cluster_active, clusters, kernel, config);
}

/* ---- attributes ---- */

enum { CARVEOUT = 9, ATTRIBUTES = 16 };

PX_API CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction kernel) {
  cudaFuncAttributes found;
  CU_ENTER_ANY();
  CU_REQUIRE(value, CUDA_ERROR_INVALID_VALUE);
  CU_REQUIRE(px_is_kernel(kernel), CUDA_ERROR_INVALID_HANDLE);
  CU_REQUIRE(attribute >= 0 && attribute < ATTRIBUTES, CUDA_ERROR_INVALID_VALUE);
  CUresult error = cu_result(px_kernel_attributes(kernel, &found));
  CU_REQUIRE(!error, error);
  const int values[ATTRIBUTES] = {found.maxThreadsPerBlock,
                                  (int)found.sharedSizeBytes,
                                  (int)found.constSizeBytes,
                                  (int)found.localSizeBytes,
                                  found.numRegs,
                                  found.ptxVersion,
                                  found.binaryVersion,
                                  found.cacheModeCA,
                                  found.maxDynamicSharedSizeBytes,
                                  [CARVEOUT] = -1,
                                  [PX_CLUSTER_MUST_BE_SET] = found.clusterDimMustBeSet,
                                  [PX_CLUSTER_WIDTH] = found.requiredClusterWidth,
                                  [PX_CLUSTER_HEIGHT] = found.requiredClusterHeight,
                                  [PX_CLUSTER_DEPTH] = found.requiredClusterDepth,
                                  [PX_CLUSTER_NON_PORTABLE] = found.nonPortableClusterSizeAllowed};
  *value = values[attribute];
  return CUDA_SUCCESS;
}

PX_API CUresult cuKernelGetAttribute(int *value, int attribute, CUkernel kernel, CUdevice device) {
  CUresult error = cu_device(device);
  return error ? error : cuFuncGetAttribute(value, attribute, kernel);
}

PX_API CUresult cuFuncSetAttribute(CUfunction kernel, int attribute, int value) {
  CU_ENTER();
  CU_REQUIRE(px_is_kernel(kernel), CUDA_ERROR_INVALID_HANDLE);
  return cu_result(px_kernel_set(kernel, attribute, value));
}

PX_API CUresult cuKernelSetAttribute(int attribute, int value, CUkernel kernel, CUdevice device) {
  CUresult error = cu_device(device);
  return error ? error : cuFuncSetAttribute(kernel, attribute, value);
}

PX_API cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, int attribute, int value, int device) {
  px_kernel *found;
  PX_ENTER();
  cudaError_t error = px_kernel_of(kernel, &found);
  return error ? px_report(error) : px_report((cudaError_t)cuKernelSetAttribute(attribute, value, found, device));
}

/* A preference that changes nothing: there is one kind of memory. */
PX_API CUresult cuFuncSetCacheConfig(CUfunction kernel, int config) {
  CU_ENTER();
  CU_REQUIRE(px_is_kernel(kernel), CUDA_ERROR_INVALID_HANDLE);
  return config >= 0 && config <= 3 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

PX_API CUresult cuFuncSetSharedMemConfig(CUfunction kernel, int config) { return cuFuncSetCacheConfig(kernel, config); }

PX_API CUresult cuKernelSetCacheConfig(CUkernel kernel, int config, CUdevice device) {
  CUresult error = cu_device(device);
  return error ? error : cuFuncSetCacheConfig(kernel, config);
}

PX_API CUresult cuFuncGetName(const char **name, CUfunction kernel) {
  CU_ENTER_ANY();
  CU_REQUIRE(name, CUDA_ERROR_INVALID_VALUE);
  CU_REQUIRE(px_is_kernel(kernel), CUDA_ERROR_INVALID_HANDLE);
  *name = kernel->name;
  return CUDA_SUCCESS;
}
CU_SAME(cuKernelGetName, cuFuncGetName);

PX_API CUresult cuFuncGetParamInfo(CUfunction kernel, size_t index, size_t *offset, size_t *size) {
  CU_ENTER();
  CU_REQUIRE(px_is_kernel(kernel), CUDA_ERROR_INVALID_HANDLE);
  CU_REQUIRE(offset && index < kernel->facts->parameters, CUDA_ERROR_INVALID_VALUE);
  *offset = kernel->parameters[index].offset;
  if (size) *size = kernel->parameters[index].size;
  return CUDA_SUCCESS;
}
CU_SAME(cuKernelGetParamInfo, cuFuncGetParamInfo);

PX_API CUresult cuKernelGetFunction(CUfunction *out, CUkernel kernel) {
  CU_ENTER();
  CU_REQUIRE(out && px_is_kernel(kernel), CUDA_ERROR_INVALID_HANDLE);
  *out = kernel;
  return CUDA_SUCCESS;
}

/* Modules are loaded whole. */
PX_API CUresult cuFuncIsLoaded(int *state, CUfunction kernel) {
  enum { LOADED = 1 };
  CU_ENTER();
  CU_REQUIRE(state, CUDA_ERROR_INVALID_VALUE);
  CU_REQUIRE(px_is_kernel(kernel), CUDA_ERROR_INVALID_HANDLE);
  *state = LOADED;
  return CUDA_SUCCESS;
}

PX_API CUresult cuFuncLoad(CUfunction kernel) {
  CU_ENTER();
  return px_is_kernel(kernel) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* ---- occupancy ---- */

PX_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction kernel, int threads,
                                                                     size_t shared, unsigned flags) {
  CU_ENTER();
  CU_REQUIRE(flags <= 1, CUDA_ERROR_INVALID_VALUE);
  CU_REQUIRE(px_is_kernel(kernel), CUDA_ERROR_INVALID_HANDLE);
  return cu_result(px_occupancy(kernel, threads, shared, blocks));
}

PX_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction kernel, int threads, size_t shared) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, kernel, threads, shared, 0);
}

PX_API CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *size, CUfunction kernel, int blocks, int threads) {
  CU_ENTER();
  CU_REQUIRE(px_is_kernel(kernel), CUDA_ERROR_INVALID_HANDLE);
  return cu_result(px_dynamic_left(kernel, blocks, threads, size));
}

/* The largest block that runs: a processor has one at a time. */
PX_API CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction kernel, size_t (*shared_of)(int),
                                                          size_t shared, int limit, unsigned flags) {
  enum { WARP = 32, LARGEST = 1024 };
  int fits = 0;
  CU_REQUIRE(grid && block && limit >= 0, CUDA_ERROR_INVALID_VALUE);
  int threads = limit && limit < LARGEST ? limit : LARGEST;
  while (threads > 0 && !fits) {
    size_t bytes = shared_of ? shared_of(threads) : shared;
    CUresult error = cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&fits, kernel, threads, bytes, flags);
    CU_REQUIRE(!error, error);
    if (!fits) threads = threads > WARP ? (threads - 1) / WARP * WARP : threads - 1;
  }
  *block = threads;
  *grid = threads ? px_attribute(16) : 0;
  return CUDA_SUCCESS;
}

PX_API CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction kernel, size_t (*shared_of)(int),
                                                 size_t shared, int limit) {
  return cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, kernel, shared_of, shared, limit, 0);
}
