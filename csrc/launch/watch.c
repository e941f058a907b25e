/* watch.c: a thread that looks at launches from time to time, and asks those to move that it has seen before.
 *
 * The program's thread has its signals, timeouts and whatever else it does to look after.
 */
#include "watch.h"
#include <stddef.h>
#include "launch.h"
#include "runtime.h"

enum { PATIENCE = 100 }; /* looks without a launch until the thread sleeps: to wake it costs the launch some microseconds */

static pe_launch *watched;
static pthread_cond_t call;
static bool exists, sleeps;

void pe_watch_forget(void) {
  watched = NULL;
  exists = false;
}

static void look(void) {
  for (pe_launch *launch = watched; launch; launch = launch->next_watched)
    if (launch->watched++) pe_ask(launch, PE_ASKED_TO_MOVE);
}

static void *watch(void *unused) {
  uint32_t quiet = 0;
  pe_lock();
  for (;;) {
    quiet = watched ? 0 : quiet + 1;
    sleeps = quiet > PATIENCE;
    for (; sleeps; quiet = 0) pe_wait(&call);
    struct timespec deadline = pe_after(PE_WATCH_MILLISECONDS);
    while (pe_wait_until(&call, &deadline)) {
    }
    look();
  }
  return unused;
}

static bool exist(void) {
  if (exists) return true;
  pe_condition_init(&call);
  return exists = !pe_thread_start(watch, NULL);
}

bool pe_watch_begin(pe_launch *launch) {
  if (!exist()) return false;
  launch->watched = 0;
  launch->next_watched = watched;
  watched = launch;
  if (sleeps) pthread_cond_signal(&call);
  sleeps = false;
  return true;
}

void pe_watch_end(pe_launch *launch) {
  pe_launch **link = &watched;
  while (*link && *link != launch) link = &(*link)->next_watched;
  if (*link) *link = launch->next_watched;
}
