/* module.h: a module in the memory of a device: its variables, and the handles of its surfaces, textures and samplers. */
#ifndef PTXEMU_MODULE_H
#define PTXEMU_MODULE_H
#include "entry.h"
#include "host.h"
#include "texture.h"

#pragma GCC visibility push(default)
/* CDEF BEGIN */
/* What modules live on.  Whoever owns the parts fills it, and keeps them until all modules are gone. */
typedef struct pe_device {
  pe_arena *arena;
  pe_surface_table *surfaces;
  pe_texture_table *textures;
  pe_su_policy policy;
  uint64_t stack;       /* of a thread: local memory that recursion and alloca may take, in bytes */
  uint64_t host_stack;  /* of a warp in a kernel that makes real calls */
  uint32_t workers;     /* most threads of a launch; 0: one for each CPU */
  uint32_t host_memory; /* launches may touch all memory of the process, as in pe_config */
} pe_device;

typedef struct pe_module pe_module;

/* Make the variables and handles of a module entry, which the module keeps; it has one owner. `name` is what faults call it.
 * 0, or ENOMEM, ENOTSUP (a .samplerref's initialiser); then `problem` is a text, which the thread's next call
 * may change. */
int pe_module_create(const pe_device *device, pe_entry *entry, const char *name, pe_module **module, const char **problem);

/* One more owner, and one less: with the last one, memory and handles are given back. No launch may run then. */
pe_module *pe_module_keep(pe_module *module);
void pe_module_release(pe_module *module);

/* The arena is gone, and the module's memory with it: there is nothing to give back but handles. */
void pe_module_orphan(pe_module *module);

pe_entry *pe_module_entry(const pe_module *module);
const pe_device *pe_module_device(const pe_module *module);

/* The address of a block of variables, PE_BLOCK_GLOBAL or _CONST; 0: it is empty. */
uint64_t pe_module_block(const pe_module *module, uint32_t block);

/* The handles of all opaque variables, by their index in the module: pe_config.handles. */
const uint64_t *pe_module_handles(const pe_module *module);

/* What has a name, or NULL. */
const pe_kernel_facts *pe_module_kernel(const pe_module *module, const char *name);
const pe_variable_facts *pe_module_variable(const pe_module *module, const char *name);
const pe_handle_facts *pe_module_handle(const pe_module *module, const char *name);

/* Where a position of the program lies: the number of the text, from 0, and the line, from 1. 0, or -1: nowhere. */
int pe_module_locate(const pe_module *module, uint32_t pos, uint32_t *file, uint32_t *line);
/* CDEF END */
#pragma GCC visibility pop

#endif
