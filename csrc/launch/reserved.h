/* reserved.h: addresses that a program reserves, and memory of files that it maps there. All functions run with pe_lock held. */
#ifndef PTXEMU_RESERVED_H
#define PTXEMU_RESERVED_H
#include <stdbool.h>
#include "host.h"

typedef struct pe_mapping {
  uint64_t start, size;
  uint32_t access; /* PE_MAP_*; 0: none */
  void *owner;
} pe_mapping;

/* In the order of their addresses, and apart from each other. */
typedef struct pe_mappings {
  pe_mapping *mapping;
  size_t count, room;
} pe_mappings;

/* The mapping that contains an address, or NULL. */
const pe_mapping *pe_mapping_at(const pe_mappings *all, uint64_t address);

/* Bytes from an address on that can be accessed, up to the first that cannot. */
uint64_t pe_mappings_reach(const pe_mappings *all, uint64_t address);

/* Whether nothing is mapped in a range. */
bool pe_mappings_spare(const pe_mappings *all, uint64_t start, uint64_t size);

/* What it says of an allocation. */
void pe_mapping_describe(const pe_mapping *mapping, pe_allocation *out);

/* ---- arena.c ---- */

pe_mappings *pe_arena_mappings(pe_arena *arena);

/* Whether a range lies within addresses that were reserved at once. */
bool pe_arena_is_reserved(const pe_arena *arena, uint64_t start, uint64_t size);

#endif
