/* copy.c: asynchronous copies and reductions of memory (PTX ISA, "Asynchronous copy").
 *
 * They are complete when the instruction is: the manual allows any time up to the wait for them, and a fault then names the
 * instruction that copies.
 */
#include <string.h>
#include "async.h"
#include "atomic.h"
#include "fault.h"
#include "launch.h"
#include "place.h"
#include "surface.h"
#include "sync.h"

#define BULK_ALIGNMENT 16
#define MOST_BYTES 16 /* of a lane, but in bulk */

/* The two sides of a copy. */
static pe_access target_of(const pe_copy_site *site, uint32_t align) {
  return (pe_access){site->pos, site->target, PE_ANYWHERE, PE_WRITE | PE_ASYNC, align, NULL};
}

static pe_access source_of(const pe_copy_site *site, uint32_t align) {
  return (pe_access){site->pos, site->source, PE_ANYWHERE, PE_READ | PE_ASYNC, align, NULL};
}

/* For the handler of accesses to unmapped pages, which shared memory does not have. */
static void note(pe_warp *w, const pe_copy_site *site) {
  w->pos = site->pos;
  w->space = PE_GLOBAL;
}

/* How many bytes a lane reads; the rest are zeros. */
static uint32_t bytes_read(const pe_copy_site *site, const uint32_t *given, uint32_t lane) {
  return given && given[lane] < site->size ? given[lane] : site->size;
}

static void copy_lane(const pe_copy_site *site, uint8_t *to, const uint8_t *from, uint32_t size) {
  if (size) memcpy(to, from, size);
  if (size < site->size) memset(to + size, 0, site->size - size);
}

/* Every lane may write all its bytes, and read as many from where it reads any.  False: a lane needs a closer look. */
static bool copy_whole(pe_warp *w, const pe_copy_site *site, uint32_t mask, const uint64_t *target, const uint64_t *source,
                       const uint32_t *given) {
  uint64_t to[PE_WARP_LANES], from[PE_WARP_LANES];
  pe_access written = target_of(site, site->size), read = source_of(site, site->size);
  uint32_t reading = 0;
  if (given && w->launch->observer) return false; /* which is told of each lane's bytes */
  PE_FOR_LANES(i, mask) reading |= (uint32_t)(bytes_read(site, given, i) != 0) << i;
  if (pe_locate_lanes(w, &written, mask, target, site->size, to).lane >= 0) return false;
  if (reading && pe_locate_lanes(w, &read, reading, source, site->size, from).lane >= 0) return false;
  uint8_t values[PE_WARP_LANES * MOST_BYTES];
  if (!given && w->launch->observer) {
    PE_FOR_LANES(i, mask) memcpy(values + i * site->size, (const void *)(uintptr_t)from[i], site->size);
    written.values = values;
  }
  uint32_t live = pe_tell(w, &written, mask, target, site->size);
  live &= pe_tell(w, &read, reading & live, source, site->size) | ~reading;
  PE_FOR_LANES(i, live)
    copy_lane(site, (uint8_t *)(uintptr_t)to[i], (const uint8_t *)(uintptr_t)from[i], bytes_read(site, given, i));
  return true;
}

void pe_copy(pe_warp *w, const pe_copy_site *site, uint32_t mask, const uint64_t *target, const uint64_t *source,
             const uint32_t *given) {
  pe_access written = target_of(site, site->size), read = source_of(site, site->size);
  note(w, site);
  if (!mask || copy_whole(w, site, mask, target, source, given)) return;
  PE_FOR_LANES(i, mask) {
    uint32_t size = bytes_read(site, given, i);
    uint8_t *to = pe_host(w, &written, i, target[i], site->size);
    copy_lane(site, to, size ? pe_host(w, &read, i, source[i], size) : NULL, size);
  }
}

/* Both sides of a lane's bulk operation. */
static void locate_bulk(pe_warp *w, const pe_copy_site *site, uint16_t kind, uint32_t lane, uint64_t target, uint64_t source,
                        uint32_t size, uint8_t **to, uint8_t **from) {
  pe_access written = target_of(site, BULK_ALIGNMENT), read = source_of(site, BULK_ALIGNMENT);
  written.kind = kind | PE_ASYNC | PE_BULK;
  if (site->target == PE_GENERIC) written.within = PE_IN_SHARED; /* that of any CTA of the cluster */
  read.kind |= PE_BULK;
  if (size % BULK_ALIGNMENT)
    pe_fault_note(w, PE_MISALIGNED, site->pos, (int32_t)lane, site->target, target, size,
                  "the size is not a multiple of 16");
  *to = pe_host(w, &written, lane, target, size);
  *from = pe_host(w, &read, lane, source, size);
}

static void copy_masked(uint8_t *to, const uint8_t *from, uint32_t size, uint32_t bytes) {
  for (uint32_t i = 0; i < size; i++)
    if (bytes >> (i % BULK_ALIGNMENT) & 1) to[i] = from[i];
}

void pe_bulk_copy(pe_warp *w, const pe_copy_site *site, uint32_t mask, const uint64_t *target, const uint64_t *source,
                  const uint32_t *size, const uint16_t *bytes) {
  note(w, site);
  PE_FOR_LANES(lane, mask) {
    uint8_t *to, *from;
    locate_bulk(w, site, PE_WRITE, lane, target[lane], source[lane], size[lane], &to, &from);
    if (bytes)
      copy_masked(to, from, size[lane], bytes[lane]);
    else
      memmove(to, from, size[lane]);
  }
}

/* What a program may leave out at an end of a copy. */
static uint32_t left_out(pe_warp *w, const pe_copy_site *site, uint32_t lane, uint64_t source, uint32_t bytes) {
  if (bytes >= BULK_ALIGNMENT)
    pe_fault_note(w, PE_ILLEGAL_ADDRESS, site->pos, (int32_t)lane, site->source, source, bytes,
                  "no more than 15 bytes at an end may be ignored");
  return bytes;
}

void pe_bulk_copy_within(pe_warp *w, const pe_copy_site *site, uint32_t mask, const uint64_t *target, const uint64_t *source,
                         const uint32_t *size, const uint32_t *left, const uint32_t *right) {
  note(w, site);
  PE_FOR_LANES(lane, mask) {
    uint32_t first = left_out(w, site, lane, source[lane], left[lane]);
    uint32_t less = first + left_out(w, site, lane, source[lane], right[lane]);
    pe_access written = target_of(site, BULK_ALIGNMENT), read = source_of(site, BULK_ALIGNMENT);
    if (size[lane] % BULK_ALIGNMENT || target[lane] % BULK_ALIGNMENT)
      pe_refuse(w, &written, PE_MISALIGNED, lane, target[lane], size[lane]);
    if (source[lane] % BULK_ALIGNMENT) pe_refuse(w, &read, PE_MISALIGNED, lane, source[lane], size[lane]);
    if (less >= size[lane]) continue;
    written.align = read.align = 1;
    written.kind |= PE_BULK;
    read.kind |= PE_BULK;
    uint8_t *to = pe_host(w, &written, lane, target[lane] + first, size[lane] - less);
    memmove(to, pe_host(w, &read, lane, source[lane] + first, size[lane] - less), size[lane] - less);
  }
}

void pe_bulk_multicast(pe_warp *w, const pe_copy_site *site, const pe_mbarrier_site *completion, uint32_t mask,
                       const uint64_t *target, const uint64_t *source, const uint32_t *size, const uint16_t *ctas,
                       const uint64_t *object) {
  pe_copy_site there = *site;
  pe_mbarrier_site told = *completion;
  uint64_t to[PE_WARP_LANES], at[PE_WARP_LANES];
  there.target = told.space = PE_GENERIC;
  for (uint32_t rank = 0; rank < w->cluster_nctarank; rank++) {
    PE_FOR_LANES(lane, mask) {
      if (!(ctas[lane] >> rank & 1)) continue;
      to[lane] = pe_cluster_peer(w, site->target, target[lane], rank);
      at[lane] = pe_cluster_peer(w, completion->space, object[lane], rank);
      pe_bulk_copy(w, &there, 1u << lane, to, source, size, NULL);
      pe_mbarrier(w, &told, 1u << lane, at, size, NULL);
    }
  }
}

void pe_bulk_reduce(pe_warp *w, const pe_copy_site *site, uint32_t mask, const uint64_t *target, const uint64_t *source,
                    const uint32_t *size) {
  uint32_t element = pe_atom_bytes(site->type);
  note(w, site);
  PE_FOR_LANES(lane, mask) {
    uint8_t *to, *from;
    locate_bulk(w, site, PE_UPDATE | PE_STRONG, lane, target[lane], source[lane], size[lane], &to, &from);
    for (uint32_t i = 0; i < size[lane]; i += element)
      pe_atom_update(to + i, site->op, site->type, 0, from + i, NULL, NULL, site->target != PE_SHARED);
  }
}

void pe_bulk_zero(pe_warp *w, const pe_copy_site *site, uint32_t mask, const uint64_t *target, const uint64_t *size) {
  pe_access written = {site->pos, site->target, PE_IN_SHARED, PE_WRITE, 8, NULL};
  PE_FOR_LANES(lane, mask) {
    if (size[lane] % 8)
      pe_fault_note(w, PE_MISALIGNED, site->pos, (int32_t)lane, site->target, target[lane], 0,
                    "the size is not a multiple of 8");
    memset(pe_host(w, &written, lane, target[lane], size[lane]), 0, size[lane]);
  }
}
