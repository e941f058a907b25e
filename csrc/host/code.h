/* code.h: machine code of kernels, linked from the objects that our own compiler makes. */
#ifndef PTXEMU_CODE_H
#define PTXEMU_CODE_H
#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(default)
/* CDEF BEGIN */
typedef struct pe_code pe_code;

/* Link an ELF object of this machine's kind in memory of its own, which is executable and not writable; nothing but the functions
 * of pe_symbols is visible to it.  `object` may be any bytes: 0, or ENOEXEC when it is nothing that our compiler makes, ENOMEM;
 * then `problem` is a constant text.  The code starts at `symbol`, and has one owner. */
int pe_code_link(const void *object, uint64_t size, const char *symbol, pe_code **code, const char **problem);

/* Where it starts: what pe_config calls `kernel`. */
uint64_t pe_code_address(const pe_code *code);

/* Where the section begins that it starts in. */
uint64_t pe_code_section(const pe_code *code);

/* One more owner, and one less: with the last one, the memory is given back. No launch may run the code then. */
pe_code *pe_code_keep(pe_code *code);
void pe_code_release(pe_code *code);

/* The e_machine of objects that run here, or 0: none do. */
uint32_t pe_code_machine(void);

/* Write a relocation of a machine (e_machine) at `place`, which lies at the address `at` once the code runs: S + A is `value`.
 * 0, or -1 when the value cannot be reached from there or there is no such relocation. `place` has 8 bytes. */
int pe_relocate(uint32_t machine, uint32_t type, void *place, uint64_t at, uint64_t value);
/* CDEF END */
#pragma GCC visibility pop

/* How many bytes a relocation changes; 0: a kind that our objects do not have. */
uint32_t pe_relocation_bytes(uint32_t machine, uint32_t type);

/* Whether it is a call, which may go through a jump of `PE_JUMP_BYTES` that pe_jump writes. */
bool pe_relocation_is_call(uint32_t machine, uint32_t type);
enum { PE_JUMP_BYTES = 16 };
void pe_jump(uint32_t machine, void *place, uint64_t target);

#endif
