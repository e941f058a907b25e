/* declared.h: what initialisers of opaque variables say (PTX ISA, "Opaque types"). */
#ifndef PTXEMU_DECLARED_H
#define PTXEMU_DECLARED_H
#include <stdbool.h>
#include "module.h"

bool pe_is_surface_type(const char *type);

/* What element `index` of a .surfref is until a surface is bound to it: `suq` answers its fields, accesses fault. */
void pe_declared_surface(const pe_entry *entry, const pe_handle_facts *handle, uint32_t index, pe_surface_desc *out);

/* The same of a .texref; an initialised .samplerref is a sampler. NULL, or why there can be no such sampler. */
const char *pe_declared_texture(const pe_entry *entry, const pe_handle_facts *handle, uint32_t index, pe_texture *out);

#endif
