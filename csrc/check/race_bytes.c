/* race_bytes.c: the checker `race` (race.c) at words whose bytes several threads have: of each byte the last write and the last read,
 * beside the stamp of the word, which says so. */
#include "race_access.h"

enum { BYTES = 4 };

/* Make the table when the first word is split. */
static bool make(pe_race *race, uint32_t table) {
  if (atomic_load_explicit(&race->has_bytes[table], memory_order_acquire)) return true;
  pe_require_stack();
  pthread_mutex_lock(&race->order.mutex);
  bool made = race->has_bytes[table];
  if (!made && pe_shadow_init(&race->bytes[table], race->order.arena, PE_STAMP_BLANK, BYTES)) {
    atomic_store_explicit(&race->has_bytes[table], true, memory_order_release);
    made = true;
  }
  pthread_mutex_unlock(&race->order.mutex);
  return made;
}

void pe_race_bytes_end(pe_race *race) {
  for (uint32_t table = 0; table < 2; table++)
    if (race->has_bytes[table]) pe_shadow_end(&race->bytes[table]);
}

pe_stamp *pe_race_bytes(pe_race *race, uint32_t table, uint64_t word) {
  bool any = atomic_load_explicit(&race->has_bytes[table], memory_order_acquire);
  return any ? pe_shadow_find(&race->bytes[table], word) : NULL;
}

pe_stamp *pe_race_split(pe_race *race, uint32_t table, uint64_t word, pe_stamp before) {
  pe_stamp *bytes = make(race, table) ? pe_shadow_make(&race->bytes[table], word) : NULL;
  for (uint32_t i = 0; bytes && i < BYTES; i++) {
    bool has = before >> (PE_STAMP_BYTES_AT + i) & 1;
    __atomic_store_n(&bytes[i], has ? before : PE_STAMP_BLANK, __ATOMIC_RELAXED);
  }
  return bytes;
}
