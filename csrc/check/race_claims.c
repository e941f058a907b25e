/* race_claims.c: the checker `race` (race.c): accesses of shared memory that leave no stamps, as no others race with them.
 *
 * Until all warps meet again, a line of shared memory is *claimed* by the first warp that makes accesses there.  It may list more of
 * them, by lanes that have the same words; others may list reads, as long as nobody writes.  Where a line is claimed otherwise,
 * all that is listed leaves its stamps, and words are looked at from then on.  Reads before the first write claim nothing until it
 * comes (race_log.c).  As long as a CTA lists what one before it has listed in the same turn, nothing is claimed (foresight.h).
 */
#include "foresight.h"
#include "race_access.h"

enum { SHARES = 1, WRITES = 2, FLAGS = SHARES | WRITES };

_Static_assert((uint64_t)PE_CLAIMS << PE_LINE_LOG2 <= 1u << PE_CLAIM_WARP_AT, "an address has its place");
_Static_assert(FLAGS < 4, "they are where words have no bits");

/* The lines of an access from `first` to `last`, and what they are claimed with. */
typedef struct wanted {
  uint64_t first, last, who, family;
} wanted;

/* False: it is none that can be claimed. */
PE_INLINE bool want(const pe_pattern_site *site, uint64_t base, uint32_t warp, uint64_t turn, wanted *out) {
  uint64_t bits = site->narrow ? UINT32_MAX : UINT64_MAX, kept = (uint64_t)PE_CLAIMS << PE_LINE_LOG2;
  uint64_t low = (base + site->low) & bits, start = (base + site->first) & bits;
  if (site->span > PE_LONGEST_CLAIM || low > kept - PE_LONGEST_CLAIM || start >= kept || (start & FLAGS)) return false;
  out->first = low >> PE_LINE_LOG2;
  out->last = (low + site->span - 1) >> PE_LINE_LOG2;
  out->who = turn | (uint64_t)warp << PE_CLAIM_WARP_AT | start;
  out->family = site->family;
  return true;
}

/* Whether a line has been claimed, in this turn, for accesses by the same lanes. */
PE_INLINE bool is_same(const pe_claim *line, uint64_t who, uint64_t family) {
  return ((line->who ^ who) & ~(uint64_t)WRITES) == 0 && line->family == family && family;
}

PE_INLINE bool claim(pe_shared_log *log, const wanted *all, bool writes) {
  uint64_t turn = log->turn, who = all->who, family = all->family, written = writes ? WRITES : 0;
  pe_claim *end = log->claims + all->last;
  for (const pe_claim *line = log->claims + all->first; line <= end; line++) {
    bool shares = !(written | (line->who & WRITES));
    if (line->who >= turn && !shares && !is_same(line, who, family)) return false;
  }
  for (pe_claim *line = log->claims + all->first; line <= end; line++) {
    bool same = is_same(line, who, family);
    uint64_t now = line->who < turn ? who : same ? line->who : line->who | SHARES;
    line->family = line->who < turn ? family : line->family;
    line->who = now | written;
  }
  return true;
}

/* Some accesses of a warp off one base. */
static bool claim_sites(pe_shared_log *log, const pe_pattern_site *site, uint64_t number, uint32_t warp, uint64_t base) {
  wanted all;
  for (const pe_pattern_site *end = site + number; site < end; site++)
    if (!want(site, base, warp, log->turn, &all) || !claim(log, &all, site->kind & PE_WRITE)) return false;
  return true;
}

/* What is listed claims where it is. */
static bool claim_listed(pe_shared_log *log) {
  log->foreseen = 0;
  for (uint64_t i = 0; i < log->count; i++) {
    const pe_logged *access = &log->accesses[i];
    uint64_t number = access->lanes >> PE_LOGGED_AT;
    if (!claim_sites(log, pe_logged_sites(access), number, pe_stamp_warp(access->now), access->base)) return false;
  }
  log->wrote = log->turn;
  return true;
}

/* Whether an access, behind all that is listed, races with nothing. */
static bool passes(pe_order_block *b, const pe_warp *w, const pe_pattern_site *site, uint64_t number, uint64_t base) {
  pe_shared_log *log = &b->log;
  bool begins = log->wrote != log->turn;
  if (begins ? pe_foresight_begin(b, w, site, base) : pe_foresight_skip(b, w, site, base)) {
    log->wrote = log->turn;
    return true;
  }
  if ((begins || log->foreseen) && !claim_listed(log)) return false;
  return claim_sites(log, site, number, w->warpid, base);
}

static bool is_listed(pe_order_block *b, const pe_warp *w, const pe_pattern_site *site, uint32_t number, uint32_t mask,
                      uint64_t base) {
  pe_shared_log *log = &b->log;
  if (mask & (mask - 1) && !pe_are_apart(site, number)) return false;
  if (log->exact >= log->turn || b->blind || log->count == PE_MOST_LOGGED) return false;
  if (!passes(b, w, site, number, base)) return false;
  pe_stamp now = b->stamping[w->warpid].now;
  pe_logged *access = &log->accesses[log->count++];
  access->site = (uint64_t)(uintptr_t)site, access->base = base, access->now = now;
  access->lanes = mask | (uint64_t)number << PE_LOGGED_AT;
  if (site->kind & PE_WRITE && now > log->written) log->written = now;
  return true;
}

bool pe_race_claim(const pe_warp *w, const pe_pattern_site *site, uint32_t number, uint32_t mask, uint64_t base) {
  pe_order_block *b = pe_order_block_of(w);
  if (!mask || is_listed(b, w, site, number, mask, base)) return true;
  /* Lines may have claims that reads would not look for any more, whether this access leaves stamps or not. */
  pe_race_log_end(&b->log);
  return false;
}
