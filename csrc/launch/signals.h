/* signals.h: hardware traps of the host become faults of the kernel. */
#ifndef PTXEMU_SIGNALS_H
#define PTXEMU_SIGNALS_H
#include <signal.h>

enum { PE_ALTERNATE_STACK_BYTES = 64 << 10 };

/* Install the handlers, or put them in front again if another library has replaced them. With pe_lock held. */
void pe_signals_ensure(void);
/* Give this thread an alternate stack. */
void pe_signals_thread(void);
/* What threads that run kernels do not take: all signals but those of their own making, so that Ctrl-C reaches the program. */
const sigset_t *pe_signals_blocked(void);

#endif
