/* signals.h: faults of the host's hardware become faults of the kernel. */
#ifndef PTXEMU_SIGNALS_H
#define PTXEMU_SIGNALS_H

/* Install the handlers, or put them in front again if somebody replaced them. With pe_lock held. */
void pe_signals_ensure(void);
/* Give this thread an alternate stack. */
void pe_signals_thread(void);

#endif
