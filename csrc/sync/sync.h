/* sync.h: what the scheduler asks of the barriers, mbarriers and clusters of a CTA. */
#ifndef PTXEMU_SYNC_H
#define PTXEMU_SYNC_H
#include <stdbool.h>
#include <stdint.h>
#include "ptxemu.h"

#define PE_BARRIERS 16 /* that instructions name */
#define PE_WARPGROUPS 8
#define PE_MEETINGS (PE_BARRIERS + PE_WARPGROUPS) /* and one for each warpgroup */

typedef struct pe_cta pe_cta;

/* ---- barrier.c ------------------------------------------------------------------------------------------------------ */

typedef struct pe_barrier_state {
  uint32_t expected; /* threads */
  uint32_t arrived;  /* threads */
  uint32_t waiting;  /* warps */
  uint32_t pos;      /* of the last arrival that waits */
  uint32_t arrival;  /* what the first arrival was: PE_ARRIVAL_* */
  bool whole_cta;    /* count 0: warps that exit lower `expected` */
  uint32_t popc, any, all;
} pe_barrier_state;

enum { PE_ARRIVAL_SYNC, PE_ARRIVAL_RED };

void pe_barriers_reset(pe_cta *cta);
/* A warp has exited: barriers that wait for the whole CTA may be complete now. */
void pe_barriers_exit(pe_cta *cta, uint32_t warpid);
/* No warp can run: record the deadlock. */
void pe_barriers_deadlock(pe_cta *cta);
/* Something happened in the CTA or its cluster that a warp may have waited for. */
void pe_cta_progress(pe_cta *cta);

/* ---- mbarrier.c ----------------------------------------------------------------------------------------------------- */

/* All warps that can run have waited for mbarriers for long: record the deadlock. */
void pe_mbarriers_deadlock(pe_cta *cta);

/* ---- cluster.c ------------------------------------------------------------------------------------------------------ */

/* The same place in the shared memory of another CTA of the cluster as a generic or .shared address has in its own; an address beyond
 * all memory if it has none. The result is generic. */
uint64_t pe_cluster_peer(const pe_warp *w, uint32_t space, uint64_t address, uint32_t rank);

/* If all lanes of a CTA's cluster have arrived at barrier.cluster or exited, begin its next phase. */
bool pe_cluster_complete(pe_cta *cta);

#endif
