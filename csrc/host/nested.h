/* nested.h: launches that kernels have made (CUDA C++ Programming Guide, "CUDA Dynamic Parallelism").
 *
 * A grid leaves them in a list in device memory (ptxemu/driver/device_runtime.py). Whoever has launched it does them behind it, one after
 * another, each with all that it has launched itself, those for the tail last. What is in device memory kernels may have spoiled.
 */
#ifndef PTXEMU_NESTED_H
#define PTXEMU_NESTED_H
#include "module.h"

#pragma GCC visibility push(default)
/* CDEF BEGIN */
/* How a launch begins in device memory; the arguments follow. */
typedef struct pe_child_head {
  uint64_t next, kernel, grid_id, stream;
  uint32_t grid[3], block[3], shared, unused;
} pe_child_head;

typedef struct pe_child {
  struct pe_child *next;
  uint64_t room; /* bytes of the arguments: as many as any kernel of the module has, or more */
  pe_child_head head;
  uint8_t arguments[];
} pe_child;

/* The address of the list in which kernels of a module leave launches; 0: they make none. The device runtime is told how many bytes
 * their arguments may take. */
uint64_t pe_children_list(const pe_module *module);

/* What a grid has left in a list when it has ended, in the order in which it is to be done; NULL: nothing. Each is the caller's. */
pe_child *pe_children_collect(pe_arena *arena, uint64_t list, uint64_t grid_id);
void pe_child_free(pe_child *child);

/* The kernel that is launched; NULL: the module has none such, or its arguments are not all there. */
const pe_kernel_facts *pe_child_kernel(const pe_module *module, const pe_child *child);
/* CDEF END */
#pragma GCC visibility pop

#endif
