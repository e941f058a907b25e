/* slots.h: slots with generation tags, found by handle.
 *
 * What a slot holds never changes: setting the slot puts something else there.  A lookup takes no lock, and what it finds
 * stays whole until the launch that looked has ended. */
#ifndef PTXEMU_SLOTS_H
#define PTXEMU_SLOTS_H
#include <stdatomic.h>
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

typedef struct pe_slot pe_slot;
typedef struct pe_slot_item pe_slot_item;

/* Descriptors of `bytes` bytes. */
typedef struct pe_slots {
  size_t bytes;
  uint32_t next;             /* no slot from here on has ever been taken */
  pe_free_slots *free_slots; /* one for each length */
  size_t free_count;
  _Atomic(pe_slot *) chunk[1u << (PE_SLOT_BITS - PE_CHUNK_BITS)];
  pe_slot_item *replaced, **last; /* queue of what launches may still look at; guarded by pe_lock */
} pe_slots;

/* An empty table, or NULL. */
pe_slots *pe_slots_new(size_t bytes);
void pe_slots_free(pe_slots *slots);

/* The descriptor of a slot and its tag, or NULL where there is none. */
const void *pe_slots_find(const pe_slots *slots, uint32_t slot, uint32_t *tag);

/* Put a copy of a descriptor into a slot.  -1: the slot is 0 or too large, or memory is short. */
int pe_slots_set(pe_slots *slots, uint32_t slot, uint32_t tag, const void *descriptor);
void pe_slots_clear(pe_slots *slots, uint32_t slot);

/* A handle for an array of empty slots, PE_SLOT_STEP slots apart, with a tag that no other handle of the process has. 0: there
 * is no room for them. */
uint64_t pe_slots_take(pe_slots *slots, uint32_t elements);

/* How many elements a handle has that was taken and not retired; 0: it is none. */
uint32_t pe_slots_elements(const pe_slots *slots, uint64_t handle);

/* Forget a handle, whose slots, which are empty, may be used again. */
void pe_slots_retire(pe_slots *slots, uint64_t handle);

#endif
