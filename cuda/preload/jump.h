/* jump.h: machine code that goes elsewhere, written over the beginning of a function. */
#ifndef PX_PRELOAD_JUMP_H
#define PX_PRELOAD_JUMP_H

#include <stdbool.h>

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

/* Have a function, whose code can be written, go to another one. false: there is no memory in its reach. */
bool px_write_jump(void *function, const void *target);

#endif
