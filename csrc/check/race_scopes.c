/* race_scopes.c: the checker `race` (race.c): strong accesses of the scopes .cta and .cluster, which those of other CTAs and clusters race
 * with, strong or not. */
#include <stdlib.h>
#include <string.h>
#include "race_access.h"

enum { SITES = 1u << PE_SITE_BITS };

bool pe_race_scopes_init(pe_race *race) {
  race->narrow = calloc(SITES, sizeof *race->narrow);
  return race->narrow != NULL;
}

void pe_race_scopes_end(pe_race *race) { free(race->narrow); }

void pe_race_scopes_clear(pe_race *race) { memset(race->narrow, 0, SITES * sizeof *race->narrow); }

void pe_race_note_scope(const pe_race_use *u) {
  pe_race *race = &u->checker->race;
  uint32_t order = u->event->order;
  uint8_t *narrow = &race->narrow[pe_stamp_site(u->stamp)], scope = order & PE_NARROW      ? PE_SITE_OF_CTA
                                                                    : order & PE_CLUSTERED ? PE_SITE_OF_CLUSTER
                                                                                           : 0;
  if (!scope && !race->scoped) return;
  if (scope) race->scoped = true;
  if (__atomic_load_n(narrow, __ATOMIC_RELAXED) != scope) __atomic_store_n(narrow, scope, __ATOMIC_RELAXED);
}

bool pe_race_is_beyond_scope(const pe_race_use *u, pe_stamp before) {
  const pe_harmless *h = &u->harmless;
  const uint8_t *narrow = u->checker->race.narrow;
  uint32_t clock;
  bool alone = u->shared && !u->b->clustered;
  if (alone || !(before & h->strong) || before < h->floor || before - h->first < h->span) return false;
  uint32_t either = __atomic_load_n(&narrow[pe_stamp_site(before)], __ATOMIC_RELAXED) |
                    __atomic_load_n(&narrow[pe_stamp_site(u->stamp)], __ATOMIC_RELAXED);
  if (!(either & (PE_SITE_OF_CTA | PE_SITE_OF_CLUSTER)) || pe_order_is_own(u->b, before, &clock)) return false;
  return either & PE_SITE_OF_CTA || !pe_order_is_in_cluster(&u->checker->race.order, u->b, before);
}
