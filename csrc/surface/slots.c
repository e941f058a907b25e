/* slots.c: the chunked table behind surface and texture handles. */
#include <stdatomic.h>
#include <stdlib.h>
#include "runtime.h"
#include "slots.h"
#include "surface.h"

/* In front of each entry; its size keeps entries aligned. */
typedef struct head {
  uint32_t tag;
  uint32_t elements; /* of the array that begins here, while it is taken */
  uint32_t next;     /* first slot of the next array that is free */
  uint32_t unused;
} head;

pe_slots *pe_slots_new(size_t bytes) {
  pe_slots *slots = calloc(1, sizeof *slots);
  if (!slots) return NULL;
  slots->bytes = (bytes + sizeof(head) - 1) / sizeof(head) * sizeof(head);
  slots->next = 1;
  return slots;
}

void pe_slots_free(pe_slots *slots) {
  if (!slots) return;
  for (size_t i = 0; i < sizeof slots->chunk / sizeof *slots->chunk; i++) free(slots->chunk[i]);
  free(slots->free_slots);
  free(slots);
}

static head *find_head(const pe_slots *slots, uint32_t slot) {
  uint8_t *chunk = __atomic_load_n(&slots->chunk[slot >> PE_CHUNK_BITS], __ATOMIC_ACQUIRE);
  return chunk ? (head *)(void *)(chunk + (slot & (PE_CHUNK_SLOTS - 1)) * (slots->bytes + sizeof(head))) : NULL;
}

void *pe_slots_find(const pe_slots *slots, uint32_t slot, uint32_t **tag) {
  head *found = find_head(slots, slot);
  if (!found) return NULL;
  *tag = &found->tag;
  return found + 1;
}

void *pe_slots_make(pe_slots *slots, uint32_t slot, uint32_t tag) {
  if (slot == 0 || slot > PE_SLOT_MASK) return NULL;
  if (!slots->chunk[slot >> PE_CHUNK_BITS]) {
    uint8_t *chunk = calloc(PE_CHUNK_SLOTS, slots->bytes + sizeof(head));
    if (!chunk) return NULL;
    __atomic_store_n(&slots->chunk[slot >> PE_CHUNK_BITS], chunk, __ATOMIC_RELEASE);
  }
  uint32_t *place;
  void *entry = pe_slots_find(slots, slot, &place);
  if (entry) *place = tag;
  return entry;
}

/* ---- arrays of slots ---- */

static pe_free_slots *free_slots_of(pe_slots *slots, uint32_t elements) {
  for (size_t i = 0; i < slots->free_count; i++)
    if (slots->free_slots[i].elements == elements) return &slots->free_slots[i];
  return NULL;
}

static uint32_t unused_slots(pe_slots *slots, uint32_t elements) {
  pe_free_slots *known = free_slots_of(slots, elements);
  uint32_t first = known ? known->first : 0;
  const head *of_first = first ? find_head(slots, first) : NULL;
  if (of_first) {
    known->first = of_first->next;
    return first;
  }
  uint64_t span = (uint64_t)PE_SLOT_STEP * (elements - 1) + 1;
  if (slots->next + span - 1 > PE_SLOT_MASK) return 0;
  slots->next += (uint32_t)span;
  return slots->next - (uint32_t)span;
}

/* If there is no memory for the list, the slots are not used again. */
static void put_back(pe_slots *slots, uint32_t first, head *of_first, uint32_t elements) {
  pe_free_slots *known = free_slots_of(slots, elements);
  if (!known) {
    pe_free_slots *grown = realloc(slots->free_slots, (slots->free_count + 1) * sizeof *grown);
    if (!grown) return;
    slots->free_slots = grown;
    known = &grown[slots->free_count++];
    *known = (pe_free_slots){.elements = elements};
  }
  of_first->next = known->first;
  known->first = first;
}

static bool make_all(pe_slots *slots, uint32_t first, uint32_t elements, uint32_t tag) {
  for (uint32_t i = 0; i < elements; i++)
    if (!pe_slots_make(slots, first + PE_SLOT_STEP * i, tag)) return false;
  head *of_first = find_head(slots, first);
  if (of_first) of_first->elements = elements;
  return of_first != NULL;
}

uint64_t pe_slots_take(pe_slots *slots, uint32_t elements) {
  static _Atomic uint64_t serials;
  if (elements == 0) return 0;
  uint32_t tag = (uint32_t)(atomic_fetch_add(&serials, 1) % UINT32_MAX + 1);
  pe_lock();
  uint32_t first = unused_slots(slots, elements);
  bool made = first && make_all(slots, first, elements, tag);
  pe_unlock();
  return made ? (uint64_t)tag << 32 | first : 0;
}

/* The head of the array that a handle names, or NULL. */
static head *taken(const pe_slots *slots, uint64_t handle) {
  uint32_t low = (uint32_t)handle;
  head *found = low && low <= PE_SLOT_MASK ? find_head(slots, low) : NULL;
  return found && found->tag == handle >> 32 && found->elements ? found : NULL;
}

uint32_t pe_slots_elements(const pe_slots *slots, uint64_t handle) {
  const head *found = taken(slots, handle);
  return found ? found->elements : 0;
}

void pe_slots_retire(pe_slots *slots, uint64_t handle) {
  pe_lock();
  head *found = taken(slots, handle);
  if (found) {
    uint32_t elements = found->elements;
    found->elements = 0;
    put_back(slots, (uint32_t)handle, found, elements);
  }
  pe_unlock();
}
