/* px_launch.h: launches of kernels whose module is loaded. */
#ifndef PTXEMU_CUDA_LAUNCH_H
#define PTXEMU_CUDA_LAUNCH_H
#include <stdbool.h>
#include "px_module.h"

typedef struct px_geometry {
  dim3 grid, block;
  size_t shared; /* dynamic, in bytes */
  cudaStream_t stream;
  bool cooperative;
  bool host_memory;   /* the kernel may touch all memory of the process */
  const void *handle; /* what the program calls the kernel */
  dim3 cluster;       /* blocks of one; 0: as the kernel requires, or 1 */
} px_geometry;

/* Launch in the order of the stream; `arguments` points to the value of each parameter. A fault is said, and is the error that stays. */
cudaError_t px_launch(px_kernel *kernel, const px_geometry *geometry, void *const *arguments);

/* What is to be launched, with arguments in either form. */
cudaError_t px_launch_prepare(px_kernel *kernel, const px_geometry *geometry, void *const *arguments, const void *buffer,
                              pe_start *out);

struct px_work;

/* The same as work. */
cudaError_t px_launch_work(px_kernel *kernel, const px_geometry *geometry, void *const *arguments, struct px_work **out);

/* What `extra` of the driver API's launches holds: pairs of one of these and a pointer, up to the end. */
enum { PX_EXTRA_END, PX_EXTRA_BUFFER, PX_EXTRA_SIZE };

/* Where the arguments lie in a buffer, as `extra` of the driver API's launches says. The caller frees the array. */
cudaError_t px_places(const px_kernel *kernel, void **extra, void ***out);

struct px_content;

/* A node of a graph that launches a kernel with arguments in either form. */
cudaError_t px_kernel_content(px_kernel *kernel, const px_geometry *geometry, void **arguments, void **extra,
                              struct px_content *out);

/* What launch attributes ask for; and all of a launch. */
cudaError_t px_geometry_of(const cudaLaunchConfig_t *config, px_geometry *geometry);
cudaError_t px_apply(const cudaLaunchAttribute *attributes, unsigned count, px_geometry *geometry);

/* Attributes of kernels, and what occupancy they have. */
cudaError_t px_kernel_attributes(px_kernel *kernel, cudaFuncAttributes *out);
cudaError_t px_kernel_set(px_kernel *kernel, int attribute, int value);
cudaError_t px_occupancy(px_kernel *kernel, int threads, size_t shared, int *blocks);
cudaError_t px_dynamic_left(px_kernel *kernel, int blocks, int threads, size_t *size);

#endif
