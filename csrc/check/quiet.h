/* quiet.h: memory that a launch does not write: the checker `race` need not know who reads it.
 *
 * Compiled code says through which of its kernel's parameters the kernel may write memory (ptxemu/analysis/written.py).  An extent
 * is *quiet* that none of these leads to, as long as no other launch runs.
 */
#ifndef PTXEMU_QUIET_H
#define PTXEMU_QUIET_H
#include <stdbool.h>
#include <stdint.h>
#include "host.h"
#include "observer.h"

/* CDEF BEGIN */
/* What a kernel may write by: a pointer, or the handle of a surface, `offset` bytes into its parameters. One of those in a row whose
 * `other` is set, but for the last one, is a pointer, and the rest may be numbers. */
enum { PE_BY_POINTER, PE_BY_SURFACE };
enum { PE_MOST_WAYS = 32 };
typedef struct pe_way {
  uint32_t by, other;
  uint64_t offset;
} pe_way;
typedef struct pe_ways {
  uint64_t count;
  pe_way way[32]; /* PE_MOST_WAYS */
} pe_ways;
/* CDEF END */

enum { PE_KNOWN_QUIET = 4 };

/* What a CTA has found of some extents. */
typedef struct pe_quiet {
  struct {
    pe_range range;
    bool quiet;
  } known[PE_KNOWN_QUIET];
  uint32_t next;
} pe_quiet;

struct pe_checker;
struct pe_order;

/* Whether an address lies in quiet memory; all of that, then. */
bool pe_quiet_at(struct pe_checker *checker, const pe_warp *w, uint64_t address, pe_range *all);

/* The lanes of a plain read that are not in quiet memory; compiled code does not tell of others there any more. */
uint32_t pe_quiet_pass(struct pe_checker *checker, const pe_warp *w, const pe_memory_event *event, uint32_t mask);

/* The same of a pattern: whether all lanes are. */
bool pe_quiet_pattern(struct pe_checker *checker, const pe_warp *w, const pe_pattern_site *site, uint32_t mask,
                      uint64_t base);

/* Nothing is quiet any more for those launches that run. With the mutex of `order` held. */
void pe_quiet_end(struct pe_order *order);

#endif
