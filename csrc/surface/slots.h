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

/* Slots of retired arrays of one length, linked from the first. */
typedef struct pe_free_slots {
  uint32_t elements, first;
} pe_free_slots;

/* Entries of `bytes` bytes, each behind its head; all bits zero is an unused entry. */
typedef struct pe_slots {
  size_t bytes;
  uint32_t next;             /* no slot from here on has ever been taken */
  pe_free_slots *free_slots; /* one for each length */
  size_t free_count;
  uint8_t *chunk[1u << (PE_SLOT_BITS - PE_CHUNK_BITS)];
} pe_slots;

/* An empty table, or NULL. */
pe_slots *pe_slots_new(size_t bytes);
void pe_slots_free(pe_slots *slots);

/* The entry of a slot and its tag, or NULL where none was ever made. */
void *pe_slots_find(const pe_slots *slots, uint32_t slot, uint32_t **tag);

/* The entry of a slot, made if need be.  NULL: the slot is 0 or too large, or memory is short. */
void *pe_slots_make(pe_slots *slots, uint32_t slot, uint32_t tag);

/* A handle for an array of unused entries, PE_SLOT_STEP slots apart, with a tag that no other handle of the process has. 0: there
 * is no room for them. */
uint64_t pe_slots_take(pe_slots *slots, uint32_t elements);

/* How many elements a handle has that was taken and not retired; 0: it is none. */
uint32_t pe_slots_elements(const pe_slots *slots, uint64_t handle);

/* Forget a handle, whose entries are unused again. */
void pe_slots_retire(pe_slots *slots, uint64_t handle);

#endif
