/* px_runtime.h: functions of the runtime API that others of these libraries call. */
#ifndef PTXEMU_CUDA_PX_RUNTIME_H
#define PTXEMU_CUDA_PX_RUNTIME_H
#include "abi.h"

/* ---- array.c ---- */

cudaError_t cudaFreeArray(cudaArray_t array);
cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t mipmap);
cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t *out, cudaMipmappedArray_t mipmap, unsigned level);
cudaError_t cudaMalloc3DArray(cudaArray_t *out, const cudaChannelFormatDesc *format, cudaExtent extent, unsigned flags);
cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *out, const cudaChannelFormatDesc *format, cudaExtent extent,
                                     unsigned levels, unsigned flags);

/* ---- attribute.c ---- */

cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t to, cudaGraphNode_t from);
cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t node, int id, cudaLaunchAttributeValue *value);
cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, int id, const cudaLaunchAttributeValue *value);

/* ---- capture.c ---- */

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, int mode);
cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *before,
                                          const cudaGraphEdgeData *data, size_t count, int mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out);
cudaError_t cudaStreamGetCaptureInfo_v3(cudaStream_t stream, int *status, unsigned long long *id, cudaGraph_t *graph,
                                        const cudaGraphNode_t **nodes, const cudaGraphEdgeData **data, size_t *count);
cudaError_t cudaStreamUpdateCaptureDependencies_v2(cudaStream_t stream, cudaGraphNode_t *nodes,
                                                   const cudaGraphEdgeData *data, size_t count, unsigned flags);
cudaError_t cudaThreadExchangeStreamCaptureMode(int *mode);

/* ---- copy.c ---- */

cudaError_t cudaMemcpy(void *to, const void *from, size_t size, int kind);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, int kind, cudaStream_t stream);

/* ---- draw.c ---- */

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path, unsigned flags);

/* ---- error.c ---- */

const char *cudaGetErrorName(cudaError_t error);

/* ---- exec.c ---- */

cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long *flags);
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *info);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t *out, cudaGraph_t graph, cudaGraphInstantiateParams *params);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned *enabled);
cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned enabled);
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream);

/* ---- graph.c ---- */

cudaError_t cudaGraphAddDependencies_v2(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                        const cudaGraphEdgeData *data, size_t count);
cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t *out);
cudaError_t cudaGraphClone(cudaGraph_t *out, cudaGraph_t graph);
cudaError_t cudaGraphCreate(cudaGraph_t *out, unsigned flags);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node);
cudaError_t cudaGraphGetEdges_v2(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to, cudaGraphEdgeData *data,
                                 size_t *count);
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count);
cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count);
cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t *out, cudaGraphNode_t node, cudaGraph_t clone);
cudaError_t cudaGraphNodeGetDependencies_v2(cudaGraphNode_t node, cudaGraphNode_t *nodes, cudaGraphEdgeData *data,
                                            size_t *count);
cudaError_t cudaGraphNodeGetDependentNodes_v2(cudaGraphNode_t node, cudaGraphNode_t *nodes, cudaGraphEdgeData *data,
                                              size_t *count);
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, int *type);
cudaError_t cudaGraphRemoveDependencies_v2(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                           const cudaGraphEdgeData *data, size_t count);

/* ---- block.c, memory_node.c ---- */

cudaError_t cudaDeviceGetGraphMemAttribute(int number, int attribute, void *value);
cudaError_t cudaDeviceGraphMemTrim(int number);
cudaError_t cudaDeviceSetGraphMemAttribute(int number, int attribute, void *value);
cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,
                                     cudaMemAllocNodeParams *what);
cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,
                                    void *address);
cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node, cudaMemAllocNodeParams *what);
cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void *out);

/* ---- condition.c ---- */

cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *handle, cudaGraph_t graph, unsigned value,
                                             unsigned flags);

/* ---- memory.c ---- */

cudaError_t cudaFree(void *pointer);
cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream);
cudaError_t cudaFreeHost(void *pointer);
cudaError_t cudaHostAlloc(void **pointer, size_t size, unsigned flags);
cudaError_t cudaHostGetDevicePointer(void **out, void *host, unsigned flags);
cudaError_t cudaHostGetFlags(unsigned *flags, void *host);
cudaError_t cudaMalloc(void **pointer, size_t size);
cudaError_t cudaMallocAsync(void **pointer, size_t size, cudaStream_t stream);
cudaError_t cudaMallocHost(void **pointer, size_t size);
cudaError_t cudaMallocManaged(void **pointer, size_t size, unsigned flags);
cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height);
cudaError_t cudaMemAdvise_v2(const void *pointer, size_t size, int advice, cudaMemLocation location);
cudaError_t cudaMemGetInfo(size_t *unused, size_t *total);
cudaError_t cudaMemPrefetchAsync_v2(const void *pointer, size_t size, cudaMemLocation location, unsigned flags,
                                    cudaStream_t stream);
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *out, const void *pointer);
cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void *pointer, size_t size, unsigned flags);

/* ---- node.c ---- */

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,
                                       cudaGraph_t child);
cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count);
cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,
                                        cudaEvent_t event);
cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,
                                      cudaEvent_t event);
cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,
                                 const cudaHostNodeParams *what);
cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,
                                   const cudaKernelNodeParams *what);
cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,
                                   const cudaMemcpy3DParms *what);
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,
                                     void *to, const void *from, size_t size, int kind);
cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *before,
                                             size_t count, void *to, const void *symbol, size_t size, size_t offset,
                                             int kind);
cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *before,
                                           size_t count, const void *symbol, const void *from, size_t size, size_t offset,
                                           int kind);
cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *before, size_t count,
                                   const cudaMemsetParams *what);
cudaError_t cudaGraphAddNode_v2(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *before,
                                const cudaGraphEdgeData *data, size_t count, cudaGraphNodeParams *what);
cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event);
cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event);
cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event);
cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event);
cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event);
cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event);
cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, const cudaHostNodeParams *what);
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, const cudaKernelNodeParams *what);
cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, const cudaMemcpy3DParms *what);
cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void *to, const void *from,
                                               size_t size, int kind);
cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t exec, cudaGraphNode_t node, void *to,
                                                       const void *symbol, size_t size, size_t offset, int kind);
cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t exec, cudaGraphNode_t node, const void *symbol,
                                                     const void *from, size_t size, size_t offset, int kind);
cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, const cudaMemsetParams *what);
cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraphNodeParams *what);
cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, cudaHostNodeParams *what);
cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const cudaHostNodeParams *what);
cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams *what);
cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams *what);
cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms *what);
cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms *what);
cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *to, const void *from, size_t size, int kind);
cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void *to, const void *symbol, size_t size,
                                                   size_t offset, int kind);
cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void *symbol, const void *from, size_t size,
                                                 size_t offset, int kind);
cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, cudaMemsetParams *what);
cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams *what);
cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, cudaGraphNodeParams *what);

/* ---- object.c ---- */

cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t *out, const cudaResourceDesc *resource);
cudaError_t cudaCreateTextureObject(cudaTextureObject_t *out, const cudaResourceDesc *resource,
                                    const cudaTextureDesc *wanted, const cudaResourceViewDesc *view);
cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t object);
cudaError_t cudaDestroyTextureObject(cudaTextureObject_t object);

/* ---- pool.c, ipc_pool.c ---- */

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *out, int number);
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *out, int number);
cudaError_t cudaDeviceSetMemPool(int number, cudaMemPool_t pool);
cudaError_t cudaMallocFromPoolAsync(void **pointer, size_t size, cudaMemPool_t pool, cudaStream_t stream);
cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t *out, cudaMemLocation *location, int type);
cudaError_t cudaMemGetMemPool(cudaMemPool_t *out, cudaMemLocation *location, int type);
cudaError_t cudaMemPoolCreate(cudaMemPool_t *out, const cudaMemPoolProps *properties);
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool);
cudaError_t cudaMemPoolExportPointer(cudaMemPoolPtrExportData *out, void *pointer);
cudaError_t cudaMemPoolExportToShareableHandle(void *out, cudaMemPool_t pool, int type, unsigned flags);
cudaError_t cudaMemPoolGetAccess(int *out, cudaMemPool_t pool, const cudaMemLocation *location);
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, int attribute, void *value);
cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t *out, void *handle, int type, unsigned flags);
cudaError_t cudaMemPoolImportPointer(void **out, cudaMemPool_t pool, cudaMemPoolPtrExportData *data);
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc *wanted, size_t number);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, int attribute, void *value);
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep);
cudaError_t cudaMemSetMemPool(cudaMemLocation *location, int type, cudaMemPool_t pool);

/* ---- registered.c ---- */

cudaError_t cudaHostRegister(void *pointer, size_t size, unsigned flags);
cudaError_t cudaHostUnregister(void *pointer);

/* ---- runtime.c ---- */

cudaError_t cudaDeviceCanAccessPeer(int *can, int number, int peer);
cudaError_t cudaDeviceGetByPCIBusId(int *number, const char *text);
cudaError_t cudaDeviceGetCacheConfig(int *config);
cudaError_t cudaDeviceGetLimit(size_t *value, int limit);
cudaError_t cudaDeviceGetPCIBusId(char *text, int size, int number);
cudaError_t cudaDeviceSetCacheConfig(int config);
cudaError_t cudaDeviceSetLimit(int limit, size_t value);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t px_tell_version(int *version, int own);

/* ---- driver/symbol.c ---- */

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **out, unsigned version, unsigned long long flags,
                                             int *status);

/* ---- stream.c ---- */

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags);
cudaError_t cudaIpcCloseMemHandle(void *pointer);
cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *out, cudaEvent_t event);
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *out, void *pointer);
cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *out, cudaIpcEventHandle_t handle);
cudaError_t cudaIpcOpenMemHandle(void **out, cudaIpcMemHandle_t handle, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data);
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function, void *data, unsigned flags);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags, int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned *flags);
cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id);
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, int *status);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);

const char *cudaGetErrorString(cudaError_t error);

#endif
