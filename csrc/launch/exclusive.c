/* exclusive.c: when updates of device memory need no atomic instructions.
 *
 * A launch with one worker, alone on its arena, may update memory with plain loads and stores.  The right is revoked when
 * another launch starts, or other processes get memory: whoever does that clears `exclusive` and waits out the update under way.
 * The owner's side is two plain accesses (store `updating`, load `exclusive`) whose order the membarrier system call makes hold.
 */
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#if defined(__linux__) && defined(SYS_membarrier)
#include <linux/membarrier.h>
#endif
#include "arena.h"
#include "exclusive.h"
#include "internal.h"
#include "launch.h"
#include "runtime.h"

static pe_launch *in_flight;
static bool have_barrier;

#ifdef SYS_membarrier
void pe_exclusive_init(void) {
  have_barrier = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

static void barrier_all_threads(void) { syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0); }
#else
void pe_exclusive_init(void) {}

static void barrier_all_threads(void) {}
#endif

static void take_back(pe_launch *launch) {
  atomic_store(&launch->exclusive, 0);
  barrier_all_threads();
  while (atomic_load(&launch->updating)) sched_yield();
}

void pe_flight_share(const pe_arena *arena) {
  for (pe_launch *launch = in_flight; launch; launch = launch->next_in_flight)
    if (launch->arena == arena && atomic_load(&launch->exclusive)) take_back(launch);
}

/* Whether no other launch or process has the arena; one that has it to itself does so no longer. */
static bool alone(const pe_launch *launch) {
  bool found = !pe_arena_is_shared(launch->arena);
  for (pe_launch *other = in_flight; other; other = other->next_in_flight) {
    if (other == launch || other->arena != launch->arena) continue;
    found = false;
    if (atomic_load(&other->exclusive)) take_back(other);
  }
  return found;
}

void pe_flight_last_worker(pe_launch *launch) {
  pe_lock();
  atomic_store(&launch->exclusive, alone(launch) && have_barrier);
  pe_unlock();
}

void pe_flight_begin(pe_launch *launch) {
  bool exclusive = alone(launch) && have_barrier && launch->workers == 1;
  atomic_store(&launch->exclusive, exclusive);
  launch->next_in_flight = in_flight;
  in_flight = launch;
}

void pe_flight_end(pe_launch *launch) {
  pe_launch **link = &in_flight;
  while (*link && *link != launch) link = &(*link)->next_in_flight;
  if (*link) *link = launch->next_in_flight; /* else the process is a fork of the one that began it */
}

void pe_flight_forget(void) {
  for (pe_launch *launch = in_flight; launch; launch = launch->next_in_flight) {
    atomic_store(&launch->exclusive, 0);
    if (!launch->stepped) pe_launch_orphaned(launch);
  }
  in_flight = NULL;
}

pe_launch_span pe_flight_span(void) {
  pe_launch_span span = {UINT64_MAX, 0};
  for (const pe_launch *launch = in_flight; launch; launch = launch->next_in_flight) {
    if (launch->gridid < span.oldest) span.oldest = launch->gridid;
    if (launch->gridid > span.newest) span.newest = launch->gridid;
  }
  return span;
}

bool pe_exclusive_enter(pe_launch *launch) {
  if (!atomic_load_explicit(&launch->exclusive, memory_order_relaxed)) return false;
  atomic_store_explicit(&launch->updating, 1, memory_order_relaxed);
  atomic_signal_fence(memory_order_seq_cst);
  if (atomic_load_explicit(&launch->exclusive, memory_order_relaxed)) return true;
  pe_exclusive_leave(launch);
  return false;
}

void pe_exclusive_leave(pe_launch *launch) { atomic_store_explicit(&launch->updating, 0, memory_order_release); }

int pe_exclusive_begin(pe_warp *w) { return pe_exclusive_enter(w->launch); }

void pe_exclusive_end(pe_warp *w) { pe_exclusive_leave(w->launch); }
