/* tmem.h: the tensor memory of a CTA: 128 lanes of 512 columns of 32 bits (PTX ISA, "Tensor Memory"). */
#ifndef PTXEMU_TMEM_H
#define PTXEMU_TMEM_H
#include "internal.h"
#include "sync.h"

enum { PE_TMEM_PAIR = 2, PE_TMEM_LANES = 128, PE_TMEM_COLUMNS = 512, PE_TMEM_UNIT = 32, PE_TMEM_UNITS = 16 };

typedef struct pe_tmem {
  uint8_t length[PE_TMEM_UNITS]; /* units of an allocation, where it starts */
  uint32_t taken;                /* units that are allocated */
  bool given_up;                 /* the right to allocate */
  uint32_t wanted;               /* units for which a warp waits until the other CTA of its pair wants them, too; or none */
  uint32_t waiting, pos;         /* that warp, as a bit, until it has its units, and where it waits */
  uint32_t found;                /* the first of the units that it has got */
  bool told;                     /* an observer is told of accesses, and has these bits of columns (pe_columns_event) */
  uint32_t written[PE_TMEM_LANES][PE_TMEM_UNITS];
  uint32_t cell[PE_TMEM_LANES][PE_TMEM_COLUMNS];
} pe_tmem;

/* The CTA ends, or begins: nothing is allocated. */
void pe_tmem_reset(pe_tmem *memory);

/* A fault of that lane unless such columns of a memory are all allocated. `address` has the lane in the upper 16 bits and the first
 * column in the lower ones. */
void pe_tmem_expect(pe_warp *w, uint32_t pos, int32_t lane, const pe_tmem *memory, uint32_t address, uint32_t columns);

/* Tell the observer of an access of some columns of a lane by a lane of the warp, or by all: -1. `each`: pe_columns_event. */
void pe_tmem_tell(pe_warp *w, uint32_t pos, int32_t by, pe_tmem *memory, uint32_t kind, uint32_t lane, uint32_t column,
                  uint32_t count, bool each) __attribute__((cold));

/* That of a CTA, made if there is none yet. */
pe_tmem *pe_tmem_of(pe_warp *w, uint32_t pos, pe_cta *cta);

/* Take the first units that are free in a memory and, unless that is NULL, in another. The first of them. */
uint32_t pe_tmem_take(pe_warp *w, uint32_t pos, uint32_t units, pe_tmem *memory, pe_tmem *other);

/* Of the 32 lanes of a warp, each takes what the next one has in 32 bytes of columns from one on, and the last keeps it
 * (tmem_shift.c). */
void pe_tmem_move_rows(pe_tmem *memory, uint32_t column);

/* ---- tmem_pair.c: pairs of CTAs, whose ranks in their cluster differ in the lowest bit (PTX ISA, ".cta_group") ---- */

/* The CTA that runs, or those of its pair, the one of even rank first; a fault if the cluster has no pairs. */
void pe_tmem_ctas(pe_warp *w, uint32_t pos, uint32_t count, pe_cta *to[PE_TMEM_PAIR]);

/* How far the window of the shared memory of a CTA of the cluster is from that of the one that runs. */
uint64_t pe_tmem_away(const pe_warp *w, const pe_cta *cta);

/* The first of the units that both CTAs of a pair take. False: the other one has yet to come; when it has, ask again. */
bool pe_tmem_take_both(pe_warp *w, uint32_t pos, uint32_t units, uint32_t *first);

/* Suspend the warp until then. */
void pe_tmem_wait(pe_warp *w);

/* No warp of a cluster can run: record the deadlock if a CTA waits for the other of its pair. */
bool pe_tmem_deadlock(pe_cta *cta);

noreturn void pe_tmem_misuse(pe_warp *w, uint32_t pos, int32_t lane, uint32_t address, const char *what);

#endif
