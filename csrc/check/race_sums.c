/* race_sums.c: the checker `race` (race.c): sums that a worker makes in memory of its own (twin.h), and of which it keeps the stamps
 * there until it adds them to the array.
 *
 * Nothing orders them with what other CTAs do, or such a kernel would make no sums apart.  Of its own CTAs' plain accesses none is made
 * while the worker has a twin, as that is joined before, and none was made when the worker began, or it has no stamps to leave.  So
 * each plain access whose stamp is there when they are joined is another worker's, and races.
 */
#include "race_access.h"

/* ---- a worker begins ---- */

/* Whether a stamp is of an access in this launch that is not strong. */
PE_INLINE bool is_plain(pe_stamp s, pe_stamp oldest) {
  return s >= oldest && (!(s & PE_STAMP_STRONG) || pe_stamp_is_pending(s));
}

PE_WIDEST PE_UNWATCHED static bool any_plain(const pe_stamp *stamps, uint64_t count, pe_stamp oldest) {
  uint64_t any = 0;
  for (uint64_t i = 0; i < count; i++) any |= (uint64_t)is_plain(stamps[i], oldest);
  return any;
}

/* The same of all that is kept of some memory. */
static bool has_plain(const pe_shadow *shadow, uint64_t address, uint64_t size, pe_stamp oldest) {
  uint64_t chunk = (uint64_t)1 << PE_SHADOW_LOG2, end = pe_round_up(address + size, 4);
  for (uint64_t next; address < end; address = next) {
    next = address + chunk - (address - shadow->base) % chunk;
    if (next > end) next = end;
    const pe_stamp *stamps = pe_shadow_find(shadow, address);
    if (stamps && any_plain(stamps, (next - address) / 4, oldest)) return true;
  }
  return false;
}

bool pe_race_is_apart(pe_checker *checker, const pe_warp *w, uint64_t address, uint64_t size) {
  const pe_race *race = &checker->race;
  const pe_order_block *b = pe_order_block_of(w);
  bool alone = !b->blind && !atomic_load(&race->order.overlapped) && !race->scoped;
  pe_stamp oldest = b->stamping[w->warpid].ancient;
  return alone && !has_plain(&race->writes, address, size, oldest) && !has_plain(&race->reads, address, size, oldest);
}

/* ---- its sums are joined ---- */

typedef struct joining {
  pe_checker *checker;
  const pe_launch *launch;
  pe_stamp oldest;
  uint32_t each;
} joining;

static void consider(const joining *j, uint64_t address, pe_stamp now, pe_stamp before, bool is_read) {
  if (is_plain(before, j->oldest) && !pe_stamp_is_pending(before))
    pe_race_tell_sum(j->checker, j->launch, address, j->each, now, before, is_read);
}

/* The same of the stamps of bytes, if they have their own. */
static void consider_all(const joining *j, uint64_t address, uint64_t word, pe_stamp now, pe_stamp before, uint32_t table) {
  bool is_read = table == PE_OF_READS;
  if (!pe_stamp_has_parts(before)) return consider(j, address, now, before, is_read);
  for (uint32_t i = 0; i < 4; i++)
    consider(j, address, now, pe_race_of_byte(&j->checker->race, table, word, before, i), is_read);
}

/* A word: the later one of strong stamps stays. */
static void join(const joining *j, uint64_t address, uint64_t word, pe_stamp now) {
  pe_race *race = &j->checker->race;
  pe_stamp *own = pe_shadow_make(&race->writes, word), before = own ? __atomic_load_n(own, __ATOMIC_RELAXED) : 0;
  if (!own) return;
  if (before < now || is_plain(before, j->oldest)) before = __atomic_exchange_n(own, now, __ATOMIC_SEQ_CST);
  consider_all(j, address, word, now, before, PE_OF_WRITES);
  const pe_stamp *reads = pe_shadow_find(&race->reads, word);
  if (reads) consider_all(j, address, word, now, __atomic_load_n(reads, __ATOMIC_SEQ_CST), PE_OF_READS);
}

void pe_race_join(pe_checker *checker, const pe_launch *launch, uint64_t address, uint64_t size, uint32_t each,
                  const pe_stamp *stamps) {
  joining j = {checker, launch, pe_order_oldest(&checker->race.order, &launch->config), each};
  for (uint64_t at = 0; at < size; at += each) {
    pe_stamp now = stamps[at / each];
    for (uint64_t word = at; now && word < at + each; word += 4) join(&j, address + at, address + word, now);
  }
}
