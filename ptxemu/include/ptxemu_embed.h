/* ptxemu_embed.h: runs PTX on the CPU, from C and C++.
 *
 *   cc -I"$(ptxemu cuda --print-include)" program.c -L"$(ptxemu cuda --print-path)" -lptxemu_embed \
 *      -Wl,-rpath,"$(ptxemu cuda --print-path)"
 *
 * A process has one device. Its memory is a sandbox: whatever a kernel does, it reads and writes that memory and nothing else, and ends,
 * or is stopped with a text that names kernel and line. Device pointers are pointers of the program, too, so that nothing needs to be
 * copied. Kernels are compiled once, by a Python with ptxemu in a process of its own, and kept in the user's cache.
 *
 * All functions may be called from several threads. Those that return a status say in words what was wrong by ptxemu_problem.
 */
#ifndef PTXEMU_EMBED_H
#define PTXEMU_EMBED_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

enum { PTXEMU_EMBED_VERSION = 1 };

typedef enum ptxemu_status {
  PTXEMU_OK,
  PTXEMU_INVALID,     /* an argument of the function is wrong, or a launch that the kernel or devices do not take */
  PTXEMU_BAD_PTX,     /* the text has errors, all of which ptxemu_problem names */
  PTXEMU_UNSUPPORTED, /* the text is right, but ptxemu cannot run it */
  PTXEMU_NOT_FOUND,   /* the module has nothing of that name */
  PTXEMU_NO_MEMORY,   /* the device's, or the host's */
  PTXEMU_FAULT,       /* a kernel has done something wrong. The device and its modules stay as they are */
  PTXEMU_TIMEOUT,     /* a kernel was stopped */
  PTXEMU_FAILED       /* the device or the compiler cannot be started */
} ptxemu_status;

/* What the device is to be; zeros are the defaults. */
typedef struct ptxemu_options {
  size_t size;      /* of this structure */
  uint64_t memory;  /* bytes that the device has; 0: half of the machine's memory */
  unsigned arch;    /* compute capability, 75 to 121; 0: 80 */
  unsigned workers; /* most threads of a launch; 0: one for each CPU */
  int host_memory; /* not 0: kernels may touch all memory of the process. A wild pointer is a fault only if nothing is there */
  int cuda_guard; /* not 0: the 64 KiB around each allocation can be touched, as on a GPU; else running past its end is a fault */
  void (*print)(void *context, const char *text,
                size_t bytes); /* what kernels print; NULL: to stdout. Called by ptxemu_launch */
  void *context;
  const char *
      like; /* whose results kernels get where PTX leaves bits open: "sm_89" and so on, or "exact"; NULL: those of each text's
                     * .target. Without `arch`, an architecture is the compute capability, too. Later than the fields before it */
} ptxemu_options;

/* Start the device with options other than the defaults. PTXEMU_INVALID if it has been started, as any other function does. */
ptxemu_status ptxemu_open(const ptxemu_options *options);

/* What was wrong when the thread's last call failed; until its next call. Never NULL. */
const char *ptxemu_problem(void);

/* Zeroed memory of the device, aligned to 512 bytes; NULL: there is not enough. */
void *ptxemu_alloc(size_t bytes);

/* Give memory back that no launch uses; NULL is fine. */
ptxemu_status ptxemu_free(void *memory);

typedef struct ptxemu_module ptxemu_module;
typedef struct ptxemu_kernel ptxemu_kernel;

/* A module of a text of PTX, or of a fat binary of nvcc. The text is copied. */
ptxemu_status ptxemu_load(const void *ptx, size_t bytes, ptxemu_module **module);

/* Forget a module with its kernels and variables, which no launch uses; NULL is fine. */
void ptxemu_unload(ptxemu_module *module);

/* A kernel by its name, as long as the module lives. */
ptxemu_status ptxemu_find(ptxemu_module *module, const char *name, ptxemu_kernel **kernel);

/* A .global or .const variable: where it lies, and its bytes. */
ptxemu_status ptxemu_variable(ptxemu_module *module, const char *name, void **address, size_t *bytes);

typedef struct ptxemu_shape {
  unsigned grid[3], block[3]; /* 0 is as 1 */
  size_t shared;              /* bytes of dynamic shared memory */
  int cooperative;            /* not 0: all blocks may wait for each other */
  unsigned timeout_ms;        /* after which the launch is stopped; 0: never */
} ptxemu_shape;

/* Launch a kernel and wait for its end. `arguments` points to the value of each parameter, in their order; NULL if there are none. */
ptxemu_status ptxemu_launch(ptxemu_kernel *kernel, const ptxemu_shape *shape, const void *const *arguments);

/* The same in clusters of blocks that share their shared memory: so many along each dimension of the grid, 16 together at most. 0 is as 1;
 * NULL: as the kernel requires. Later than the functions before it. */
ptxemu_status ptxemu_launch_clusters(ptxemu_kernel *kernel, const ptxemu_shape *shape, const unsigned cluster[3],
                                     const void *const *arguments);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
