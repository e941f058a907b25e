/* fiber.h: stacks of their own for warps, and the switch between them and their worker. */
#ifndef PTXEMU_FIBER_H
#define PTXEMU_FIBER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdnoreturn.h>

#define PE_DEFAULT_STACK (1u << 20)

typedef struct pe_fiber pe_fiber;

/* NULL when memory is short.  `color` staggers the stacks of one worker over the sets of the CPU's caches. */
pe_fiber *pe_fiber_create(size_t stack_bytes, uint32_t color);
void pe_fiber_destroy(pe_fiber *fiber);
size_t pe_fiber_stack_bytes(const pe_fiber *fiber);

/* Set up to run entry(argument), which must end in pe_fiber_leave; whatever the fiber ran before is forgotten. */
void pe_fiber_start(pe_fiber *fiber, void (*entry)(void *), void *argument);

/* Run the fiber until it suspends or leaves. */
void pe_fiber_resume(pe_fiber *fiber);

/* On the fiber: back to the caller of pe_fiber_resume. */
void pe_fiber_suspend(pe_fiber *fiber);
noreturn void pe_fiber_leave(pe_fiber *fiber);

/* How much of the stack is usable, and how much more than when it was new. */
size_t pe_fiber_committed(const pe_fiber *fiber);
size_t pe_fiber_grown(const pe_fiber *fiber);

/* How much more of the stack must become usable for an access of the address; 0: none of the stack lies there, or it is. */
size_t pe_fiber_wanting(const pe_fiber *fiber, uintptr_t address);

/* Make so much more of the stack usable. Async-signal-safe. */
bool pe_fiber_grow(pe_fiber *fiber, size_t bytes);

/* Make a stack that has grown by more than `bytes` as small as a new one; what is there is forgotten. */
void pe_fiber_shrink(pe_fiber *fiber, size_t bytes);

/* The address lies in the unmapped pages below the stack. */
bool pe_fiber_overflowed(const pe_fiber *fiber, uintptr_t address);

/* Bytes of stack below the caller's frame. */
size_t pe_fiber_headroom(const pe_fiber *fiber);

/* The lowest address down to which device functions may fill the stack; what is left is for the runtime's functions. */
uintptr_t pe_fiber_limit(const pe_fiber *fiber);

/* Give up the frames on the stack; the highest stack address, where a signal handler may make execution continue. */
uintptr_t pe_fiber_abandon(pe_fiber *fiber);

/* The switch is the ucontext one: a signal handler leaves the fiber itself instead of redirecting it. */
bool pe_fiber_portable(void);

#endif
