/* place.h: the one way from an address of the program to host memory. */
#ifndef PTXEMU_PLACE_H
#define PTXEMU_PLACE_H
#include "internal.h"
#include "launch.h"

/* The memories that generic and global addresses lead to, as a set. */
enum {
  PE_IN_GLOBAL = 1,
  PE_IN_SHARED = 2,
  PE_IN_PRIVATE = 4, /* the windows of local memory, constants and parameters */
  PE_ANYWHERE = PE_IN_GLOBAL | PE_IN_SHARED | PE_IN_PRIVATE
};

/* What an instruction asks of memory, the same for all its lanes. */
typedef struct pe_access {
  uint32_t pos;    /* source offset */
  uint16_t space;  /* PE_GENERIC ... */
  uint16_t within; /* PE_ANYWHERE, or fewer: an address elsewhere is a fault, and the shared window ends at its last byte */
  uint16_t kind;   /* PE_READ ..., or'ed with PE_STRONG ... */
  uint32_t align;  /* a power of two */
  const void *values; /* those of pe_memory_event */
} pe_access;

/* Where an access of a lane goes. */
typedef struct pe_place {
  uint8_t *host;
  bool shared; /* known of .shared addresses, and of others where `within` restricts them */
} pe_place;

/* PE_OK, or what is wrong with `size` bytes at an address of lane `lane`: their window, their alignment, their range. */
uint32_t pe_locate(const pe_warp *w, const pe_access *access, uint32_t lane, uint64_t address, uint64_t size, pe_place *out);

/* The same or a fault; the observer is told first, and a lane that it stops faults. */
uint8_t *pe_host(pe_warp *w, const pe_access *access, uint32_t lane, uint64_t address, uint64_t size);

/* The fault that pe_locate has found. */
noreturn void pe_refuse(pe_warp *w, const pe_access *access, uint32_t kind, uint32_t lane, uint64_t address, uint64_t size);

/* The fault of an address beyond all allocations. */
noreturn void pe_refuse_range(pe_warp *w, const pe_access *access, uint32_t lane, uint64_t address, uint64_t size);

/* Which lanes an access has found places for: those below the first that may not have one. */
typedef struct pe_verdict {
  uint32_t shared, global;
  int32_t lane;     /* the one that fails, or -1 */
  uint32_t kind;    /* of its fault */
  bool one_address; /* that all lanes share, and there are several */
} pe_verdict;

/* pe_locate for the lanes of `mask`, `size` bytes each, a power of two and the alignment; host[i] for those that may. */
pe_verdict pe_locate_lanes(const pe_warp *w, const pe_access *access, uint32_t mask, const uint64_t *address, uint32_t size,
                           uint64_t host[PE_WARP_LANES]);

/* Lanes of `mask` behind the first that fails which fail too. */
uint32_t pe_other_failures(const pe_warp *w, const pe_access *access, uint32_t mask, int32_t lane, const uint64_t *address,
                           uint32_t size);

/* Host memory from a generic address to the end of its allocation, for what has no size of its own: *size bytes, at most
 * `most`, and none where there is no allocation.  If a launch may touch the host's memory, touching it may be a trap. */
const void *pe_host_run(const pe_warp *w, uint64_t address, uint64_t most, uint64_t *size);

/* Whether somebody wants to know of accesses. */
static inline bool pe_observed(const pe_warp *w) { return w->launch->observer && w->launch->observer->memory; }

/* Whether that includes accesses of texels. */
static inline bool pe_texels_observed(const pe_warp *w) { return pe_observed(w) && !w->launch->observer->no_texels; }

/* Tell the observer of a launch of an access that is going to happen, of texels of a surface, or of memory if that is NULL.  The lanes
 * that go on. */
static inline uint32_t pe_tell_texels(const pe_warp *w, const pe_access *access, uint32_t mask, const uint64_t *address,
                                      uint64_t size, const void *surface) {
  if (!mask || !pe_observed(w)) return mask;
  const pe_observer *observer = w->launch->observer;
  pe_memory_event event = {access->pos,
                           access->kind & PE_UPDATE,
                           access->kind & ~PE_UPDATE,
                           access->space,
                           mask,
                           access->align,
                           size,
                           address,
                           access->values,
                           surface};
  return observer->memory(observer->context, w, &event) & mask;
}

static inline uint32_t pe_tell(const pe_warp *w, const pe_access *access, uint32_t mask, const uint64_t *address,
                               uint64_t size) {
  return pe_tell_texels(w, access, mask, address, size, NULL);
}

/* The same of one lane: whether it goes on. */
static inline bool pe_tell_lane(const pe_warp *w, const pe_access *access, uint32_t lane, uint64_t address, uint64_t size) {
  if (!pe_observed(w)) return true;
  uint64_t lanes[PE_WARP_LANES] = {0};
  lanes[lane] = address;
  return pe_tell(w, access, 1u << lane, lanes, size) != 0;
}

/* ---- sets of addresses -------------------------------------------------------------------------------------------- */

/* Least and greatest address and the union of their bits.  Signed, which vectors compare best; see pe_span_aligned. */
typedef struct pe_span {
  int64_t least, greatest, bits;
} pe_span;

pe_span pe_span_of(uint32_t mask, const uint64_t *address);

/* Whether the addresses of the lanes of a mask, which is not empty, grow by `step` from each lane to the next; 0: they are the
 * same. */
bool pe_in_step(uint32_t mask, const uint64_t *address, uint64_t step);

/* Every address is aligned and below 2^63. */
static inline bool pe_span_aligned(pe_span s, uint32_t align) { return s.bits >= 0 && !(s.bits & (align - 1)); }

static inline bool pe_span_apart(pe_span s, uint64_t base, uint64_t size) {
  return size == 0 || (uint64_t)s.greatest < base || (uint64_t)s.least >= pe_sum(base, size);
}

static inline bool pe_in_window(uint64_t address, uint64_t base, uint64_t size) { return address - base < size; }

/* Of a generic address in the shared memory of a cluster: the rank of the CTA, and how far it is from the start of its window. */
static inline uint32_t pe_cluster_rank(const pe_warp *w, uint64_t address) {
  return (uint32_t)((address - w->cluster_base) >> w->cluster_shift);
}
static inline uint64_t pe_cluster_offset(const pe_warp *w, uint64_t address) {
  return (address - w->cluster_base) & ((1ull << w->cluster_shift) - 1);
}

#endif
