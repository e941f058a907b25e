/* processor.h: what the code asks of the processor that it runs on. */
#ifndef PTXEMU_PROCESSOR_H
#define PTXEMU_PROCESSOR_H
#include <stdint.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

/* How long to look out for what others do before one sleeps: about as long as it takes to sleep and to be woken. */
#define PE_LOOK_OUT_NANOSECONDS 50000

/* Between two looks. */
static inline void pe_breathe(void) {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* CPUs that this thread may run on. */
uint32_t pe_cpu_count(void);
/* Bytes of an array that the second cache of a core keeps beside what else goes through it. */
uint64_t pe_cached_bytes(void);

#endif
