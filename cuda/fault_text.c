/* fault_text.c: says on stderr what a kernel did wrong, and keeps it. */
#include <pthread.h>
#include <stdio.h>
#include "fault_text.h"
#include "message.h"

enum { LONGEST = 2048 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char last[LONGEST];

cudaError_t px_say_fault(const px_kernel *kernel, const pe_record *record) {
  char place[64];
  uint32_t file, line, code = pe_fault_code(record->kind);
  bool located = record->pos != PE_NO_POS && !pe_module_locate(kernel->module->resident, record->pos, &file, &line);
  if (located) snprintf(place, sizeof place, "<module>:%u", line);
  pe_fault_names names = {.kernel = kernel->name, .place = located ? place : NULL, .arena = px_device_get()->parts.arena};
  pthread_mutex_lock(&lock);
  pe_fault_text(record, &names, last, sizeof last);
  fflush(stdout);
  fprintf(stderr, "ptxemu: %s\n", last);
  pthread_mutex_unlock(&lock);
  return code ? (cudaError_t)code : cudaErrorLaunchFailure;
}

const char *ptxemu_last_fault(void) { return last[0] ? last : NULL; }
