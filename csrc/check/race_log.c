/* race_log.c: the checker `race` (race.c): accesses of shared memory that have left no stamps yet. */
#include "foresight.h"
#include "race_runs.h"
#include "place.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wanalyzer-shift-count-overflow" /* it takes the lanes of a vector for its bits */
#endif

_Static_assert(offsetof(pe_order_block, log) == PE_MAX_WARPS * sizeof(pe_stamping), "compiled code finds it there");

void pe_race_log_begin(pe_order *order, pe_order_block *b) {
  pe_foresight_turn(order, b);
  b->turns = 0;
  b->log.exact = b->clustered ? UINT64_MAX : 0;
  b->log.written = b->log.strong = b->log.read =
      b->clustered ? PE_STAMP_NEVER : PE_STAMP_BLANK; /* other CTAs write there, too */
  pe_foresight_ahead(b);
}

/* Which stamps are of no use to any warp: lesser ones. */
static pe_stamp least_floor(const pe_order_block *b) {
  pe_stamp least = UINT64_MAX;
  for (uint32_t i = 0; i < b->warps; i++) least = b->stamping[i].floor < least ? b->stamping[i].floor : least;
  return least;
}

/* A listed access, with the stamp of its lane 0; reads from `floor` on stay where it is a read. */
typedef struct listed {
  bool writes;
  pe_stamp floor;
  pe_shadow *own;
  const pe_warp *w;
  const pe_pattern_site *site;
  uint64_t base;
  pe_stamp stamp;
} listed;

/* The stamps of words from a lane's on, so many bytes; NULL: these do not lie in memory, or not in one chunk of it, or nothing is kept. */
PE_INLINE pe_stamp *stamps_of(const listed *l, uint32_t lane, uint64_t size) {
  uint64_t address = pe_pattern_address(l->site, l->base, lane), first = address + l->w->shared_base;
  uint64_t chunk = (uint64_t)1 << PE_SHADOW_LOG2;
  if (!pe_within(address, size, l->w->shared_size)) return NULL;
  if (!pe_within((first - l->own->base) % chunk, size, chunk)) return NULL;
  return pe_shadow_make(l->own, first);
}

/* Leave the stamps of a group of lanes that have words side by side, if they may be left together. */
PE_INLINE bool leave_run(const listed *l, uint32_t lane) {
  uint64_t size = (uint64_t)l->site->width * l->site->size;
  pe_stamp *at = stamps_of(l, lane, size);
  pe_race_run run = {0, (uint32_t)(size / 4), lane, (uint32_t)__builtin_ctz(l->site->size / 4), false};
  if (at && l->writes) pe_leave_stamps(pe_trail_of(l->stamp, &run), run.count, at);
  if (at && !l->writes) pe_leave_reads(pe_trail_of(l->stamp, &run), run.count, at, l->floor);
  return at != NULL;
}

PE_INLINE void leave_one(const listed *l, pe_stamp *at, pe_stamp now) {
  *at = l->writes ? now : pe_read_left(l->floor, *at, now);
}

PE_INLINE void leave_lane(const listed *l, uint32_t lane, pe_stamp several) {
  pe_stamp *at = stamps_of(l, lane, l->site->size), stamp = (l->stamp + lane * PE_STAMP_LANE) | PE_STAMP_BYTES | several;
  for (uint32_t i = 0; at && i < l->site->size / 4; i++) leave_one(l, &at[i], stamp);
}

/* The stamps of some lanes of a group: of those that read one address, the last. */
PE_INLINE void leave_group(const listed *l, uint32_t lane, uint32_t there) {
  uint32_t all = PE_ALL_LANES >> (PE_WARP_LANES - l->site->width);
  pe_stamp several = !l->site->step && there & (there - 1) ? PE_STAMP_SEVERAL : 0;
  if (several) there = 1u << PE_LAST_LANE(there);
  if (l->site->width > 1 && there == all && leave_run(l, lane)) return;
  PE_FOR_LANES(i, there) leave_lane(l, lane + i, several);
}

/* Leave the stamps of all lanes wherever they are, of those with one word the last; false: not all may be left like this. */
PE_INLINE bool leave_all(const listed *l) {
  uint64_t size = l->w->shared_size, last = size - l->site->size, all = l->site->narrow ? UINT32_MAX : UINT64_MAX, wild = 0;
  if (size < l->site->size || size > (uint64_t)1 << PE_SHADOW_LOG2) return false;
  pe_stamp *own = pe_shadow_make(l->own, l->w->shared_base), first = l->stamp | PE_STAMP_BYTES;
  if (!own || !pe_shadow_make(l->own, l->w->shared_base + size - 1)) return false;
  for (uint32_t i = 0; i < PE_WARP_LANES; i++) {
    uint64_t address = (l->base + l->site->offset[i]) & all;
    wild |= (uint64_t)(address > last) | (address & 3);
  }
  if (wild) return false;
  for (uint32_t i = 0; i < PE_WARP_LANES; i++)
    for (uint32_t word = 0; word < l->site->size / 4; word++)
      leave_one(l, &own[((l->base + l->site->offset[i]) & all) / 4 + word], first + i * PE_STAMP_LANE);
  return true;
}

PE_WIDEST PE_UNWATCHED static void leave(pe_race *race, const pe_warp *w, const pe_logged *access,
                                         const pe_pattern_site *site, pe_stamp floor) {
  bool writes = site->kind & PE_WRITE;
  pe_shadow *own = writes ? &race->writes : &race->reads;
  /* The warp that looks at the list may be about to write: its own reads matter less to it. */
  if (pe_stamp_warp(access->now) != w->warpid) floor = PE_STAMP_NEVER;
  listed l = {writes, floor, own, w, site, access->base, access->now | pe_site_of(&race->sites, site->pos)};
  uint32_t mask = (uint32_t)access->lanes;
  if (mask == PE_ALL_LANES && site->width == 1 && leave_all(&l)) return;
  for (uint32_t lane = 0; lane < PE_WARP_LANES; lane += site->width)
    leave_group(&l, lane, mask >> lane & (PE_ALL_LANES >> (PE_WARP_LANES - site->width)));
}

void pe_race_listed(pe_checker *checker, const pe_warp *w) { pe_race_log_flush(&checker->race, w, pe_order_block_of(w)); }

void pe_race_log_flush(pe_race *race, const pe_warp *w, pe_order_block *b) {
  pe_stamp floor = least_floor(b);
  for (uint64_t i = 0; i < b->log.count; i++) {
    const pe_logged *access = &b->log.accesses[i];
    pe_stamp *last = pe_logged_sites(access)->kind & PE_WRITE ? &b->log.written : &b->log.read;
    if (access->now < floor) continue;
    for (uint64_t j = 0; j < access->lanes >> PE_LOGGED_AT; j++) leave(race, w, access, pe_logged_sites(access) + j, floor);
    *last = access->now > *last ? access->now : *last;
  }
  pe_race_log_end(&b->log);
  b->log.count = 0;
}
