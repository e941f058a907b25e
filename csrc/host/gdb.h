/* gdb.h: what gdb is told of compiled kernels. */
#ifndef PTXEMU_GDB_H
#define PTXEMU_GDB_H
#include <stdint.h>

#pragma GCC visibility push(default)
/* CDEF BEGIN */
/* Tell gdb, if it is attached or attaches later, of code that it finds by an ELF object, whose functions are in its first section of
 * code, which lies at an address. The object is copied, and remains known as long as the process lives: 0; ENOEXEC: it is none that
 * our compiler makes; ENOMEM. */
int pe_gdb_tell(const void *object, uint64_t size, uint64_t address);
/* CDEF END */
#pragma GCC visibility pop

#endif
