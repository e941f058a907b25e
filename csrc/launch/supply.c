/* supply.c: workers take CTAs in ascending order, from one counter. */
#include "supply.h"

static bool take(pe_launch *launch, uint64_t count, pe_supply *out) {
  if (pe_stopped(launch)) return false;
  uint64_t taken = atomic_fetch_add(&launch->next_cta, count);
  if (taken >= launch->ctas) return false;
  uint64_t rest = launch->ctas - taken;
  out->next = launch->config.first + taken;
  out->last = out->next + (rest < count ? rest : count);
  return true;
}

bool pe_supply_has_next(pe_supply *supply, pe_launch *launch) {
  return supply->next < supply->last || take(launch, launch->chunk, supply);
}

bool pe_supply_cancel(pe_supply *supply, pe_launch *launch, uint64_t *number) {
  pe_supply found;
  if (launch->config.cooperative) return false;
  if (take(launch, launch->cluster, &found))
    *number = found.next;
  else if (supply->last - supply->next >= launch->cluster) /* the first of them may be the rest of one that has started */
    *number = supply->last -= launch->cluster;
  else
    return false;
  atomic_fetch_add_explicit(&launch->completed, launch->cluster, memory_order_relaxed);
  return true;
}
