/* signals.h: hardware traps of the host become faults of the kernel. */
#ifndef PTXEMU_SIGNALS_H
#define PTXEMU_SIGNALS_H

/* Install the handlers, or put them in front again if another library has replaced them. With pe_lock held. */
void pe_signals_ensure(void);
/* Give this thread an alternate stack. */
void pe_signals_thread(void);

#endif
