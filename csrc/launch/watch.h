/* watch.h: launches of which threads of the program run a part. */
#ifndef PTXEMU_WATCH_H
#define PTXEMU_WATCH_H
#include <stdbool.h>
#include "ptxemu.h"

/* See to it that the warps of a launch are asked to move after PE_WATCH_MILLISECONDS to twice that. False: nobody can.  All with
 * pe_lock held. */
enum { PE_WATCH_MILLISECONDS = 10 };
bool pe_watch_begin(pe_launch *launch);
void pe_watch_end(pe_launch *launch);
void pe_watch_forget(void);

#endif
