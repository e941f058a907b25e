/* race_log.c: the checker `race` (race.c): reads of shared memory that have left no stamps yet. */
#include "race_access.h"
#include "atomic.h"
#include "place.h"

_Static_assert(offsetof(pe_order_block, log) == PE_MAX_WARPS * sizeof(pe_stamping), "compiled code finds it there");

void pe_race_log_begin(pe_order_block *b) {
  b->log.count = 0;
  b->log.written = b->log.read = b->clustered ? PE_STAMP_NEVER : PE_STAMP_BLANK; /* other CTAs write there, too */
}

/* Which stamps are of no use to any warp: lesser ones. */
static pe_stamp least_floor(const pe_order_block *b) {
  pe_stamp least = UINT64_MAX;
  for (uint32_t i = 0; i < b->warps; i++) least = b->stamping[i].floor < least ? b->stamping[i].floor : least;
  return least;
}

static void leave(pe_race *race, const pe_warp *w, const pe_logged_read *read) {
  const pe_pattern_site *site = (const pe_pattern_site *)(uintptr_t)read->site;
  pe_stamp stamp = read->now | pe_site_of(&race->sites, site->pos) | PE_STAMP_BYTES;
  PE_FOR_LANES(lane, (uint32_t)read->mask) {
    uint64_t address = pe_pattern_address(site, read->base, lane);
    if (!pe_within(address, site->size, w->shared_size)) continue;
    pe_stamp *at = pe_shadow_make(&race->reads, w->shared_base + address);
    for (uint32_t i = 0; at && i < site->size / 4; i++) at[i] = stamp + lane * PE_STAMP_LANE;
  }
}

void pe_race_log_flush(pe_race *race, const pe_warp *w, pe_order_block *b) {
  pe_stamp floor = least_floor(b);
  for (uint64_t i = 0; i < b->log.count; i++) {
    const pe_logged_read *read = &b->log.reads[i];
    if (read->now < floor) continue;
    leave(race, w, read);
    b->log.read = read->now > b->log.read ? read->now : b->log.read;
  }
  b->log.count = 0;
}
