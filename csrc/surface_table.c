/* surface_table.c: handles: slots with generation tags.  Slots live in chunks that stay until the table goes, so a lookup
 * takes no lock; a slot changes only while no launch uses its handle. */
#include <stdlib.h>
#include "surface.h"

#define SLOT_BITS 20
#define SLOT_MASK ((1u << SLOT_BITS) - 1)
#define CHUNK_BITS 6
#define CHUNK_SLOTS (1u << CHUNK_BITS)

typedef struct slot {
  uint32_t tag;
  pe_surface_desc desc; /* state PE_SURFACE_INVALID: unused */
} slot;

struct pe_surface_table {
  slot *chunk[1u << (SLOT_BITS - CHUNK_BITS)];
};

pe_surface_table *pe_surface_table_new(void) { return calloc(1, sizeof(pe_surface_table)); }

void pe_surface_table_free(pe_surface_table *table) {
  if (!table) return;
  for (size_t i = 0; i < sizeof table->chunk / sizeof *table->chunk; i++) free(table->chunk[i]);
  free(table);
}

static slot *find(const pe_surface_table *table, uint32_t index) {
  slot *chunk = __atomic_load_n(&table->chunk[index >> CHUNK_BITS], __ATOMIC_ACQUIRE);
  return chunk ? &chunk[index & (CHUNK_SLOTS - 1)] : NULL;
}

int pe_surface_table_set(pe_surface_table *table, uint32_t index, uint32_t tag, const pe_surface_desc *desc) {
  if (index == 0 || index > SLOT_MASK) return -1;
  slot *entry = find(table, index);
  if (!entry) {
    slot *chunk = calloc(CHUNK_SLOTS, sizeof *chunk);
    if (!chunk) return -1;
    __atomic_store_n(&table->chunk[index >> CHUNK_BITS], chunk, __ATOMIC_RELEASE);
    entry = &chunk[index & (CHUNK_SLOTS - 1)];
  }
  entry->tag = tag;
  entry->desc = *desc;
  return 0;
}

void pe_surface_table_clear(pe_surface_table *table, uint32_t index) {
  slot *entry = find(table, index & SLOT_MASK);
  if (entry) entry->desc.state = PE_SURFACE_INVALID;
}

const pe_surface_desc *pe_surface_lookup(const pe_surface_table *table, uint64_t handle) {
  uint32_t index = handle & SLOT_MASK, tag = (uint32_t)(handle >> 32);
  const slot *entry = table && index ? find(table, index) : NULL;
  if (!entry || entry->desc.state == PE_SURFACE_INVALID || (tag && tag != entry->tag)) return NULL;
  return &entry->desc;
}
