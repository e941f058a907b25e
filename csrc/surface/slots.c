/* slots.c: the chunked table behind surface and texture handles.  Chunks stay until the table goes. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "exclusive.h"
#include "runtime.h"
#include "slots.h"
#include "surface.h"

struct pe_slot_item {
  pe_slot_item *next; /* in the queue of replaced ones */
  uint64_t seen;      /* the newest launch that could look at it then */
  uint32_t tag;
  _Alignas(16) uint8_t descriptor[];
};

struct pe_slot {
  _Atomic(pe_slot_item *) item;
  uint32_t tag, elements; /* of the array that begins here; elements while it is taken */
  uint32_t next;          /* first slot of the next array that is free */
};

pe_slots *pe_slots_new(size_t bytes) {
  pe_slots *slots = calloc(1, sizeof *slots);
  if (!slots) return NULL;
  slots->bytes = bytes;
  slots->next = 1;
  slots->last = &slots->replaced;
  return slots;
}

/* Free what no launch can look at: those that were in flight when it was replaced have ended. */
static void reclaim(pe_slots *slots, uint64_t oldest) {
  while (slots->replaced && slots->replaced->seen < oldest) {
    pe_slot_item *item = slots->replaced;
    slots->replaced = item->next;
    free(item);
  }
  if (!slots->replaced) slots->last = &slots->replaced;
}

void pe_slots_free(pe_slots *slots) {
  if (!slots) return;
  reclaim(slots, UINT64_MAX);
  for (size_t i = 0; i < sizeof slots->chunk / sizeof *slots->chunk; i++) {
    for (size_t at = 0; slots->chunk[i] && at < PE_CHUNK_SLOTS; at++) free(slots->chunk[i][at].item);
    free(slots->chunk[i]);
  }
  free(slots->free_slots);
  free(slots);
}

static pe_slot *find_slot(const pe_slots *slots, uint32_t slot) {
  pe_slot *chunk = atomic_load_explicit(&slots->chunk[slot >> PE_CHUNK_BITS], memory_order_acquire);
  return chunk ? &chunk[slot & (PE_CHUNK_SLOTS - 1)] : NULL;
}

const void *pe_slots_find(const pe_slots *slots, uint32_t slot, uint32_t *tag) {
  pe_slot *found = find_slot(slots, slot);
  const pe_slot_item *item = found ? atomic_load_explicit(&found->item, memory_order_acquire) : NULL;
  if (!item) return NULL;
  *tag = item->tag;
  return item->descriptor;
}

/* ---- changes: with pe_lock held ---- */

static pe_slot *make_slot(pe_slots *slots, uint32_t slot) {
  if (slot == 0 || slot > PE_SLOT_MASK) return NULL;
  if (!find_slot(slots, slot)) {
    pe_slot *chunk = calloc(PE_CHUNK_SLOTS, sizeof *chunk);
    if (!chunk) return NULL;
    atomic_store_explicit(&slots->chunk[slot >> PE_CHUNK_BITS], chunk, memory_order_release);
  }
  return find_slot(slots, slot);
}

static void replace(pe_slots *slots, pe_slot *slot, pe_slot_item *item) {
  pe_slot_item *before = atomic_exchange(&slot->item, item);
  pe_launch_span span = pe_flight_span();
  if (before) {
    before->seen = span.newest;
    before->next = NULL;
    *slots->last = before;
    slots->last = &before->next;
  }
  reclaim(slots, span.oldest);
}

int pe_slots_set(pe_slots *slots, uint32_t slot, uint32_t tag, const void *descriptor) {
  pe_slot_item *item = malloc(sizeof *item + slots->bytes);
  if (!item) return -1;
  item->tag = tag;
  memcpy(item->descriptor, descriptor, slots->bytes);
  pe_lock();
  pe_slot *made = make_slot(slots, slot);
  if (made) replace(slots, made, item);
  pe_unlock();
  if (!made) free(item);
  return made ? 0 : -1;
}

void pe_slots_clear(pe_slots *slots, uint32_t slot) {
  pe_slot *found = find_slot(slots, slot & PE_SLOT_MASK);
  pe_lock();
  if (found) replace(slots, found, NULL);
  pe_unlock();
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
  const pe_slot *of_first = first ? find_slot(slots, first) : NULL;
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
static void put_back(pe_slots *slots, uint32_t first, pe_slot *of_first, uint32_t elements) {
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
    if (!make_slot(slots, first + PE_SLOT_STEP * i)) return false;
  pe_slot *of_first = find_slot(slots, first);
  if (!of_first) return false;
  of_first->tag = tag;
  of_first->elements = elements;
  return true;
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

/* The first slot of the array that a handle names, or NULL. */
static pe_slot *taken(const pe_slots *slots, uint64_t handle) {
  uint32_t low = (uint32_t)handle;
  pe_slot *found = low && low <= PE_SLOT_MASK ? find_slot(slots, low) : NULL;
  return found && found->tag == handle >> 32 && found->elements ? found : NULL;
}

uint32_t pe_slots_elements(const pe_slots *slots, uint64_t handle) {
  const pe_slot *found = taken(slots, handle);
  return found ? found->elements : 0;
}

void pe_slots_retire(pe_slots *slots, uint64_t handle) {
  pe_lock();
  pe_slot *found = taken(slots, handle);
  if (found) {
    uint32_t elements = found->elements;
    found->elements = 0;
    put_back(slots, (uint32_t)handle, found, elements);
  }
  pe_unlock();
}
