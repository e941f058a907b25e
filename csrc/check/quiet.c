/* quiet.c: memory that a launch does not write. */
#include <string.h>
#include "quiet.h"
#include "atomic.h"
#include "checker.h"
#include "fault.h"
#include "launch.h"
#include "surface_access.h"

/* ---- what is quiet ---- */

/* Where a way leads: false, if to nothing that is known. */
static bool leads_to(pe_checker *checker, const pe_warp *w, const pe_way *way, pe_extent *out) {
  uint64_t value;
  memcpy(&value, (const void *)(uintptr_t)(w->param_base + way->offset), sizeof value);
  if (way->by == PE_BY_SURFACE) {
    const pe_su_context *surfaces = pe_launch_surfaces(w);
    const pe_surface_desc *surface = surfaces ? pe_surface_lookup(surfaces->table, value) : NULL;
    if (!surface) return false;
    value = (uint64_t)(uintptr_t)surface->base;
  }
  return pe_extents_at(&checker->extents, value, out);
}

/* Whether it is known where all ways lead, and none leads to an extent. */
static bool is_off(pe_checker *checker, const pe_warp *w, const pe_ways *ways, const pe_extent *extent) {
  bool any = false;
  for (uint64_t i = 0; i < ways->count; i++) {
    pe_extent there;
    bool known = leads_to(checker, w, &ways->way[i], &there);
    if (known && there.address == extent->address) return false;
    any |= known;
    if (ways->way[i].other) continue;
    if (!any) return false;
    any = false;
  }
  return true;
}

static bool is_quiet(pe_checker *checker, const pe_warp *w, const pe_extent *extent) {
  const pe_ways *ways = (const pe_ways *)(uintptr_t)pe_order_block_of(w)->stamping[0].written;
  bool blanks = checker->checks & PE_CHECK_INIT && pe_init_has_blanks(&checker->init, extent->address, extent->size);
  return ways && extent->lasting && extent->address % PE_RANGE_ALIGN == 0 && !blanks && is_off(checker, w, ways, extent);
}

bool pe_quiet_at(pe_checker *checker, const pe_warp *w, uint64_t address, pe_range *all) {
  pe_order_block *b = pe_order_block_of(w);
  pe_quiet *q = &b->quiet;
  pe_extent extent;
  if (b->blind || atomic_load_explicit(&checker->race.order.overlapped, memory_order_relaxed)) return false;
  for (uint32_t i = 0; i < PE_KNOWN_QUIET; i++) {
    *all = q->known[i].range;
    if (address - all->first < all->size) return q->known[i].quiet;
  }
  pe_require_stack();
  if (!pe_extents_at(&checker->extents, address, &extent)) return false;
  uint32_t at = q->next++ % PE_KNOWN_QUIET;
  *all = q->known[at].range = (pe_range){extent.address, extent.size};
  return q->known[at].quiet = is_quiet(checker, w, &extent);
}

/* ---- reads there ---- */

static void keep(const pe_warp *w, uint32_t pos, const pe_range *all) {
  pe_range *kept = w->ranges ? pe_quiet_range_of(w, pos) : NULL;
  if (!kept) return;
  __atomic_store_n(&kept->size, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&kept->first, all->first, __ATOMIC_RELAXED);
  __atomic_store_n(&kept->size, all->size, __ATOMIC_RELAXED);
}

static bool is_global(uint32_t space) { return space == PE_GLOBAL || space == PE_GENERIC || space == PE_TEXEL; }

PE_WIDEST static uint32_t lanes_in(const pe_memory_event *e, const pe_range *all) {
  uint32_t in = 0;
  if (all->size < e->size) return 0;
  for (uint32_t i = 0; i < PE_WARP_LANES; i++) in |= (uint32_t)(e->address[i] - all->first <= all->size - e->size) << i;
  return in;
}

uint32_t pe_quiet_pass(pe_checker *checker, const pe_warp *w, const pe_memory_event *event, uint32_t mask) {
  pe_range all;
  if (event->kind != PE_READ || event->order || !is_global(event->space)) return mask;
  for (uint32_t in; mask; mask &= ~in) {
    if (!pe_quiet_at(checker, w, event->address[__builtin_ctz(mask)], &all)) break;
    keep(w, event->pos, &all);
    in = lanes_in(event, &all) & mask;
    if (!in) break;
  }
  return mask;
}

bool pe_quiet_pattern(pe_checker *checker, const pe_warp *w, const pe_pattern_site *site, uint32_t mask, uint64_t base) {
  pe_range all;
  if (site->kind != PE_READ || site->narrow || !is_global(site->space)) return false;
  if (!pe_quiet_at(checker, w, base + site->offset[__builtin_ctz(mask)], &all)) return false;
  PE_FOR_LANES(lane, mask)
    if (!pe_within(base + site->offset[lane] - all.first, site->size, all.size)) return false;
  keep(w, site->pos, &all);
  return true;
}

void pe_quiet_end(pe_order *order) {
  for (pe_order_block *b = order->blocks; b; b = b->next) {
    pe_range *kept = (pe_range *)(uintptr_t)atomic_load_explicit(&b->ranges, memory_order_relaxed);
    for (uint32_t i = 0; kept && i < PE_RANGES; i++) __atomic_store_n(&kept[PE_QUIET_RANGES + i].size, 0, __ATOMIC_RELAXED);
  }
}
