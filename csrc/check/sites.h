/* sites.h: numbers for instructions that access memory, which are shorter than their source offsets. */
#ifndef PTXEMU_SITES_H
#define PTXEMU_SITES_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A hash table of source offsets; the number of one is where it is.  0 is that of all for which there is no place. */
typedef struct pe_sites {
  _Atomic uint32_t *pos; /* each plus 1; 0: free */
  uint32_t bits;
} pe_sites;

bool pe_sites_init(pe_sites *sites, uint32_t bits);
void pe_sites_end(pe_sites *sites);
/* Forget all, while nobody else uses the table. */
void pe_sites_clear(pe_sites *sites);

uint32_t pe_site_find(pe_sites *sites, uint32_t hash, uint32_t pos);
uint32_t pe_site_pos(const pe_sites *sites, uint32_t site); /* or PE_NO_POS */

/* The number of a source offset. */
static inline uint32_t pe_site_of(pe_sites *sites, uint32_t pos) {
  uint32_t hash = (pos * 0x9e3779b1u) >> (32 - sites->bits);
  bool known = hash && atomic_load_explicit(&sites->pos[hash], memory_order_relaxed) == pos + 1;
  return known ? hash : pe_site_find(sites, hash, pos);
}

#endif
