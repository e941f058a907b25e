/* waits.h: asynchronous copies that nobody has waited for, as the checker `sync` knows them without `race`. */
#ifndef PTXEMU_WAITS_H
#define PTXEMU_WAITS_H
#include <pthread.h>
#include "copies.h"

/* The copies of a CTA, known by where its shared memory begins. */
typedef struct pe_waits_cta {
  uint64_t shared, launch;
  uint32_t ctaid[3];
  bool any;
  pe_copies of[PE_MAX_WARPS];
} pe_waits_cta;

typedef struct pe_waits {
  pthread_mutex_t mutex;
  pe_waits_cta **ctas;
  _Atomic size_t count; /* some look at it without the mutex */
  size_t room;
} pe_waits;

#endif
