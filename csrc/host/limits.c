/* limits.c: what grids, blocks and shared memory may be (CUDA programming guide, "Compute Capabilities"; PTX ISA, "Performance-Tuning
 * Directives"). */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "checked.h"
#include "start.h"

#define MAX_THREADS 1024

static const uint32_t MAX_GRID[3] = {PE_MAX_GRID_X, PE_MAX_GRID_YZ, PE_MAX_GRID_YZ};
static const uint32_t MAX_BLOCK[3] = {PE_MAX_BLOCK_XY, PE_MAX_BLOCK_XY, PE_MAX_BLOCK_Z};

#define REFUSE(error, message, ...) (snprintf(message, PE_MESSAGE_BYTES, __VA_ARGS__), error)

static const char *name_of(const pe_entry *entry, const pe_kernel_facts *kernel) {
  return pe_entry_text(entry, kernel->plain_name);
}

int pe_kernel_limit(const pe_entry *entry, const pe_kernel_facts *kernel, const char *name, uint64_t *extent) {
  uint64_t count;
  const pe_limit_facts *limits = pe_entry_section(entry, PE_SECTION_LIMITS, &count);
  for (uint32_t i = kernel->limit; i < kernel->limit + kernel->limits; i++) {
    if (strcmp(pe_entry_text(entry, limits[i].name), name) != 0) continue;
    for (uint32_t axis = 0; axis < 3; axis++) extent[axis] = axis < limits[i].count ? limits[i].value[axis] : 1;
    return 1;
  }
  return 0;
}

static int check_extents(const char *what, const uint32_t *extent, const uint32_t *most, char *message) {
  for (int axis = 0; axis < 3; axis++)
    if (extent[axis] < 1 || extent[axis] > most[axis])
      return REFUSE(EINVAL, message, "%s.%c must be 1 to %u, not %u", what, "xyz"[axis], most[axis], extent[axis]);
  return 0;
}

static int check_directives(const pe_entry *entry, const pe_kernel_facts *kernel, const uint32_t *block, char *message) {
  uint64_t limit[3], threads = (uint64_t)block[0] * block[1] * block[2];
  const char *name = name_of(entry, kernel);
  if (pe_kernel_limit(entry, kernel, "reqntid", limit) &&
      (limit[0] != block[0] || limit[1] != block[1] || limit[2] != block[2]))
    return REFUSE(EINVAL, message, "kernel %s requires block %llu x %llu x %llu (.reqntid), not %u x %u x %u", name,
                  (unsigned long long)limit[0], (unsigned long long)limit[1], (unsigned long long)limit[2], block[0],
                  block[1], block[2]);
  if (!pe_kernel_limit(entry, kernel, "maxntid", limit)) return 0;
  uint64_t most = pe_product(pe_product(limit[0], limit[1]), limit[2]);
  if (threads <= most) return 0;
  return REFUSE(ERANGE, message, "kernel %s takes at most %llu threads (.maxntid), not %llu", name, (unsigned long long)most,
                (unsigned long long)threads);
}

/* A program of points works on all of its domain, which has two dimensions; without extents the grid is the domain. */
static int check_domain(const pe_entry *entry, const pe_kernel_facts *kernel, const uint32_t *grid, const uint32_t *block,
                        char *message) {
  uint64_t domain[3], x = (uint64_t)grid[0] * block[0], y = (uint64_t)grid[1] * block[1];
  const char *name = name_of(entry, kernel);
  if (!pe_kernel_limit(entry, kernel, "domain", domain)) return 0;
  if ((uint64_t)grid[2] * block[2] > 1)
    return REFUSE(EINVAL, message, "kernel %s works on points (x, y): z of grid and block must be 1", name);
  if (x >= domain[0] && y >= domain[1]) return 0;
  return REFUSE(EINVAL, message, "kernel %s works on %llu x %llu points (.domain), more than the %llu x %llu threads", name,
                (unsigned long long)domain[0], (unsigned long long)domain[1], (unsigned long long)x, (unsigned long long)y);
}

int pe_check_shape(const pe_entry *entry, const pe_kernel_facts *kernel, const uint32_t *grid, const uint32_t *block,
                   char *message) {
  int error = check_extents("grid", grid, MAX_GRID, message);
  if (!error) error = check_extents("block", block, MAX_BLOCK, message);
  if (error) return error;
  uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
  if (threads > MAX_THREADS)
    return REFUSE(EINVAL, message, "block %u x %u x %u has %llu threads; the limit is %d", block[0], block[1], block[2],
                  (unsigned long long)threads, MAX_THREADS);
  error = check_directives(entry, kernel, block, message);
  return error ? error : check_domain(entry, kernel, grid, block, message);
}

/* Clusters that are not those that the kernel has been written for. */
static int check_required(const pe_entry *entry, const pe_kernel_facts *kernel, const uint32_t *cluster, char *message) {
  uint64_t limit[3], blocks = pe_product(pe_product(cluster[0], cluster[1]), cluster[2]);
  const char *name = name_of(entry, kernel);
  if (pe_kernel_limit(entry, kernel, "reqnctapercluster", limit) &&
      (limit[0] != cluster[0] || limit[1] != cluster[1] || limit[2] != cluster[2]))
    return REFUSE(EDOM, message,
                  "kernel %s requires clusters of %llu x %llu x %llu blocks (.reqnctapercluster), not %u x %u x %u", name,
                  (unsigned long long)limit[0], (unsigned long long)limit[1], (unsigned long long)limit[2], cluster[0],
                  cluster[1], cluster[2]);
  if (!pe_kernel_limit(entry, kernel, "maxclusterrank", limit) || blocks <= limit[0]) return 0;
  return REFUSE(EDOM, message, "kernel %s takes clusters of at most %llu blocks (.maxclusterrank), not %llu", name,
                (unsigned long long)limit[0], (unsigned long long)blocks);
}

int pe_counts_clusters(const pe_entry *entry, const pe_kernel_facts *kernel) {
  uint64_t none[3];
  return pe_kernel_limit(entry, kernel, "blocksareclusters", none);
}

void pe_cluster_extent(const pe_entry *entry, const pe_kernel_facts *kernel, const uint32_t *given, uint32_t *cluster) {
  uint64_t required[3] = {1, 1, 1};
  bool any = given[0] || given[1] || given[2];
  if (!any) pe_kernel_limit(entry, kernel, "reqnctapercluster", required);
  for (int axis = 0; axis < 3; axis++) {
    uint64_t extent = any ? given[axis] : required[axis];
    cluster[axis] = extent > UINT32_MAX ? UINT32_MAX : extent ? (uint32_t)extent : 1;
  }
}

int pe_check_cluster(const pe_entry *entry, const pe_kernel_facts *kernel, const uint32_t *grid, const uint32_t *given,
                     uint32_t most, char *message) {
  uint32_t cluster[3];
  pe_cluster_extent(entry, kernel, given, cluster);
  uint64_t blocks = pe_product(pe_product(cluster[0], cluster[1]), cluster[2]);
  if (blocks > most)
    return REFUSE(EDOM, message, "a cluster of %llu blocks is too large; the limit is %u", (unsigned long long)blocks, most);
  bool counted = pe_counts_clusters(entry, kernel);
  for (int axis = 0; axis < 3; axis++) {
    if (counted && (uint64_t)grid[axis] * cluster[axis] > MAX_GRID[axis])
      return REFUSE(EDOM, message, "a grid of %u clusters of %u blocks along %c is too large", grid[axis], cluster[axis],
                    "xyz"[axis]);
    if (!counted && grid[axis] % cluster[axis])
      return REFUSE(EDOM, message, "grid.%c is %u, which clusters of %u blocks do not make up", "xyz"[axis], grid[axis],
                    cluster[axis]);
  }
  return check_required(entry, kernel, cluster, message);
}

int pe_check_shared(const pe_entry *entry, const pe_kernel_facts *kernel, uint64_t static_shared, uint64_t dynamic_shared,
                    char *message) {
  if (pe_sum(static_shared, dynamic_shared) <= PE_MAX_SHARED) return 0;
  return REFUSE(ENOSPC, message, "kernel %s: %llu static + %llu dynamic bytes of shared memory are over the limit of %d",
                name_of(entry, kernel), (unsigned long long)static_shared, (unsigned long long)dynamic_shared,
                PE_MAX_SHARED);
}
