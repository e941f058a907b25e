/* runtime.c: one-time set-up, and the lock of everything that is rare: allocations, the pool, starts and ends of launches.
 *
 * A forked child has none of the parent's threads: it starts with the lock free, no workers and no launches in flight.
 */
#include <errno.h>
#include <time.h>
#include "runtime.h"
#include "exclusive.h"
#include "fault.h"
#include "move.h"
#include "pool.h"
#include "watch.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

void pe_lock(void) {
  pe_require_stack();
  pthread_mutex_lock(&lock);
}

void pe_unlock(void) { pthread_mutex_unlock(&lock); }

void pe_wait(pthread_cond_t *condition) { pthread_cond_wait(condition, &lock); }

struct timespec pe_after(uint32_t milliseconds) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  now.tv_sec += milliseconds / 1000;
  now.tv_nsec += (long)(milliseconds % 1000) * 1000000;
  if (now.tv_nsec >= 1000000000) now.tv_sec++, now.tv_nsec -= 1000000000;
  return now;
}

bool pe_wait_until(pthread_cond_t *condition, const struct timespec *deadline) {
  return pthread_cond_timedwait(condition, &lock, deadline) != ETIMEDOUT;
}

void pe_condition_init(pthread_cond_t *condition) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(condition, &attributes);
  pthread_condattr_destroy(&attributes);
}

static void child_of_fork(void) {
  pthread_mutex_init(&lock, NULL);
  pe_pool_forget();
  pe_watch_forget();
  pe_flight_forget();
}

static void set_up(void) {
  pthread_atfork(pe_lock, pe_unlock, child_of_fork);
  pe_exclusive_init();
  pe_move_init();
}

void pe_runtime_init(void) { pthread_once(&once, set_up); }
