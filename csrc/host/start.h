/* start.h: launches of a module's kernels. */
#ifndef PTXEMU_START_H
#define PTXEMU_START_H
#include "code.h"
#include "module.h"

#pragma GCC visibility push(default)
/* CDEF BEGIN */
/* The code of a kernel entry, linked; it has one owner. 0, or ENOEXEC, ENOMEM; then `problem` is a constant text. */
int pe_code_load(pe_entry *entry, pe_code **code, const char **problem);

/* What that entry says of it; NULL for code that was linked alone. */
const pe_code_facts *pe_code_facts_of(const pe_code *code);

/* The object that it was linked from; NULL for code that was linked alone. */
const void *pe_code_object(const pe_code *code, uint64_t *size);

/* What is to be launched.  Everything is the caller's again when a function of this header returns: a launch has its own copy of the
 * arguments and is an owner of module and code until it is destroyed. */
typedef struct pe_start {
  pe_module *module;
  const pe_kernel_facts *kernel;
  pe_code *code;
  const pe_code_facts *facts; /* NULL: those of the entry that the code was loaded from */
  uint32_t grid[3], block[3];
  uint32_t cluster[3];         /* blocks of one in each dimension; 0: as the kernel requires, or 1 */
  uint32_t cooperative;        /* all blocks may wait for each other */
  uint32_t host_memory;        /* as in pe_config; or the device says so */
  uint32_t joins;              /* as in pe_config */
  uint64_t dynamic_shared;     /* bytes */
  const void *const *pointers; /* to the value of each parameter; or NULL, then they lie in ... */
  const void *buffer;          /* ... buffer_size bytes, at least param_bytes, as the kernel sees them */
  uint64_t buffer_size;
  pe_su_context *surfaces; /* where accesses are counted, until the launch has ended; NULL: nobody wants to know */
  void (*ended)(void *context, pe_launch *launch); /* as in pe_config, all three */
  void *context;
  uint32_t *over;
} pe_start;

enum { PE_MESSAGE_BYTES = 1024 };

/* What grids and blocks may be, in x, y and z; and the threads of a block. */
enum { PE_MAX_GRID_X = 0x7fffffff, PE_MAX_GRID_YZ = 65535, PE_MAX_BLOCK_XY = 1024, PE_MAX_BLOCK_Z = 64 };
enum { PE_COMMON_BLOCK = 256 }; /* threads of a block whose code serves most launches: it is made first */

/* A limit of a kernel ("maxntid", "reqntid" ...), with 1 for the extents that its directive does not give; 0: there is none. */
int pe_kernel_limit(const pe_entry *entry, const pe_kernel_facts *kernel, const char *name, uint64_t *extent);

/* Whether a kernel of an entry takes such a grid and block, by the limits of devices and its own. 0, or EINVAL, or ERANGE for more
 * threads than its .maxntid; then `message`, PE_MESSAGE_BYTES large, says what is wrong. */
int pe_check_shape(const pe_entry *entry, const pe_kernel_facts *kernel, const uint32_t *grid, const uint32_t *block,
                   char *message);

/* Whether the extents of a kernel's grid are counts of clusters (.blocksareclusters). */
int pe_counts_clusters(const pe_entry *entry, const pe_kernel_facts *kernel);

/* The extents of clusters: as given, or as the kernel requires them if none is, or 1. */
void pe_cluster_extent(const pe_entry *entry, const pe_kernel_facts *kernel, const uint32_t *given, uint32_t *cluster);

/* Check these: 0, or EDOM: they have more than `most` blocks, the kernel requires others, or they do not make up the grid. */
int pe_check_cluster(const pe_entry *entry, const pe_kernel_facts *kernel, const uint32_t *grid, const uint32_t *given,
                     uint32_t most, char *message);

/* The same of shared memory: 0, or ENOSPC. */
int pe_check_shared(const pe_entry *entry, const pe_kernel_facts *kernel, uint64_t static_shared, uint64_t dynamic_shared,
                    char *message);

/* What pe_launch_start takes for it, for those who launch in another way: nothing is checked, nothing is owned, and `params` are the
 * buffer.  Code may be missing, if there are facts; then `kernel` is 0. */
void pe_start_config(const pe_start *start, pe_config *config);

/* Check everything that can be before the start: 0, or what the checks above say of a kernel, EFAULT for arguments that are missing;
 * then `message` says what is wrong. */
int pe_start_check(const pe_start *start, char *message);

/* Write what the pointers point to, which has been checked, as the kernel sees it: param_bytes. */
void pe_start_pack(const pe_start *start, void *params);

/* Whether it is best for a caller that need not wait to join: all is done soon, there is no other CPU, or the thread is one of the
 * pool. */
int pe_start_should_join(const pe_start *start);

/* Check everything, and start on the pool's threads. 0, or as pe_start_check, or as pe_launch_start: ENOMEM, E2BIG, EAGAIN; then
 * `message` says what is wrong. */
int pe_start_launch(const pe_start *start, pe_launch **launch, char *message);

/* What pe_start_launch has started a launch of; NULL for any other launch. */
const pe_module *pe_launch_module(const pe_launch *launch);
const pe_kernel_facts *pe_launch_kernel(const pe_launch *launch);
/* CDEF END */
#pragma GCC visibility pop

#endif
