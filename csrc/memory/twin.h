/* twin.h: sums that the workers of a launch make each in memory of its own.
 *
 * Where a kernel adds to device memory, and nothing orders what its blocks do, no other block can tell when the sums come there.  So a
 * worker has a *twin* of the allocation that it adds to first, which begins as zeros and needs no locked instructions; code adds to
 * it without a call.  The last worker adds all twins to the allocation.  A block itself must see its sums: before it loads from the
 * allocation, or stores to it, the worker adds its twin to it (pe_twin_settle), and has none from then on.
 */
#ifndef PTXEMU_TWIN_H
#define PTXEMU_TWIN_H
#include "atomic.h"
#include "launch.h"
#include "worker.h"

/* Adds what those lanes of `mask` do whose words the worker's twin has, and returns them; `added` has no results. */
uint32_t pe_twin_add(const pe_warp *w, const pe_atom_lanes *added, uint32_t mask);

/* A worker's part of a launch is over: its twin goes to the last worker. */
void pe_twin_hand_over(pe_worker *worker);

#endif
