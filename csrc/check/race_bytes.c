/* race_bytes.c: the checker `race` (race.c) at words whose bytes several threads have: of each byte the last write and the last read,
 * beside the stamp of the word, which says so. Where lanes of a warp have one byte after another, the word's stamp is enough. */
#include "race_runs.h"

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
    __atomic_store_n(&bytes[i], has ? pe_stamp_of_byte(before, i) : PE_STAMP_BLANK, __ATOMIC_RELAXED);
  }
  return bytes;
}

pe_stamp pe_race_of_byte(pe_race *race, uint32_t table, uint64_t word, pe_stamp all, uint32_t byte) {
  if (all != PE_STAMP_SPLIT) return pe_stamp_of_byte(all, byte);
  const pe_stamp *bytes = pe_race_bytes(race, table, word);
  return bytes ? __atomic_load_n(&bytes[byte], __ATOMIC_RELAXED) : PE_STAMP_BLANK;
}

/* ---- rows ---- */

/* Whether no byte's stamp matters to those that come to the bytes now. */
static bool none_matters(const pe_race_use *u, uint32_t table, uint64_t word, pe_stamp before, pe_stamp row) {
  bool good = true;
  for (uint32_t i = 0; good && i < BYTES; i++) {
    pe_stamp own = pe_race_of_byte(&u->checker->race, table, word, before, i), now = pe_stamp_of_byte(row, i);
    good = !pe_stamp_is_pending(own) && (!(own & now & PE_STAMP_BYTES) || pe_is_harmless(&u->harmless, own, now));
  }
  return good;
}

bool pe_race_row_passes(const pe_race_use *u, uint32_t lane, uint64_t word) {
  uint32_t table = u->writes ? PE_OF_WRITES : PE_OF_READS, other = u->writes ? PE_OF_READS : PE_OF_WRITES;
  pe_stamp *own = pe_race_own_stamps(u, word), row = pe_stamp_of_row(u->stamp + lane * PE_STAMP_LANE, u->event->size);
  const pe_stamp *others = pe_race_other_stamps(u, word);
  if (!own) return false;
  pe_stamp before = __atomic_load_n(own, __ATOMIC_ACQUIRE);
  if (u->writes ? !none_matters(u, table, word, before, row) : before == PE_STAMP_SPLIT) return false;
  if (others && !none_matters(u, other, word, __atomic_load_n(others, __ATOMIC_ACQUIRE), row)) return false;
  __atomic_store_n(own, u->writes ? row : pe_stamp_behind(before, row), __ATOMIC_RELAXED);
  return true;
}

PE_INLINE bool any_is_split(const pe_stamp *stamps, uint32_t count) {
  bool any = false;
  for (uint32_t i = 0; i < count; i++) any |= stamps[i] == PE_STAMP_SPLIT;
  return any;
}

PE_WIDEST PE_UNWATCHED bool pe_race_rows_pass(const pe_race_use *u, const pe_race_row *r) {
  pe_stamp *own = pe_race_own_stamps(u, r->word);
  const pe_stamp *others = pe_race_other_stamps(u, r->word);
  pe_stamp first = pe_stamp_of_row(u->stamp + r->lane * PE_STAMP_LANE, 4 / r->each), step = r->each * PE_STAMP_LANE;
  pe_trail t = {first + *(const pe_stamps *)pe_lanes_of_words[0].of * step, PE_STAMPS * step};
  if (!own || (others && !pe_all_harmless(&u->harmless, t, r->count, others))) return false;
  if (u->writes ? !pe_all_harmless(&u->harmless, t, r->count, own) : any_is_split(own, r->count)) return false;
  if (u->writes)
    pe_leave_stamps(t, r->count, own);
  else if (u->shared || !pe_all_stay(u->code, r->count, own))
    pe_leave_reads(t, r->count, own, pe_race_floor(u));
  return true;
}
