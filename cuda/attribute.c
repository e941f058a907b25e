/* attribute.c: attributes of launches, and of nodes of graphs that launch. */
#include <stdlib.h>
#include <string.h>
#include "px_cluster.h"
#include "px_graph.h"
#include "px_runtime.h"

enum { WINDOW = 1, POLICY = 3, CLUSTER_POLICY = 5, SERIALIZATION = 6, CARVEOUT = 14, HINTS };

/* ---- of launches ---- */

/* Whether it changes nothing here. */
static bool is_hint(int id) {
  switch (id) {
    case cudaLaunchAttributeIgnore:
    case cudaLaunchAttributePriority:
    case WINDOW:
    case POLICY:
    case CLUSTER_POLICY:
    case SERIALIZATION:
    case CARVEOUT: return true;
    default: return false;
  }
}

static cudaError_t apply(int id, const cudaLaunchAttributeValue *value, px_geometry *g) {
  switch (id) {
    case cudaLaunchAttributeCooperative: g->cooperative = value->cooperative != 0; return cudaSuccess;
    case cudaLaunchAttributeClusterDimension:
      g->cluster = (dim3){value->clusterDim.x, value->clusterDim.y, value->clusterDim.z};
      return cudaSuccess;
    default: return is_hint(id) ? cudaSuccess : cudaErrorNotSupported;
  }
}

cudaError_t px_apply(const cudaLaunchAttribute *attributes, unsigned count, px_geometry *g) {
  cudaError_t error = cudaSuccess;
  for (unsigned i = 0; !error && i < count; i++) error = apply(attributes[i].id, &attributes[i].val, g);
  return error;
}

/* ---- of nodes, with the lock of graphs held ---- */

static bool launches(cudaGraphNode_t node) { return px_is_node(node) && node->type == cudaGraphNodeTypeKernel; }

static px_geometry geometry_of(const px_work *work) {
  const pe_start *start = &work->start;
  return (px_geometry){.cluster = {start->cluster[0], start->cluster[1], start->cluster[2]},
                       .cooperative = start->cooperative};
}

/* The launch of some work with other attributes; an error: its kernel does not take them. */
static cudaError_t changed(const px_work *work, const px_geometry *g, pe_start *out) {
  *out = work->start;
  out->cooperative = g->cooperative;
  memcpy(out->cluster, (uint32_t[3]){g->cluster.x, g->cluster.y, g->cluster.z}, sizeof out->cluster);
  if (!px_is_kernel(work->kernel)) return cudaErrorInvalidDeviceFunction;
  return px_start_error(px_check_cluster(work->kernel, out));
}

cudaError_t px_keep_attributes(const px_work *old, px_work *new) {
  if (!old || old->kind != PX_LAUNCH) return cudaSuccess;
  px_geometry g = geometry_of(old);
  pe_start start;
  cudaError_t error = changed(new, &g, &start);
  if (!error) new->start = start;
  return error;
}

/* Work does not change: the node gets a copy. */
static cudaError_t change(struct px_node *node, const px_geometry *g) {
  pe_start start;
  cudaError_t error = changed(node->work, g, &start);
  if (error) return error;
  px_work *made = px_work_launch(&start, node->work->kernel, node->work->handle);
  if (!made) return cudaErrorMemoryAllocation;
  px_node_give(node, made);
  return cudaSuccess;
}

static bool have_hints(struct px_node *node) {
  if (!node->hints) node->hints = calloc(HINTS, sizeof *node->hints);
  return node->hints != NULL;
}

bool px_copy_hints(struct px_node *to, const struct px_node *from) {
  if (!from->hints) return true;
  if (!have_hints(to)) return false;
  memcpy(to->hints, from->hints, HINTS * sizeof *to->hints);
  return true;
}

/* ---- the API ---- */

PX_API cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, int id, const cudaLaunchAttributeValue *value) {
  ENTER_GRAPH(launches(node) && value);
  px_geometry g = geometry_of(node->work);
  cudaError_t error = apply(id, value, &g);
  if (error || !is_hint(id)) LEAVE(error ? error : change(node, &g));
  if (!have_hints(node)) LEAVE(cudaErrorMemoryAllocation);
  node->hints[id] = *value;
  LEAVE(cudaSuccess);
}

PX_API cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t node, int id, cudaLaunchAttributeValue *value) {
  ENTER_GRAPH(launches(node) && value);
  px_geometry g = geometry_of(node->work);
  cudaError_t error = apply(id, &(cudaLaunchAttributeValue){0}, &(px_geometry){0});
  if (error) LEAVE(error);
  *value = is_hint(id) && node->hints ? node->hints[id] : (cudaLaunchAttributeValue){0};
  if (id == cudaLaunchAttributeCooperative) value->cooperative = g.cooperative;
  if (id == cudaLaunchAttributeClusterDimension) memcpy(&value->clusterDim, &g.cluster, sizeof g.cluster);
  LEAVE(cudaSuccess);
}

PX_API cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t to, cudaGraphNode_t from) {
  ENTER_GRAPH(launches(to) && launches(from));
  px_geometry g = geometry_of(from->work);
  if (!px_copy_hints(to, from)) LEAVE(cudaErrorMemoryAllocation);
  LEAVE(change(to, &g));
}
