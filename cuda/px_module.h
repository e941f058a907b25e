/* px_module.h: loaded modules, their kernels and variables. */
#ifndef PTXEMU_CUDA_MODULE_H
#define PTXEMU_CUDA_MODULE_H
#include <pthread.h>
#include <stdbool.h>
#include "abi.h"
#include "code.h"
#include "key.h"
#include "module.h"
#include "px_live.h"
#include "server.h"
#include "start.h"

/* The hash of the sources: what another build has made is never used. */
extern const char px_build[];

/* Tiers of code, the best first; each has code of all kinds of block shapes. */
enum { PX_TIERS = 2, PX_CODES = PX_TIERS * PE_VARIANTS };

typedef struct px_module px_module;
struct px_setup;

typedef struct px_kernel {
  _Alignas(PX_HANDLE_UNIT) px_module *module;
  const char *name;
  const pe_kernel_facts *facts;
  const pe_parameter_facts *parameters;
  uint32_t dynamic_shared;  /* most that a launch may have */
  bool large_clusters;      /* clusters may have more blocks than all devices that have clusters can run */
  struct px_setup *setup;   /* of launches of old, which the driver API was told in pieces (driver/setup.c); NULL: none */
  pe_code *codes[PX_CODES]; /* by tier and kind of block shapes; NULL: not loaded */
  int64_t looked;           /* when better code was last looked for, in ms */
} px_kernel;

struct px_module {
  px_mortal mortal;
  px_image image;
  char key[PE_KEY_BYTES];      /* of the image's entry */
  char identity[PE_KEY_BYTES]; /* of the program, which that entry holds */
  pthread_mutex_t lock;        /* of the codes */
  pe_module *resident;
  px_kernel *kernels;
  uint64_t count;
  uint64_t launches; /* the address of the list of those that its kernels make; 0: they make none */
  bool checked;      /* it is in the list of the checkers (check.c) ... */
  px_module *next;   /* ... before this one */
};

/* Load an image, which must stay where it is. What is wrong is said on stderr. Kernels are handles until the module is closed, and it ends
 * when no call knows one of them any more. */
cudaError_t px_module_open(const void *data, size_t size, px_module **out);
void px_module_close(px_module *module);

/* What was wrong with the image that this thread has tried to load last; "" if nothing was. */
const char *px_module_problem(void);

/* Whether code has been made in the last ten minutes, or none ever. */
bool px_compiles_lately(void);

/* The bytes of a fat binary; 0: it is none. */
size_t px_fat_size(const void *image);

/* Whether it could be loaded. What is wrong is said on stderr. */
cudaError_t px_module_check(const void *data, size_t size);

/* Begin to load an image that is not in the cache. */
void px_module_prepare(const void *data, size_t size);

bool px_is_kernel(const px_kernel *kernel);
px_kernel *px_module_kernel(px_module *module, const char *name);

/* The address and the size of a variable: false if there is none. */
bool px_module_variable(const px_module *module, const char *name, uint64_t *address, uint64_t *size);

/* Bytes of its .const variables. */
uint64_t px_const_size(const px_module *module);

/* A kernel's code for blocks of a shape: loaded or compiled at the first call. */
cudaError_t px_kernel_code(px_kernel *kernel, const uint32_t grid[3], const uint32_t block[3], pe_code **out);

#endif
