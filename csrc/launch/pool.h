/* pool.h: the threads that run launches. */
#ifndef PTXEMU_POOL_H
#define PTXEMU_POOL_H
#include <stdbool.h>
#include "ptxemu.h"

/* How many threads a launch that wants up to `wanted` gets now (at least 1). With pe_lock held. */
uint32_t pe_pool_offer(uint32_t wanted);
/* Hand the launch to up to launch->workers threads; the number that took it. With pe_lock held. */
uint32_t pe_pool_assign(pe_launch *launch);
/* Take a worker for this thread, the launch's guest, before others are assigned. False: there is no memory. With pe_lock held. */
bool pe_pool_take(pe_launch *launch);
/* Run CTAs as that worker, until there are none left or a thread of the pool goes on in its place. Whether the launch has ended; else
 * it may be gone if that is told to `ended`. */
bool pe_pool_join(pe_launch *launch);
void pe_pool_forget(void);

#endif
