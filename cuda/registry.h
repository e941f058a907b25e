/* registry.h: what nvcc's code registers before main: fat binaries, and the host's names of kernels and variables. */
#ifndef PTXEMU_CUDA_REGISTRY_H
#define PTXEMU_CUDA_REGISTRY_H
#include "px_module.h"

typedef struct px_fat px_fat;

#define PX_UNBOUND SIZE_MAX

/* What the host has an address for.  That of a managed variable is of a pointer, which is set when the module is loaded; those of the
 * references are of what says how they are read (binding.c). */
typedef enum px_symbol_kind { PX_IS_KERNEL, PX_IS_VARIABLE, PX_IS_MANAGED, PX_IS_TEXTURE, PX_IS_SURFACE } px_symbol_kind;

typedef struct px_function {
  px_fat *fat;
  const void *host;
  const char *name;
  px_symbol_kind kind;
  uint64_t size;     /* of a variable */
  bool normalized;   /* the texture's integers are read as fractions */
  size_t offset;     /* of what is bound to the texture, as the program was told it, or PX_UNBOUND */
  px_kernel *kernel; /* once it is known */
} px_function;

/* The kernel that the host knows by an address, which is also the cudaKernel_t that __cudaGetKernel gives; or that of a library. */
cudaError_t px_kernel_of(const void *function, px_kernel **out);

/* The address and the size of the variable that the host knows by an address. */
cudaError_t px_variable_of(const void *symbol, uint64_t *address, uint64_t *size);

/* The handle of the texture or surface reference that the host knows by an address, and if wanted what is known of it. */
cudaError_t px_reference_of(const void *reference, px_symbol_kind kind, uint64_t *handle, px_function **out);

/* The device starts: begin to load what is registered. */
void px_registry_prepare(void);

/* The device was reset: all modules are gone. */
void px_registry_unload(void);

#endif
