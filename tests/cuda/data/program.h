/* program.h: what the parts of this program share: its kernels, and functions of the runtime API beyond those of px_runtime.h. */
#ifndef PTXEMU_TESTS_PROGRAM_H
#define PTXEMU_TESTS_PROGRAM_H
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "px_runtime.h"

void **__cudaRegisterFatBinary(const px_fat_wrapper *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit, void *tid, void *bid,
                            dim3 *block, dim3 *grid, int *warp);
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external, size_t size, int constant,
                       int global);
cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
                             cudaStream_t stream);
cudaError_t cudaFuncSetAttribute(const void *function, int attribute, int value);
cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t size, size_t offset, int kind);
cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t size, size_t offset, int kind);
cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms *what);
cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width,
                                size_t height, int kind);
cudaError_t cudaMemcpy2DFromArray(void *to, size_t pitch, cudaArray_t from, size_t x, size_t y, size_t width, size_t height,
                                  int kind);
cudaError_t cudaMallocArray(cudaArray_t *out, const cudaChannelFormatDesc *format, size_t width, size_t height,
                            unsigned flags);
cudaError_t cudaDeviceReset(void);
cudaError_t cudaGetLastError(void);
cudaError_t cudaGraphCreate(void **graph, unsigned flags);
cudaError_t cudaStreamCreate(cudaStream_t *out);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, int mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *out, size_t *count);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cudaEventCreate(cudaEvent_t *out);
cudaError_t cudaMemsetAsync(void *memory, int value, size_t size, cudaStream_t stream);
const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);
const char *ptxemu_last_fault(void);

/* Their addresses are what the program knows kernels and variables by. */
extern char add, scale, count, empty, hello, store, limited, await, append, fetch, transpose, absent, counter, factors;

/* What the program can be asked to do. */
typedef struct action {
  const char *name;
  void (*run)(void);
} action;

extern const action stream_actions[]; /* ends with a NULL name */

/* End the program if a call fails. */
void must(cudaError_t error, const char *what);
#define MUST(call) must(call, #call)

/* Launch in the default stream. */
void launch(const void *kernel, unsigned grid, unsigned x, unsigned y, void **arguments);

/* Add vectors on the device; end the program if the sum is wrong. */
void add_vectors(float bias);

#endif
