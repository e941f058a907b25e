/* init_patterns.c: the checker `init` (init.c) at accesses of shared memory whose addresses compiled code knows as a pattern of lanes. */
#include "atomic.h"
#include "checker.h"
#include "init_bits.h"
#include "launch.h"
#include "place.h"

/* Look at so many bytes of the CTA's shared memory, which elements of `each` bytes fill: whether nothing is wrong. */
static inline bool passes(const pe_checker *checker, const pe_warp *w, bool writes, uint64_t address, uint64_t size,
                          uint64_t each) {
  const pe_init *init = &checker->init;
  uint64_t offset = w->shared_base - init->base + address;
  if (!pe_within(address, size, w->shared_size) || address & (each - 1)) return false;
  if (!(checker->checks & PE_CHECK_INIT)) return true;
  if (!writes) return !pe_init_count_unset(init, offset, size);
  pe_init_set_own_written(init, offset, size);
  return true;
}

/* The same of elements of up to 8 bytes of all lanes, which are read. */
static bool all_pass(const pe_checker *checker, const pe_warp *w, const pe_pattern_site *site, uint64_t base) {
  const pe_init *init = &checker->init;
  uint64_t start = w->shared_base - init->base, last = w->shared_size - site->size, wild = 0, unset = 0;
  uint64_t low = (1ull << site->size) - 1, odd = site->size - 1, all = site->narrow ? UINT32_MAX : UINT64_MAX;
  if (w->shared_size < site->size) return false;
  for (uint32_t i = 0; i < PE_WARP_LANES; i++) {
    uint64_t address = (base + site->offset[i]) & all, bad = (address > last) | (address & odd);
    wild |= bad;
    address = bad ? 0 : address;
    unset |= init->unset[(start + address) / PE_INIT_WORD_BYTES] >> (start + address) % PE_INIT_WORD_BYTES & low;
  }
  return !wild && !unset;
}

/* The same of runs of some lanes. */
static bool runs_pass(const pe_checker *checker, const pe_warp *w, const pe_pattern_site *site, uint64_t base) {
  uint64_t size = site->step ? site->width * site->size : site->size;
  for (uint32_t lane = 0; lane < PE_WARP_LANES; lane += site->width)
    if (!passes(checker, w, site->kind & PE_WRITE, pe_pattern_address(site, base, lane), size, site->size)) return false;
  return true;
}

/* The same of some lanes. */
static bool some_pass(const pe_checker *checker, const pe_warp *w, const pe_pattern_site *site, uint32_t mask,
                      uint64_t base) {
  PE_FOR_LANES(lane, mask)
    if (!passes(checker, w, site->kind & PE_WRITE, pe_pattern_address(site, base, lane), site->size, site->size))
      return false;
  return true;
}

/* What is written around the word of a lane; and if that has not all of the pattern, code may look at the words. */
static void keep(const pe_checker *checker, const pe_warp *w, const pe_pattern_site *site, uint64_t base, uint32_t lane) {
  pe_init_keep_shared(&checker->init, w, pe_pattern_address(site, base, lane));
  const pe_range *kept = pe_shared_range(w);
  uint64_t first = w->shared_base + ((base + site->low) & (site->narrow ? UINT32_MAX : UINT64_MAX)) - kept->first;
  if (!pe_within(first, site->span, kept->size)) pe_init_show_bits(&checker->init, w);
}

bool pe_init_pattern(pe_checker *checker, const pe_warp *w, const pe_pattern_site *site, uint32_t mask, uint64_t base) {
  bool writes = site->kind & PE_WRITE, reads = checker->checks & PE_CHECK_INIT && !writes;
  if (site->space != PE_SHARED || (writes && site->kind & PE_READ)) return false;
  bool together = reads && site->width == 1 && site->size <= PE_INIT_LARGEST;
  bool good = mask != PE_ALL_LANES ? some_pass(checker, w, site, mask, base)
              : together           ? all_pass(checker, w, site, base)
                                   : runs_pass(checker, w, site, base);
  if (good && reads && w->ranges) keep(checker, w, site, base, (uint32_t)__builtin_ctz(mask));
  return good;
}
