/* jump.h: machine code that goes elsewhere, written over the beginning of a function. */
#ifndef PX_PRELOAD_JUMP_H
#define PX_PRELOAD_JUMP_H

#include <stdbool.h>
#include <stddef.h>

#if defined __x86_64__
enum {
  PX_JUMP_BYTES = 14,
  PX_FUNCTION_ALIGNMENT = 16, /* compilers'; so that behind a short function that is aligned there is nothing else */
};
#elif defined __aarch64__
enum {
  PX_JUMP_BYTES = 4, /* an instruction: short functions lie side by side */
  PX_FUNCTION_ALIGNMENT = 4,
};
#endif

/* Copies like memcpy, but what is copied is in the record of rr: where gdb has a breakpoint while rr replays, the program would read
 * that, and what it writes there would be lost when gdb takes the breakpoint away. */
void *px_copy_recorded(void *to, const void *from, size_t size);

/* Have a function, whose code can be written, go to another one. `copy` is memcpy, or px_copy_recorded where debuggers have breakpoints.
 * false: there is no memory in its reach. */
bool px_write_jump(void *function, const void *target, void *copy(void *, const void *, size_t));

#endif
