/* ctm.h: what ATI CTM programs do with memory (notes "CTM: OUTPUT / UMRT writes"): texels of its formats, UMRT writes, the
 * conditional test.  Registers are floats as bits; a lane has four, red first.
 */
#ifndef PTXEMU_CTM_H
#define PTXEMU_CTM_H
#include "surface.h"

#pragma GCC visibility push(default)
/* CDEF BEGIN */
enum {
  PE_CTM_SAME_INDEX = 1, /* pe_ctm_umrt: lanes of a group write where the first of them does */
  PE_CTM_2X2 = 2,        /* pe_ctm_load: the texel and its neighbours */
  PE_CTM_UPDATE = 4      /* pe_ctm_test: values that pass go to the buffer */
};

/* Faults of UMRT writes. */
enum {
  PE_CTM_ALPHA = PE_DIALECT_FAULTS, /* alpha is not zero */
  PE_CTM_PARTIAL,                   /* of some channels only */
  PE_CTM_INDEX                      /* different indices in a group */
};

/* What is counted (pe_su_context): UMRT writes out of bounds, and of some channels, which write nothing. */
enum { PE_CTM_DROPPED, PE_CTM_SKIPPED };

/* What is constant about an access. */
typedef struct pe_ctm_site {
  uint32_t pos;
  uint32_t flags;     /* PE_CTM_* */
  uint32_t op;        /* pe_ctm_umrt: PE_ATOM_* */
  uint32_t group;     /* lanes that share an index */
  uint32_t condition; /* 0 never, then < <= == >= > !=, 7 always */
} pe_ctm_site;

/* Texels that the whole part of float coordinates x, y select, converted to floats; zeros where there is none. */
void pe_ctm_load(pe_warp *w, const pe_ctm_site *site, uint32_t mask, uint64_t handle, const uint32_t *x, const uint32_t *y,
                 uint32_t *texels);

/* Store the channels (4 bits a lane) of texel x, y.  The values are converted in place. */
void pe_ctm_store(pe_warp *w, const pe_ctm_site *site, uint32_t mask, uint64_t handle, const uint32_t *x, const uint32_t *y,
                  uint32_t *values, const uint32_t *channels);

/* UMRT writes: texel (green, blue) is updated with red.  Operands are one word a lane. */
void pe_ctm_umrt(pe_warp *w, const pe_ctm_site *site, uint32_t mask, uint64_t handle, const uint32_t *red,
                 const uint32_t *green, const uint32_t *blue, const uint32_t *alpha, const uint32_t *channels);

/* The lanes whose value passes the conditional test against texel x, y. */
uint32_t pe_ctm_test(pe_warp *w, const pe_ctm_site *site, uint32_t mask, uint64_t handle, const uint32_t *x,
                     const uint32_t *y, const uint32_t *values);
/* CDEF END */
#pragma GCC visibility pop

#endif
