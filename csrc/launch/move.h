/* move.h: a worker leaves a thread of the program for one of the pool. */
#ifndef PTXEMU_MOVE_H
#define PTXEMU_MOVE_H
#include <stdbool.h>
#include "launch.h"
#include "worker.h"

/* Whether the workers of a launch, whose warps have no fibers of their own, can move: between two CTAs all can, but those of kernels
 * with loops may be long in one. */
bool pe_move_is_possible(const pe_launch *launch);
void pe_move_init(void);

/* On the worker's fiber, between two CTAs. */
void pe_move_if_asked(pe_worker *worker);

#endif
