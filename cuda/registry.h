/* registry.h: what nvcc's code registers before main: fat binaries, and the host's names of kernels and variables. */
#ifndef PTXEMU_CUDA_REGISTRY_H
#define PTXEMU_CUDA_REGISTRY_H
#include "px_module.h"

typedef struct px_fat px_fat;

/* A kernel or a variable, by the address that the host has for it. */
typedef struct px_function {
  px_fat *fat;
  const void *host;
  const char *name;
  uint64_t size; /* of a variable */
  bool variable;
  bool managed;      /* `host` is the address of a pointer, which is set when the module is loaded */
  px_kernel *kernel; /* once it is known */
} px_function;

/* The kernel that the host knows by an address, which is also the cudaKernel_t that __cudaGetKernel gives; or that of a library. */
cudaError_t px_kernel_of(const void *function, px_kernel **out);

/* The address and the size of the variable that the host knows by an address. */
cudaError_t px_variable_of(const void *symbol, uint64_t *address, uint64_t *size);

/* The device starts: begin to load what is registered. */
void px_registry_prepare(void);

/* The device was reset: all modules are gone. */
void px_registry_unload(void);

#endif
