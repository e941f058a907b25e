/* jump.h: machine code that goes elsewhere, written over the beginning of a function. */
#ifndef PX_PRELOAD_JUMP_H
#define PX_PRELOAD_JUMP_H

#include <string.h>

enum { PX_FUNCTION_ALIGNMENT = 16 }; /* compilers'; so that behind a short function that is aligned there is nothing else */

#if defined __x86_64__
enum { PX_JUMP_BYTES = 14 };

static inline void px_write_jump(void *at, const void *target) {
  static const unsigned char jump[] = {0xff, 0x25, 0, 0, 0, 0}; /* jmp *0(%rip) */
  memcpy(at, jump, sizeof jump);
  memcpy((char *)at + sizeof jump, &target, sizeof target);
}
#elif defined __aarch64__
enum { PX_JUMP_BYTES = 16 };

static inline void px_write_jump(void *at, const void *target) {
  static const unsigned jump[] = {0x58000050, 0xd61f0200}; /* ldr x16, 8; br x16 */
  memcpy(at, jump, sizeof jump);
  memcpy((char *)at + sizeof jump, &target, sizeof target);
  __builtin___clear_cache((char *)at, (char *)at + PX_JUMP_BYTES);
}
#endif

#endif
