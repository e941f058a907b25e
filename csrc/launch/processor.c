/* processor.c: how many CPUs there are, and how large their caches. */
#include "processor.h"
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

enum { USUAL_SECOND_CACHE = 1 << 20 }; /* bytes, where the system does not say */

uint32_t pe_cpu_count(void) {
  cpu_set_t cpus;
  if (sched_getaffinity(0, sizeof cpus, &cpus) == 0) return (uint32_t)CPU_COUNT(&cpus);
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? (uint32_t)online : 1;
}

static uint64_t second_cache(void) {
#ifdef _SC_LEVEL2_CACHE_SIZE
  long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  if (bytes > 0) return (uint64_t)bytes;
#endif
  return USUAL_SECOND_CACHE;
}

/* The system is asked once: the answer may take microseconds, as processors of virtual machines do not give it themselves. */
uint64_t pe_cached_bytes(void) {
  static _Atomic uint64_t known;
  uint64_t bytes = atomic_load_explicit(&known, memory_order_relaxed);
  if (bytes) return bytes;
  bytes = second_cache() / 2;
  atomic_store_explicit(&known, bytes, memory_order_relaxed);
  return bytes;
}
