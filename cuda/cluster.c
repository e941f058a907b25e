/* cluster.c: clusters of blocks (CUDA C++ programming guide, "Thread Block Clusters"). */
#include "px_cluster.h"
#include <limits.h>
#include "checked.h"
#include "core.h"
#include "px_stream.h"
#include "registry.h"

enum { PROCESSORS = 16 }; /* a device attribute */

static uint32_t most_blocks(const px_kernel *kernel) {
  return kernel->large_clusters ? PE_MAX_CLUSTER : PE_MAX_PORTABLE_CLUSTER;
}

static const pe_entry *entry_of(const px_kernel *kernel) { return pe_module_entry(kernel->module->resident); }

static bool is_required(const px_kernel *kernel, uint64_t *extent) {
  return pe_kernel_limit(entry_of(kernel), kernel->facts, "reqnctapercluster", extent);
}

int px_check_cluster(const px_kernel *kernel, const pe_start *start) {
  char message[PE_MESSAGE_BYTES];
  return pe_check_cluster(entry_of(kernel), kernel->facts, start->grid, start->cluster, most_blocks(kernel), message);
}

/* What kernels require is in their code; how clusters are scheduled makes no difference. */
cudaError_t px_cluster_set(px_kernel *kernel, int attribute, int value) {
  if (attribute == PX_CLUSTER_POLICY) return value >= 0 && value <= 2 ? cudaSuccess : cudaErrorInvalidValue;
  if (attribute != PX_CLUSTER_NON_PORTABLE) return cudaErrorNotSupported;
  kernel->large_clusters = value != 0;
  return cudaSuccess;
}

void px_cluster_attributes(const px_kernel *kernel, cudaFuncAttributes *out) {
  uint64_t extent[3] = {0, 0, 0};
  out->clusterDimMustBeSet = pe_kernel_limit(entry_of(kernel), kernel->facts, "explicitcluster", (uint64_t[3]){0});
  out->nonPortableClusterSizeAllowed = kernel->large_clusters;
  if (!is_required(kernel, extent)) return;
  out->requiredClusterWidth = (int)extent[0];
  out->requiredClusterHeight = (int)extent[1];
  out->requiredClusterDepth = (int)extent[2];
}

static int threads_of(const px_geometry *g) {
  uint64_t threads = pe_product(pe_product(g->block.x, g->block.y), g->block.z);
  return threads < INT_MAX ? (int)threads : INT_MAX;
}

cudaError_t px_cluster_potential(px_kernel *kernel, const px_geometry *g, int *blocks) {
  uint64_t limit[3], most = most_blocks(kernel);
  int fits;
  if (!blocks) return cudaErrorInvalidValue;
  cudaError_t error = px_occupancy(kernel, threads_of(g), g->shared, &fits);
  if (error) return error;
  if (pe_kernel_limit(entry_of(kernel), kernel->facts, "maxclusterrank", limit) && limit[0] < most) most = limit[0];
  if (is_required(kernel, limit)) most = pe_product(pe_product(limit[0], limit[1]), limit[2]);
  *blocks = fits ? (int)(most < PE_MAX_CLUSTER ? most : PE_MAX_CLUSTER) : 0;
  return cudaSuccess;
}

cudaError_t px_cluster_active(px_kernel *kernel, const px_geometry *g, int *clusters) {
  const pe_start start = {.grid = {g->grid.x, g->grid.y, g->grid.z}, .cluster = {g->cluster.x, g->cluster.y, g->cluster.z}};
  int fits;
  if (!clusters) return cudaErrorInvalidValue;
  cudaError_t error = px_occupancy(kernel, threads_of(g), g->shared, &fits);
  if (!error) error = px_start_error(px_check_cluster(kernel, &start));
  if (!error) *clusters = fits * px_attribute(PROCESSORS); /* each runs all blocks of one */
  return error;
}

static cudaError_t ask(px_cluster_question *asked, int *answer, const void *function, const cudaLaunchConfig_t *config) {
  px_kernel *kernel;
  px_geometry g;
  PX_ENTER();
  PX_REQUIRE(config && (config->attrs || !config->numAttrs), cudaErrorInvalidValue);
  cudaError_t error = px_kernel_of(function, &kernel);
  if (!error) error = px_geometry_of(config, &g);
  return px_report(error ? error : asked(kernel, &g, answer));
}

PX_API cudaError_t cudaOccupancyMaxPotentialClusterSize(int *blocks, const void *function,
                                                        const cudaLaunchConfig_t *config) {
  return ask(px_cluster_potential, blocks, function, config);
}

PX_API cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, const void *function, const cudaLaunchConfig_t *config) {
  return ask(px_cluster_active, clusters, function, config);
}
