/* guest.h: a thread of the program that runs a launch itself, as a thread of the pool would. */
#ifndef PTXEMU_GUEST_H
#define PTXEMU_GUEST_H
#include <fenv.h>
#include <signal.h>
#include <stdbool.h>

/* What is the thread's own, and comes back when it leaves. */
typedef struct pe_guest {
  sigset_t mask;
  stack_t stack;
  bool stack_taken;
  int cancel;
  fenv_t environment;
} pe_guest;

/* Make this thread fit to run kernels, and take it back. Between the two, no signal comes that is not of its own making, so that
 * the program's handlers never run on a kernel's stack. False: the thread cannot. */
bool pe_guest_enter(pe_guest *guest);
void pe_guest_leave(pe_guest *guest);

#endif
