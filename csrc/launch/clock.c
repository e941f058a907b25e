/* clock.c: %clock counts at the rate of a processor, %globaltimer in nanoseconds. */
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif
#include "runtime.h"
#include "ptxemu.h"

uint64_t pe_nanoseconds(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t pe_clock(pe_warp *w) {
  (void)w;
#if defined(__x86_64__)
  return __rdtsc();
#else
  return pe_nanoseconds(CLOCK_MONOTONIC);
#endif
}

uint64_t pe_globaltimer(pe_warp *w) {
  (void)w;
  return pe_nanoseconds(CLOCK_REALTIME);
}
