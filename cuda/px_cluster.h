/* px_cluster.h: clusters of blocks: what kernels require and allow, and how many there can be. */
#ifndef PTXEMU_CUDA_CLUSTER_H
#define PTXEMU_CUDA_CLUSTER_H
#include "px_launch.h"

/* Attributes of kernels. */
enum {
  PX_CLUSTER_MUST_BE_SET = 10,
  PX_CLUSTER_WIDTH,
  PX_CLUSTER_HEIGHT,
  PX_CLUSTER_DEPTH,
  PX_CLUSTER_NON_PORTABLE,
  PX_CLUSTER_POLICY
};

/* Whether a kernel takes the clusters of a launch: 0, or EDOM. */
int px_check_cluster(const px_kernel *kernel, const pe_start *start);

cudaError_t px_cluster_set(px_kernel *kernel, int attribute, int value);
void px_cluster_attributes(const px_kernel *kernel, cudaFuncAttributes *out);

/* Questions of occupancy: the blocks of the largest cluster, and how many clusters can run at a time. */
typedef cudaError_t px_cluster_question(px_kernel *kernel, const px_geometry *geometry, int *answer);
px_cluster_question px_cluster_potential, px_cluster_active;

#endif
