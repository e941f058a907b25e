/* processor.h: what the code asks of the processor that it runs on. */
#ifndef PTXEMU_PROCESSOR_H
#define PTXEMU_PROCESSOR_H
#include <stdint.h>

/* CPUs that this thread may run on. */
uint32_t pe_cpu_count(void);
/* Bytes of an array that the second cache of a core keeps beside what else goes through it. */
uint64_t pe_cached_bytes(void);

#endif
