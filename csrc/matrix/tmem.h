/* tmem.h: the tensor memory of a CTA: 128 lanes of 512 columns of 32 bits (PTX ISA, "Tensor Memory"). */
#ifndef PTXEMU_TMEM_H
#define PTXEMU_TMEM_H
#include "internal.h"

enum { PE_TMEM_LANES = 128, PE_TMEM_COLUMNS = 512, PE_TMEM_UNIT = 32, PE_TMEM_UNITS = 16 };

typedef struct pe_tmem {
  uint8_t length[PE_TMEM_UNITS]; /* units of an allocation, where it starts */
  uint32_t taken;                /* units that are allocated */
  bool given_up;                 /* the right to allocate */
  uint32_t cell[PE_TMEM_LANES][PE_TMEM_COLUMNS];
} pe_tmem;

/* The CTA ends, or begins: nothing is allocated. */
void pe_tmem_reset(pe_tmem *memory);

/* Columns of the CTA that runs, all of which are allocated, or a fault of that lane. `address` has the lane in the upper 16 bits and the
 * first column in the lower ones. */
pe_tmem *pe_tmem_columns(pe_warp *w, uint32_t pos, int32_t lane, uint32_t address, uint32_t columns);

noreturn void pe_tmem_misuse(pe_warp *w, uint32_t pos, int32_t lane, uint32_t address, const char *what);

#endif
