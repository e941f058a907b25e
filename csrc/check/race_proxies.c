/* race_proxies.c: the checker `race` (race.c) at accesses by the async proxy: copies in bulk, and matrices that wgmma and tcgen05 read in
 * shared memory (PTX ISA, "Async proxy"). What the generic proxy has written is in an order with them only if there is a fence
 * between the two on the way, fence.proxy.async. A copy that is complete needs none behind it; and reads by the generic proxy before a
 * write by the other are not looked at: programs rely on barriers there.
 */
#include "race_access.h"

#define SAME (PE_STAMP_BYTES | PE_STAMP_LANES) /* bits that are of no interest here */

void pe_race_note_proxy(const pe_race_use *u) {
  __atomic_fetch_or(&u->checker->race.narrow[pe_stamp_site(u->stamp)], PE_SITE_OF_PROXY, __ATOMIC_RELAXED);
}

bool pe_race_lacks_fence(const pe_race_use *u, pe_stamp before) {
  pe_race *race = &u->checker->race;
  pe_stamp oldest = u->shared ? (pe_stamp)u->b->oldest << PE_STAMP_PERIOD_AT : u->code->ancient;
  if (before < oldest || pe_stamp_is_pending(before)) return false;
  if (__atomic_load_n(&race->narrow[pe_stamp_site(before)], __ATOMIC_RELAXED) & PE_SITE_OF_PROXY) return false;
  return !pe_order_is_proxied(&race->order, u->b, before);
}

bool pe_race_lacks_fences(const pe_race_use *u, const pe_stamp *before, uint32_t count) {
  pe_stamp last = PE_STAMP_BLANK;
  for (uint32_t i = 0; i < count; i++) {
    if (((before[i] ^ last) & ~SAME) == 0 || before[i] == PE_STAMP_BLANK) continue;
    last = before[i];
    if (last == PE_STAMP_SPLIT || pe_race_lacks_fence(u, last)) return true;
  }
  return false;
}
