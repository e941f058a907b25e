/* checker.h: what checkers share: how they are called, and where they leave what they find. */
#ifndef PTXEMU_CHECKER_H
#define PTXEMU_CHECKER_H
#include <pthread.h>
#include "check.h"
#include "extents.h"
#include "init.h"
#include "members.h"
#include "observer.h"
#include "order.h"
#include "shadow.h"
#include "sites.h"
#include "surface.h"
#include "text.h"
#include "waits.h"

typedef struct pe_findings {
  pthread_mutex_t mutex;
  pe_finding *items; /* the oldest first */
  size_t count, room;
  uint64_t dropped;
} pe_findings;

/* What is known of a site: its accesses are strong among threads of their CTA, or of their cluster, alone; or the async proxy makes
 * them. */
enum { PE_SITE_OF_CTA = 1, PE_SITE_OF_CLUSTER = 2, PE_SITE_OF_PROXY = 4 };

/* Which table of stamps. */
enum { PE_OF_READS, PE_OF_WRITES };

/* What the checker `race` knows: of each word its last write and its last read, and what puts accesses in an order. */
typedef struct pe_race {
  pe_order order;
  pe_shadow writes, reads;   /* a pe_stamp for each word */
  pe_shadow bytes[2];        /* one for each byte of words that are split, of reads and of writes */
  _Atomic bool has_bytes[2]; /* there are these */
  pe_sites sites;
  uint8_t *narrow;       /* of each site, PE_SITE_OF_CTA ... */
  _Atomic bool scoped;   /* that there are such sites */
  _Atomic uint64_t lost; /* accesses of CTAs of which nothing is known, for there is no memory */
} pe_race;

struct pe_checker {
  pe_arena *arena;
  uint32_t checks;
  pe_observer observer;
  pe_extents extents;
  pe_findings findings;
  pe_race race;
  pe_init init;
  pe_members members;
  pe_waits waits;
  _Atomic uint64_t launches;
};

/* Keep a finding that `count` lanes share. */
void pe_keep_finding(pe_checker *checker, const pe_finding *finding, uint64_t count);

/* The place of a lane. */
pe_thread_place pe_place_of(const pe_warp *w, uint32_t lane);

/* Keep a finding of a lane, whose place, kernel and launch are filled in. */
void pe_report(pe_checker *checker, const pe_warp *w, uint32_t lane, pe_finding *finding);

/* Say where a device address in the shared memory of the warp's cluster is. */
void pe_add_shared(const pe_warp *w, uint64_t address, pe_text *t);

/* ---- the checkers ---- */

/* stray.c: accesses that leave what they may touch, or are not aligned. The lanes that go on. */
uint32_t pe_stray_access(pe_checker *checker, const pe_warp *w, const pe_memory_event *event);

/* race.c, race_access.c, race_patterns.c */
bool pe_race_init(pe_race *race, pe_arena *arena);
void pe_race_end(pe_race *race);
void pe_race_begun(pe_checker *checker, const pe_config *config);
void pe_race_ended(pe_checker *checker, const pe_config *config);
/* Accesses that were not looked at, for there was no memory. */
uint64_t pe_race_lost(const pe_race *race);
/* `first`: of its cluster (observer.h). */
uint64_t pe_race_block(pe_checker *checker, const pe_warp *w, const pe_warp *first);
void pe_race_access(pe_checker *checker, const pe_warp *w, const pe_memory_event *event, uint32_t mask);
/* Whether nothing is wrong with it; else it has to be looked at lane by lane. */
bool pe_race_pattern(pe_checker *checker, const pe_warp *w, const pe_pattern_site *site, uint32_t mask, uint64_t base);
/* The accesses of shared memory that are listed leave their stamps. */
void pe_race_listed(pe_checker *checker, const pe_warp *w);
/* List an access of shared memory, or a number of reads off one base, unless another one that is listed may race with it
 * (race_claims.c). */
bool pe_race_claim(const pe_warp *w, const pe_pattern_site *site, uint32_t number, uint32_t mask, uint64_t base);
void pe_race_order(pe_checker *checker, const pe_warp *w, uint32_t what, uint32_t mask);
void pe_race_barrier(pe_checker *checker, const pe_warp *w, uint32_t id, uint32_t how);
/* It goes on behind one; and these warps do, which have all come to it. */
void pe_race_left(pe_checker *checker, const pe_warp *w);
void pe_race_together(pe_checker *checker, const pe_warp *first, uint32_t warps);
/* race_sums.c: whether a worker may make sums in an allocation apart from others (twin.h) and leave stamps of them for itself; what it has
 * left comes there. */
bool pe_race_is_apart(pe_checker *checker, const pe_warp *w, uint64_t address, uint64_t size);
void pe_race_join(pe_checker *checker, const pe_launch *launch, uint64_t address, uint64_t size, uint32_t each,
                  const pe_stamp *stamps);
/* Memory is a kernel's anew: what was done there before does not matter. */
void pe_race_forget(pe_checker *checker, uint64_t address, uint64_t size);

/* init.c. An access that goes on; its position is told as long as not all is written that it may touch next. */
void pe_init_access(pe_checker *checker, const pe_warp *w, const pe_memory_event *event, uint32_t mask);
/* Whether it is one of shared memory, within its bounds and aligned, that reads what is written; else it has to be looked at. */
bool pe_init_pattern(pe_checker *checker, const pe_warp *w, const pe_pattern_site *site, uint32_t mask, uint64_t base);

/* init_columns.c: an access of tensor memory. */
void pe_init_columns(pe_checker *checker, const pe_warp *w, const pe_columns_event *event);

/* registers.c: lanes use one that nobody has written, PE_UNSET_CHOICE ... */
void pe_registers_unset(pe_checker *checker, const pe_warp *w, uint32_t pos, uint32_t use, uint32_t mask);

/* texels.c: where a texel is. */
void pe_add_texel(pe_checker *checker, const pe_surface_desc *surface, uint64_t address, pe_text *t);

/* sync.c: lanes of a warp that do not come to a barrier together. */
void pe_sync_barrier(pe_checker *checker, const pe_warp *w, uint32_t pos, uint32_t id, uint32_t mask, uint32_t how);
/* And membermasks that do not name the lane that has them, or lanes with others. */
void pe_sync_members(pe_checker *checker, const pe_warp *w, uint32_t pos, uint32_t mask, const uint32_t *members);

/* members.c: lanes come to an instruction with a membermask, or to a barrier of the CTA. */
void pe_sync_come(pe_checker *checker, const pe_warp *w, uint32_t pos, uint32_t mask, const uint32_t *members);
void pe_sync_wait(pe_checker *checker, const pe_warp *w, uint32_t pos, uint32_t id, uint32_t mask, uint32_t how);
void pe_members_end(pe_members *members);

/* waits.c: a CTA begins; accesses of what an asynchronous copy still reads or writes; lanes end groups of copies, or wait for them; a
 * launch ends. */
void pe_waits_block(pe_checker *checker, const pe_warp *w);
void pe_waits_access(pe_checker *checker, const pe_warp *w, const pe_memory_event *event);
void pe_waits_order(pe_checker *checker, const pe_warp *w, uint32_t what, uint32_t mask);
void pe_waits_launch_ended(pe_waits *waits);
void pe_waits_end(pe_waits *waits);

#endif
