/* checker.h: what checkers share: how they are called, and where they leave what they find. */
#ifndef PTXEMU_CHECKER_H
#define PTXEMU_CHECKER_H
#include <pthread.h>
#include "check.h"
#include "extents.h"
#include "observer.h"

typedef struct pe_findings {
  pthread_mutex_t mutex;
  pe_finding *items; /* the oldest first */
  size_t count, room;
  uint64_t dropped;
} pe_findings;

struct pe_checker {
  pe_arena *arena;
  uint32_t checks;
  pe_observer observer;
  pe_extents extents;
  pe_findings findings;
  _Atomic uint64_t launches;
};

/* Keep a finding of a lane, whose place, kernel and launch are filled in. */
void pe_report(pe_checker *checker, const pe_warp *w, uint32_t lane, pe_finding *finding);

/* ---- the checkers ---- */

/* stray.c: accesses that leave what they may touch, or are not aligned. The lanes that go on. */
uint32_t pe_stray_access(pe_checker *checker, const pe_warp *w, const pe_memory_event *event);

#endif
