/* cta.h: a CTA and its warps, owned by one worker. */
#ifndef PTXEMU_CTA_H
#define PTXEMU_CTA_H
#include "async.h"
#include "fiber.h"
#include "launch.h"
#include "sync.h"

typedef struct pe_warp_state {
  pe_warp warp; /* first: JIT code's pe_warp pointer is a pointer to this */
  pe_fiber *fiber;
  uint32_t result;   /* of the barrier.red it waited for */
  uint32_t waits_at; /* where it waits last, at a barrier of its CTA or of the grid, with these lanes */
  uint32_t waiting;
  bool meets_grid;                /* and it is that of the grid, now */
  const pe_mbarrier_site *awaits; /* the last wait for an mbarrier that failed, of this lane and address */
  int32_t awaiting_lane;
  uint64_t awaited;
  uint32_t cluster_arrived;            /* lanes that have arrived at barrier.cluster in this phase ... */
  uint32_t cluster_passes;             /* and in the last one, without having waited yet */
  uint32_t at_barrier[PE_MEETINGS];    /* lanes that wait at a barrier one by one */
  uint32_t released;                   /* lanes whose barrier is complete, and that have not gone on yet */
  uint32_t lane_result[PE_WARP_LANES]; /* of the barrier.red that each waits for */
} pe_warp_state;

struct pe_cta {
  uint32_t live;            /* warps that have not exited */
  uint32_t runnable;        /* of them, those that do not wait */
  uint32_t spinning;        /* warps that ended their turn in a loop that spins */
  uint32_t in_use;          /* barriers with arrivals; all others are zero */
  uint32_t polling;         /* warps whose last wait for an mbarrier failed, since anything happened */
  uint32_t stuck_rounds;    /* rounds of turns since then in which all warps that could run did that */
  bool cluster_arrivals;    /* some lane has arrived at barrier.cluster */
  uint32_t cluster_waiting; /* warps that wait at it */
  uint32_t cluster_pos;     /* of the last wait */
  uint32_t cluster_phase;   /* how many of its phases are complete */
  pe_barrier_state barriers[PE_MEETINGS];
  pe_fiber *fibers[PE_MAX_WARPS];
  pe_warp_state *warps;    /* PE_MAX_WARPS of them */
  struct pe_tmem *tensors; /* NULL: nothing was allocated there yet */
  uint32_t rank;           /* of it in its cluster */
  pe_cta *peer;            /* the next of its cluster, all of whose CTAs are in a ring */
};

pe_cta *pe_cta_create(void);
void pe_cta_destroy(pe_cta *cta);
/* Make a vacant place ready for CTAs of a launch. One beyond the first of a worker gets stacks as large as those of `first` have
 * become, all of which counts as memory of the launch. False: there is no memory for its stacks. */
bool pe_cta_prepare(pe_cta *cta, pe_launch *launch, const pe_windows *windows, const pe_cta *first);
/* The launch has ended: give back the memory that its stacks took, except what most kernels need. */
void pe_cta_rest(pe_cta *cta);
/* Put CTA `number` of the grid, in which those of a cluster follow each other, there: all its warps can run.  The code of the kernel
 * may go on with those that follow it along x, as far as that is for code to do, but not with `last`; where CTAs run abreast, their
 * warps are put behind its own. The number of CTAs that one call of the code then runs. */
uint32_t pe_cta_place(pe_cta *cta, const pe_launch *launch, uint64_t number, uint64_t last);
/* Where CTA `number` is in the grid. */
void pe_cta_index(const pe_launch *launch, uint64_t number, uint32_t at[3]);
/* standing.c: the launch was stopped: keep where all warps stand that have not exited. */
void pe_record_stands(const pe_cta *cta);

#endif
