/* copy.c: asynchronous copies and reductions of memory (PTX ISA, "Asynchronous copy").
 *
 * They are complete when the instruction is: the manual allows any time up to the wait for them, and a fault then names the
 * instruction that copies.
 */
#include <string.h>
#include "async.h"
#include "internal.h"
#include "surface.h"

#define BULK_ALIGNMENT 16

/* One side of a lane's copy. */
typedef struct side {
  uint32_t space;
  uint64_t address;   /* as the program gives it */
  uint64_t size, align;
} side;

static uint8_t *locate(pe_warp *w, const pe_copy_site *site, int lane, side s) {
  uint64_t base = 0, offset = s.address - w->arena_base, extent = w->arena_size;
  if (s.space == PE_SHARED) base = w->shared_base, offset = s.address, extent = w->shared_size;
  uint32_t size = s.size > UINT32_MAX ? UINT32_MAX : (uint32_t)s.size;
  if (!pe_within(offset, s.size, extent))
    pe_fault(w, pe_range_fault(s.space, s.address), site->pos, lane, s.space, s.address, size);
  if (s.address & (s.align - 1)) pe_fault(w, PE_MISALIGNED, site->pos, lane, s.space, s.address, size);
  return (uint8_t *)(uintptr_t)(base + s.address);
}

/* For the handler of accesses to unmapped pages, which shared memory does not have. */
static void note(pe_warp *w, const pe_copy_site *site) {
  w->pos = site->pos;
  w->space = PE_GLOBAL;
}

void pe_copy(pe_warp *w, const pe_copy_site *site, uint32_t mask, const uint64_t *target, const uint64_t *source,
             const uint32_t *given) {
  note(w, site);
  for (; mask; mask &= mask - 1) {
    int lane = __builtin_ctz(mask);
    uint32_t size = given && given[lane] < site->size ? given[lane] : site->size;
    uint8_t *to = locate(w, site, lane, (side){site->target, target[lane], site->size, site->size});
    if (size) memcpy(to, locate(w, site, lane, (side){site->source, source[lane], size, site->size}), size);
    if (size < site->size) memset(to + size, 0, site->size - size);
  }
}

/* Both sides of a lane's bulk operation. */
static void locate_bulk(pe_warp *w, const pe_copy_site *site, int lane, uint64_t target, uint64_t source, uint32_t size,
                        uint8_t **to, uint8_t **from) {
  if (size % BULK_ALIGNMENT)
    pe_fault_note(w, PE_MISALIGNED, site->pos, lane, site->target, target, size, "the size is not a multiple of 16");
  *to = locate(w, site, lane, (side){site->target, target, size, BULK_ALIGNMENT});
  *from = locate(w, site, lane, (side){site->source, source, size, BULK_ALIGNMENT});
}

static void copy_masked(uint8_t *to, const uint8_t *from, uint32_t size, uint32_t bytes) {
  for (uint32_t i = 0; i < size; i++)
    if (bytes >> (i % BULK_ALIGNMENT) & 1) to[i] = from[i];
}

void pe_bulk_copy(pe_warp *w, const pe_copy_site *site, uint32_t mask, const uint64_t *target, const uint64_t *source,
                  const uint32_t *size, const uint16_t *bytes) {
  note(w, site);
  for (; mask; mask &= mask - 1) {
    int lane = __builtin_ctz(mask);
    uint8_t *to, *from;
    locate_bulk(w, site, lane, target[lane], source[lane], size[lane], &to, &from);
    if (bytes) copy_masked(to, from, size[lane], bytes[lane]);
    else memmove(to, from, size[lane]);
  }
}

void pe_bulk_reduce(pe_warp *w, const pe_copy_site *site, uint32_t mask, const uint64_t *target, const uint64_t *source,
                    const uint32_t *size) {
  uint32_t element = pe_atom_bytes(site->type), flags = site->type == PE_TYPE_F32 ? PE_ATOM_FTZ : 0;
  note(w, site);
  for (; mask; mask &= mask - 1) {
    int lane = __builtin_ctz(mask);
    uint8_t *to, *from;
    locate_bulk(w, site, lane, target[lane], source[lane], size[lane], &to, &from);
    for (uint32_t i = 0; i < size[lane]; i += element)
      pe_atom_update(to + i, site->op, site->type, flags, from + i, NULL, NULL, site->target != PE_SHARED);
  }
}

void pe_bulk_zero(pe_warp *w, const pe_copy_site *site, uint32_t mask, const uint64_t *target, const uint64_t *size) {
  for (; mask; mask &= mask - 1) {
    int lane = __builtin_ctz(mask);
    if (size[lane] % 8)
      pe_fault_note(w, PE_MISALIGNED, site->pos, lane, site->target, target[lane], 0, "the size is not a multiple of 8");
    side s = {PE_SHARED, site->target == PE_SHARED ? target[lane] : target[lane] - w->shared_base, size[lane], 8};
    memset(locate(w, site, lane, s), 0, size[lane]);
  }
}
