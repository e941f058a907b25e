/* runtime.h: one lock for everything that is rare; reset in the child of a fork. */
#ifndef PTXEMU_RUNTIME_H
#define PTXEMU_RUNTIME_H
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

void pe_runtime_init(void);
/* A kernel whose stack has no room for what follows faults before. */
void pe_lock(void);
void pe_unlock(void);
void pe_wait(pthread_cond_t *condition);
uint64_t pe_nanoseconds(clockid_t clock);
/* So long from now (CLOCK_MONOTONIC). */
struct timespec pe_after(uint32_t milliseconds);
/* False when the deadline (CLOCK_MONOTONIC) has passed. */
bool pe_wait_until(pthread_cond_t *condition, const struct timespec *deadline);
void pe_condition_init(pthread_cond_t *condition);

#endif
