/* mufu.h: approximate functions with the bits of the hardware. */
#ifndef PTXEMU_MUFU_H
#define PTXEMU_MUFU_H
#include <stdint.h>

#pragma GCC visibility push(default)
/* CDEF BEGIN */
enum { PE_MUFU_EX2, PE_MUFU_LG2, PE_MUFU_RCP, PE_MUFU_RSQRT, PE_MUFU_SQRT, PE_MUFU_SIN, PE_MUFU_COS };

/* What the instruction MUFU makes of n floats.  Subnormal operands count as zeros, and results are never subnormal.  A NaN is
 * 0x7fffffff.  The operand of sine and cosine is in turns. */
void pe_mufu(uint32_t function, uint32_t n, void *results, const void *operands);
/* CDEF END */
#pragma GCC visibility pop

#endif
