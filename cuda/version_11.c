/* version_11.c: what CUDA 11 has otherwise than CUDA 12. Its texture and surface references are in binding.c.
 * The functions that follow have the names, but not the parameters that they have in px_runtime.h. */
#include "core.h"

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **out, unsigned version, unsigned long long flags,
                                             int *status);
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags);
cudaError_t px_tell_version(int *version, int own);

enum { VERSION = 11080 };

PX_API cudaError_t cudaRuntimeGetVersion(int *version) { return px_tell_version(version, VERSION); }

PX_API cudaError_t cudaGetDriverEntryPoint(const char *name, void **out, unsigned long long flags) {
  return cudaGetDriverEntryPointByVersion(name, out, VERSION, flags, NULL);
}

/* ---- structures that have grown since ---- */

cudaError_t px_properties_of_11(void *out, int number);
PX_API cudaError_t cudaGetDeviceProperties(void *out, int number) { return px_properties_of_11(out, number); }

cudaError_t px_function_attributes_of_11(void *out, const void *function);
PX_API cudaError_t cudaFuncGetAttributes(void *out, const void *function) {
  return px_function_attributes_of_11(out, function);
}

cudaError_t px_texture_object_of_11(cudaTextureObject_t *out, const cudaResourceDesc *resource, const void *wanted,
                                    const cudaResourceViewDesc *view);
PX_API cudaError_t cudaCreateTextureObject(cudaTextureObject_t *out, const cudaResourceDesc *resource, const void *wanted,
                                           const cudaResourceViewDesc *view) {
  return px_texture_object_of_11(out, resource, wanted, view);
}

/* ---- graphs ---- */

/* There is nothing to log. */
PX_API cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, cudaGraphNode_t *node, char *log,
                                        size_t size) {
  if (node) *node = NULL;
  if (log && size) *log = 0;
  return cudaGraphInstantiateWithFlags(out, graph, 0);
}

cudaError_t px_graph_update_of_11(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphNode_t *node, int *result);
PX_API cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphNode_t *node, int *result) {
  return px_graph_update_of_11(exec, graph, node, result);
}
