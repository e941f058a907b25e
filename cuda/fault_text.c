/* fault_text.c: says on stderr what a kernel did wrong, and keeps it. */
#include <pthread.h>
#include <stdio.h>
#include "fault_text.h"
#include "message.h"

enum { LONGEST = 2048 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char last[LONGEST];

cudaError_t px_say_fault(const pe_launch *launch, uint32_t kind) {
  pthread_mutex_lock(&lock);
  pe_launch_fault_text(launch, "<module>", last, sizeof last);
  fflush(stdout);
  fprintf(stderr, "ptxemu: %s\n", last);
  pthread_mutex_unlock(&lock);
  return (cudaError_t)pe_fault_code(kind);
}

const char *ptxemu_last_fault(void) { return last[0] ? last : NULL; }
