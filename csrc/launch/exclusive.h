/* exclusive.h: launches in flight, and updates of memory without locks while no other thread can interfere. */
#ifndef PTXEMU_EXCLUSIVE_H
#define PTXEMU_EXCLUSIVE_H
#include "host.h"
#include "ptxemu.h"
#include "launch.h"

/* Begin a section of unlocked updates: 1 if no other thread can reach device memory until pe_exclusive_end, which must
 * then follow (a fault in between ends it too).  0: use locked operations; no end. */
int pe_exclusive_begin(pe_warp *w);
void pe_exclusive_end(pe_warp *w);

/* The same for the only thread that is left of a launch. */
bool pe_exclusive_enter(pe_launch *launch);
void pe_exclusive_leave(pe_launch *launch);

/* One worker of a launch is left, which may have updates without locks. */
void pe_flight_last_worker(pe_launch *launch);

/* ---- with pe_lock held -------------------------------------------------------------------------------------------- */

void pe_exclusive_init(void);
void pe_flight_begin(pe_launch *launch);
void pe_flight_end(pe_launch *launch);
/* From now on, other processes may update memory of an arena. */
void pe_flight_share(const pe_arena *arena);
/* In the child of a fork: its launches are over. */
void pe_flight_forget(void);

/* The numbers of the oldest and the newest launch in flight, UINT64_MAX and 0 where there is none. */
typedef struct pe_launch_span {
  uint64_t oldest, newest;
} pe_launch_span;

pe_launch_span pe_flight_span(void);

#endif
