/* sites.c: numbers for instructions. */
#include <stdlib.h>
#include <string.h>
#include "sites.h"
#include "host.h"

enum { PROBES = 64 };

bool pe_sites_init(pe_sites *sites, uint32_t bits) {
  *sites = (pe_sites){.pos = calloc((size_t)1 << bits, sizeof *sites->pos), .bits = bits};
  return sites->pos != NULL;
}

void pe_sites_end(pe_sites *sites) { free((void *)sites->pos); }

void pe_sites_clear(pe_sites *sites) { memset((void *)sites->pos, 0, sizeof *sites->pos << sites->bits); }

uint32_t pe_site_find(pe_sites *sites, uint32_t hash, uint32_t pos) {
  uint32_t last = (1u << sites->bits) - 1;
  for (uint32_t i = 0; i < PROBES; i++) {
    uint32_t at = (hash + i) & last, found = 0;
    if (!at) continue;
    if (atomic_compare_exchange_strong(&sites->pos[at], &found, pos + 1) || found == pos + 1) return at;
  }
  return 0;
}

uint32_t pe_site_pos(const pe_sites *sites, uint32_t site) {
  uint32_t found = atomic_load_explicit(&sites->pos[site], memory_order_relaxed);
  return found ? found - 1 : PE_NO_POS;
}
