/* slots.h: slots with generation tags, found by handle.  Slots live in chunks that stay until the table goes, so a lookup
 * takes no lock; a slot changes only while no launch uses its handle. */
#ifndef PTXEMU_SLOTS_H
#define PTXEMU_SLOTS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PE_SLOT_BITS 20
#define PE_SLOT_MASK ((1u << PE_SLOT_BITS) - 1)
#define PE_CHUNK_BITS 6
#define PE_CHUNK_SLOTS (1u << PE_CHUNK_BITS)

/* Entries of `bytes` bytes, each behind its tag; all bits zero is an unused entry. */
typedef struct pe_slots {
  size_t bytes;
  uint8_t *chunk[1u << (PE_SLOT_BITS - PE_CHUNK_BITS)];
} pe_slots;

/* An empty table, or NULL. */
pe_slots *pe_slots_new(size_t bytes);
void pe_slots_free(pe_slots *slots);

/* The entry of a slot and its tag, or NULL where none was ever made. */
void *pe_slots_find(const pe_slots *slots, uint32_t slot, uint32_t **tag);

/* The entry of a slot, made if need be.  NULL: the slot is 0 or too large, or memory is short. */
void *pe_slots_make(pe_slots *slots, uint32_t slot, uint32_t tag);

#endif
