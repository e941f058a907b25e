/* slots.c: the chunked table behind surface and texture handles. */
#include <stdlib.h>
#include "slots.h"

#define TAG_BYTES 16 /* keeps entries aligned */

pe_slots *pe_slots_new(size_t bytes) {
  pe_slots *slots = calloc(1, sizeof *slots);
  if (slots) slots->bytes = (bytes + TAG_BYTES - 1) / TAG_BYTES * TAG_BYTES;
  return slots;
}

void pe_slots_free(pe_slots *slots) {
  if (!slots) return;
  for (size_t i = 0; i < sizeof slots->chunk / sizeof *slots->chunk; i++) free(slots->chunk[i]);
  free(slots);
}

void *pe_slots_find(const pe_slots *slots, uint32_t slot, uint32_t **tag) {
  uint8_t *chunk = __atomic_load_n(&slots->chunk[slot >> PE_CHUNK_BITS], __ATOMIC_ACQUIRE);
  if (!chunk) return NULL;
  uint8_t *entry = chunk + (slot & (PE_CHUNK_SLOTS - 1)) * (slots->bytes + TAG_BYTES);
  *tag = (uint32_t *)(void *)entry;
  return entry + TAG_BYTES;
}

void *pe_slots_make(pe_slots *slots, uint32_t slot, uint32_t tag) {
  if (slot == 0 || slot > PE_SLOT_MASK) return NULL;
  if (!slots->chunk[slot >> PE_CHUNK_BITS]) {
    uint8_t *chunk = calloc(PE_CHUNK_SLOTS, slots->bytes + TAG_BYTES);
    if (!chunk) return NULL;
    __atomic_store_n(&slots->chunk[slot >> PE_CHUNK_BITS], chunk, __ATOMIC_RELEASE);
  }
  uint32_t *place;
  void *entry = pe_slots_find(slots, slot, &place);
  if (entry) *place = tag;
  return entry;
}
