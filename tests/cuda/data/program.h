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
cudaError_t cudaImportExternalMemory(void **out, const void *what);
cudaError_t cudaStreamCreate(cudaStream_t *out);
cudaError_t cudaEventCreate(cudaEvent_t *out);
cudaError_t cudaMemsetAsync(void *memory, int value, size_t size, cudaStream_t stream);
const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);
const char *ptxemu_last_fault(void);

/* Their addresses are what the program knows kernels and variables by. */
extern char add, scale, count, empty, hello, store, limited, await, append, tally, count_down, choose, fetch, transpose, apply, absent, counter,
    factors;

/* What the program can be asked to do. */
typedef struct action {
  const char *name;
  void (*run)(void);
} action;

extern const action stream_actions[], graph_actions[], handle_actions[], mixed_actions[], ipc_actions[], choice_actions[]; /* end with a NULL name */

/* End the program if a call fails. */
void must(cudaError_t error, const char *what);
#define MUST(call) must(call, #call)

/* Launch in the default stream. */
void launch(const void *kernel, unsigned grid, unsigned x, unsigned y, void **arguments);

/* Say what a call returns. */
#define SAY(call) printf("%s\n", cudaGetErrorName(call))

/* What the host and kernels share: a flag for each kernel that waits, and digits in the order in which they come. */
typedef struct board {
  int flag[8];
  long long digits;
  int copied, set;
} board;

board *new_board(void);

/* Launch in a stream: a kernel of one thread, one that waits until a flag is raised, one that appends a digit. */
void launch_in(cudaStream_t stream, const void *kernel, void **arguments);
void await_flag(cudaStream_t stream, board *b, int number);
void append_digit(cudaStream_t stream, board *b, int digit);
void raise_flag(board *b, int number);

/* A function for streams, which appends 7 and says what waiting returns there. */
void append_here(void *data);

/* Add vectors on the device; end the program if the sum is wrong. */
void add_vectors(float bias);

#endif
