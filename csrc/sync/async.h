/* async.h: barriers in two halves (mbarrier objects, barrier.cluster) and asynchronous copies, as JIT code calls them. */
#ifndef PTXEMU_ASYNC_H
#define PTXEMU_ASYNC_H
#include "ptxemu.h"

#pragma GCC visibility push(default)
/* CDEF BEGIN */
/* ---- mbarrier.c --------------------------------------------------------------------------------------------------- */

/* What happens to the object.  Those with EXPECT_TX take a number of bytes, LOOK nothing, the others a count of arrivals. */
enum {
  PE_MBARRIER_INIT,
  PE_MBARRIER_INVAL,
  PE_MBARRIER_ARRIVE,
  PE_MBARRIER_DROP,
  PE_MBARRIER_EXPECT_TX,
  PE_MBARRIER_COMPLETE_TX,
  PE_MBARRIER_ARRIVE_EXPECT_TX,
  PE_MBARRIER_DROP_EXPECT_TX,
  PE_MBARRIER_ARRIVE_NO_COMPLETE,
  PE_MBARRIER_DROP_NO_COMPLETE,
  PE_MBARRIER_ARRIVE_LATER,
  PE_MBARRIER_ARRIVE_NOINC, /* like LATER when all copies before it are complete */
  PE_MBARRIER_TEST_WAIT,
  PE_MBARRIER_TRY_WAIT,
  PE_MBARRIER_INIT_V1, /* with .layout::v1 */
  PE_MBARRIER_LOOK     /* at the object, which stays as it is */
};

/* Fields of the opaque 64 bits that lowerings look at: the count of pending arrivals, the phase's parity, the layout. */
enum { PE_MBARRIER_PENDING_BITS = 20, PE_MBARRIER_PHASE_BIT = 61, PE_MBARRIER_LAYOUT_BIT = 62 };

typedef struct pe_mbarrier_site {
  uint32_t pos;
  uint16_t op;      /* PE_MBARRIER_* */
  uint16_t space;   /* PE_GENERIC or PE_SHARED */
  uint32_t relaxed; /* whether it orders nothing that its thread did before */
} pe_mbarrier_site;

/* The lanes of `mask` in turn; value[i] is lane i's count or number of bytes.  state[i], unless `state` is NULL, becomes
 * the object as it was before lane i's operation. */
void pe_mbarrier(pe_warp *w, const pe_mbarrier_site *site, uint32_t mask, const uint64_t *addr, const uint32_t *value,
                 uint64_t *state);

/* The same in the same place of every CTA of the cluster whose rank is in ctas[i]. */
void pe_mbarrier_multicast(pe_warp *w, const pe_mbarrier_site *site, uint32_t mask, const uint64_t *addr,
                           const uint32_t *value, const uint16_t *ctas);

/* The lanes whose phase of parity[i] (bit 0) is complete.  When there are others, the warps of the CTA that can run get
 * a turn first. */
uint32_t pe_mbarrier_wait(pe_warp *w, const pe_mbarrier_site *site, uint32_t mask, const uint64_t *addr,
                          const uint32_t *parity);

/* ---- copy.c ------------------------------------------------------------------------------------------------------- */

typedef struct pe_copy_site {
  uint32_t pos;
  uint16_t target; /* PE_SHARED or PE_GLOBAL */
  uint16_t source;
  uint32_t size; /* bytes a lane, for pe_copy */
  uint16_t op;   /* PE_ATOM_*, for pe_bulk_reduce */
  uint16_t type; /* PE_TYPE_* */
} pe_copy_site;

/* cp.async: `size` bytes a lane, of which only the first given[i] are read and the rest are zeros. given == NULL: all. */
void pe_copy(pe_warp *w, const pe_copy_site *site, uint32_t mask, const uint64_t *target, const uint64_t *source,
             const uint32_t *given);

/* cp.async.bulk: size[i] bytes of lane i; bytes[i], unless NULL, tells which bytes of every 16 are written. */
void pe_bulk_copy(pe_warp *w, const pe_copy_site *site, uint32_t mask, const uint64_t *target, const uint64_t *source,
                  const uint32_t *size, const uint16_t *bytes);

/* The same but for the first left[i] and the last right[i] bytes, at most 15, which need not be there. */
void pe_bulk_copy_within(pe_warp *w, const pe_copy_site *site, uint32_t mask, const uint64_t *target, const uint64_t *source,
                         const uint32_t *size, const uint32_t *left, const uint32_t *right);

/* The same with .multicast::cluster: the same place of every CTA of the cluster whose rank is in ctas[i] is written, and the bytes
 * are taken off the count of the object at the same place as object[i] there. */
void pe_bulk_multicast(pe_warp *w, const pe_copy_site *site, const pe_mbarrier_site *completion, uint32_t mask,
                       const uint64_t *target, const uint64_t *source, const uint32_t *size, const uint16_t *ctas,
                       const uint64_t *object);

/* cp.reduce.async.bulk: every element of the target is updated. */
void pe_bulk_reduce(pe_warp *w, const pe_copy_site *site, uint32_t mask, const uint64_t *target, const uint64_t *source,
                    const uint32_t *size);

/* st.bulk: size[i] zeros of lane i, a multiple of 8. */
void pe_bulk_zero(pe_warp *w, const pe_copy_site *site, uint32_t mask, const uint64_t *target, const uint64_t *size);

/* ---- cluster.c ---------------------------------------------------------------------------------------------------- */

/* `relaxed`: the arrival does not release what was before it. */
void pe_cluster_arrive(pe_warp *w, uint32_t pos, uint32_t mask, uint32_t relaxed);
void pe_cluster_wait(pe_warp *w, uint32_t pos, uint32_t mask);

/* ---- cancel.c ----------------------------------------------------------------------------------------------------- */

typedef struct pe_cancel_site {
  uint32_t pos;
  uint16_t space;     /* PE_GENERIC or PE_SHARED, of targets and objects */
  uint16_t multicast; /* 1: to every CTA of the cluster */
} pe_cancel_site;

/* clusterlaunchcontrol.try_cancel: each lane takes a cluster out of the grid, is told of it at target[i], and that at object[i]. */
void pe_cluster_cancel(pe_warp *w, const pe_cancel_site *site, uint32_t mask, const uint64_t *target,
                       const uint64_t *object);
/* CDEF END */
#pragma GCC visibility pop

#endif
