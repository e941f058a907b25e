/* race_patterns.c: the checker `race` (race.c) at accesses whose addresses compiled code knows as a pattern of lanes. */
#include "race_runs.h"
#include "place.h"

/* Whether words from an address on are in one chunk of memory that others reach. */
PE_INLINE bool place(const pe_race_use *u, uint32_t space, uint64_t size, uint64_t *address) {
  const pe_warp *w = u->w;
  if (space == PE_SHARED ? !pe_within(*address, size, w->shared_size) : !pe_in_arena(w, *address, size)) return false;
  if (space == PE_SHARED) *address += w->shared_base;
  return pe_race_one_chunk(u, *address, *address + size - 1) && *address % 4 == 0;
}

/* Some lanes in shared memory: whether nothing is wrong. */
static bool some_pass(const pe_race_use *u, const pe_pattern_site *site, uint32_t mask, uint64_t base) {
  uint64_t address[PE_WARP_LANES];
  for (uint32_t i = 0; i < PE_WARP_LANES; i++) address[i] = pe_pattern_address(site, base, i);
  return !pe_race_look_in_shared(u, mask, address, site->size / 4);
}

/* All lanes with a byte or two each, side by side. */
static bool row_passes(pe_race_use *u, const pe_pattern_site *site, uint64_t base) {
  uint64_t address = pe_pattern_address(site, base, 0);
  uint32_t each = 4u >> (site->size == 2);
  if (!place(u, site->space, PE_WARP_LANES * site->size, &address)) return false;
  return pe_race_rows_pass(u, &(pe_race_row){.word = address, .count = PE_WARP_LANES / each, .each = each});
}

PE_WIDEST PE_UNWATCHED bool pe_race_pattern(pe_checker *checker, const pe_warp *w, const pe_pattern_site *site,
                                            uint32_t mask, uint64_t base) {
  pe_race_use u;
  bool one = !site->step, writes = site->kind & PE_WRITE;
  if (!pe_race_reached(site->space) || pe_quiet_pattern(checker, w, site, mask, base)) return true;
  bool in_shared = site->space == PE_SHARED && !pe_order_block_of(w)->clustered,
       runs = mask == PE_ALL_LANES && site->width > 1;
  if (site->size < 4 && (one || mask != PE_ALL_LANES || site->width != PE_WARP_LANES || checker->race.scoped)) return false;
  if (site->kind & PE_STRONG || (one && writes) || site->space == PE_GENERIC || !(runs || in_shared)) return false;
  if (!pe_race_begin(&u, checker, w, site->pos, site->kind, 0, site->space)) return true;
  if (site->size < 4) return row_passes(&u, site, base);
  if (!runs) return some_pass(&u, site, mask, base);
  uint64_t size = one ? site->size : site->width * site->size;
  uint32_t each = one ? PE_ALL_OF_ONE : (uint32_t)__builtin_ctz(site->size / 4), last = one ? site->width - 1 : 0;
  bool several = one;
  for (uint32_t lane = 0; lane < PE_WARP_LANES; lane += site->width) {
    uint32_t next = lane + site->width;
    if (!writes && next < PE_WARP_LANES && site->offset[next] == site->offset[lane]) {
      several = true; /* lanes do not race by reading */
      continue;
    }
    uint64_t address = pe_pattern_address(site, base, lane);
    if (!place(&u, site->space, size, &address)) return false;
    if (!pe_race_passes(&u, &(pe_race_run){address, (uint32_t)(size / 4), lane + last, each, several})) return false;
    several = one;
  }
  return true;
}
