/* supply.h: the CTAs of a grid that have not started, each of which starts once, or is cancelled. */
#ifndef PTXEMU_SUPPLY_H
#define PTXEMU_SUPPLY_H
#include "launch.h"

/* A run of CTAs that a worker has taken and not yet started; it ends where a cluster does. */
typedef struct pe_supply {
  uint64_t next, last;
} pe_supply;

/* Whether there is a next one: a worker that has none takes a run of those that nobody has taken. */
bool pe_supply_has_next(pe_supply *supply, pe_launch *launch);

/* Take a cluster out of the grid that has not started: the number of its first CTA. False: there is none left, but perhaps those that
 * other workers have taken; or it is a cooperative launch, all of whose CTAs count as started. */
bool pe_supply_cancel(pe_supply *supply, pe_launch *launch, uint64_t *number);

#endif
