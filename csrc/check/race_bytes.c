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

/* ---- lanes side by side ---- */

/* A word's stamp, and those of its bytes if it is split. */
typedef struct stamps {
  pe_stamp all;
  pe_stamp *bytes;
} stamps;

static stamps stamps_at(const pe_race_use *u, uint32_t table, uint64_t word, const pe_stamp *own) {
  pe_stamp all = __atomic_load_n(own, __ATOMIC_ACQUIRE);
  return (stamps){all, all == PE_STAMP_SPLIT ? pe_race_bytes(&u->checker->race, table, word) : NULL};
}

/* Whether none of them matters to those that come to the bytes now. */
static bool none_matters(const pe_race_use *u, stamps before, const pe_stamp now[BYTES]) {
  bool good = before.bytes || before.all != PE_STAMP_SPLIT;
  for (uint32_t i = 0; good && i < BYTES; i++) {
    pe_stamp own = before.bytes ? __atomic_load_n(&before.bytes[i], __ATOMIC_RELAXED) : before.all;
    good = !pe_stamp_is_pending(own) && (!(own & now[i] & PE_STAMP_BYTES) || pe_is_harmless(&u->harmless, own, now[i]));
  }
  return good;
}

bool pe_race_write_bytes(const pe_race_use *u, uint32_t lane, uint64_t word) {
  bool halves = u->event->size == 2;
  pe_stamp *own = pe_race_own_stamps(u, word), first = u->stamp + lane * PE_STAMP_LANE, now[BYTES];
  const pe_stamp *reads = pe_race_other_stamps(u, word);
  if (!own) return false;
  for (uint32_t i = 0; i < BYTES; i++) {
    pe_stamp bytes = halves ? 3u << (i & 2) : 1u << i;
    now[i] = (first + (halves ? i / 2 : i) * PE_STAMP_LANE) | bytes << PE_STAMP_BYTES_AT;
  }
  stamps before = stamps_at(u, PE_OF_WRITES, word, own);
  if (!none_matters(u, before, now)) return false;
  if (reads && !none_matters(u, stamps_at(u, PE_OF_READS, word, reads), now)) return false;
  pe_stamp *bytes = before.bytes ? before.bytes : pe_race_split(&u->checker->race, PE_OF_WRITES, word, before.all);
  for (uint32_t i = 0; bytes && i < BYTES; i++) __atomic_store_n(&bytes[i], now[i], __ATOMIC_RELAXED);
  if (bytes && !before.bytes) __atomic_store_n(own, PE_STAMP_SPLIT, __ATOMIC_RELEASE);
  return bytes != NULL;
}
