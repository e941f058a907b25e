/* fault.h: how a warp leaves the kernel: by a fault, or because the launch was stopped. */
#ifndef PTXEMU_FAULT_H
#define PTXEMU_FAULT_H
#include <stdnoreturn.h>
#include "host.h"

/* Record a fault and leave the kernel. */
noreturn void pe_fault_at(pe_warp *w, const pe_record *fault);

/* pe_fault with the slot and the coordinates x, y, z, layer of a surface access. */
noreturn void pe_fault_surface(pe_warp *w, uint32_t kind, uint32_t pos, int32_t lane, uint32_t slot, const int64_t coord[4],
                               uint32_t size);

/* pe_fault with a text that says more. */
noreturn void pe_fault_note(pe_warp *w, uint32_t kind, uint32_t pos, int32_t lane, uint32_t space, uint64_t address,
                            uint32_t size, const char *note);

/* Keep the fault if it is the launch's first, count it, and stop the launch. Async-signal-safe. */
void pe_record_fault(pe_warp *w, const pe_record *fault);
/* Where a warp was last seen: accesses and calls leave their position; a kernel without either has left none. */
static inline uint32_t pe_last_position(const pe_warp *w) { return w->pos ? w->pos : PE_NO_POS; }
/* On a fiber: fault unless the runtime's functions find room on its stack, so that nothing overflows with a lock held. */
void pe_require_stack(void);
/* Abandon the running warp's context: back to the scheduler. */
noreturn void pe_leave(void);
/* The same because the launch was stopped. */
noreturn void pe_stop(pe_warp *w);
/* The launch was stopped: keep where the warp is if it is the first of which that is known. */
void pe_record_place(const pe_warp *w);

#endif
