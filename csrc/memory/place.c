/* place.c: from an address of the program to host memory, or to the fault that it is. */
#include <string.h>
#include "place.h"
#include "arena.h"
#include "atomic.h"
#include "fault.h"
#include "launch.h"
#include "surface_access.h"

/* ---- one address -------------------------------------------------------------------------------------------------- */

/* The addresses of a space, and what leads from one of them to its host address. */
typedef struct window {
  uint64_t first, size, shift;
} window;

static window window_of(const pe_warp *w, uint32_t space, uint32_t lane) {
  switch (space) {
    case PE_SHARED: return (window){0, w->shared_size, w->shared_base};
    case PE_LOCAL: return (window){0, w->local_size, w->local_base + lane * w->local_size};
    case PE_CONST: return (window){w->const_base, w->const_size, 0};
    case PE_PARAM: return (window){w->param_base, w->param_size, 0};
    default: return (window){w->arena_base, w->arena_size, 0};
  }
}

static bool is_absolute(uint32_t space) { return space == PE_GENERIC || space == PE_GLOBAL; }

/* An address that lies in no allocation: a null pointer, or one plus a small offset, or any other. */
static uint32_t range_fault(uint32_t space, uint64_t address) {
  return is_absolute(space) && address < PE_NULL_BYTES ? PE_NULL : PE_ILLEGAL_ADDRESS;
}

/* That of a warp. */
static uint64_t local_extent(const pe_warp *w) { return pe_product(w->local_size, PE_WARP_LANES); }

/* Which memory an absolute address belongs to. */
static uint32_t memory_of(const pe_warp *w, uint64_t address) {
  if (pe_in_window(address, w->cluster_base, w->cluster_bytes)) return PE_IN_SHARED;
  bool private = pe_in_window(address, w->local_base, local_extent(w)) ||
                 pe_in_window(address, w->const_base, w->const_size) || pe_in_window(address, w->param_base, w->param_size);
  return private ? PE_IN_PRIVATE : PE_IN_GLOBAL;
}

static uint32_t locate_in(const pe_warp *w, const pe_access *access, uint32_t space, uint32_t lane, uint64_t address,
                          uint64_t size, pe_place *out) {
  window in = window_of(w, space, lane);
  if (address & (access->align - 1)) return PE_MISALIGNED;
  if (!pe_within(address - in.first, size, in.size)) return range_fault(space, address);
  *out = (pe_place){(uint8_t *)(uintptr_t)(address + in.shift), space == PE_SHARED};
  return PE_OK;
}

uint32_t pe_locate(const pe_warp *w, const pe_access *access, uint32_t lane, uint64_t address, uint64_t size,
                   pe_place *out) {
  if (access->within == PE_ANYWHERE || !is_absolute(access->space))
    return locate_in(w, access, access->space, lane, address, size, out);
  uint32_t memory = memory_of(w, address);
  bool allowed = access->within & memory;
  if (memory != PE_IN_GLOBAL && !allowed) return PE_INVALID_ADDRESS_SPACE;
  if (memory == PE_IN_SHARED) {
    uint64_t offset = pe_cluster_offset(w, address);
    uint32_t found = locate_in(w, access, PE_SHARED, lane, offset, size, out);
    if (found == PE_OK) out->host = (uint8_t *)(uintptr_t)address;
    return found;
  }
  uint32_t status = locate_in(w, access, access->space, lane, address, size, out);
  return status == PE_OK && !allowed ? PE_INVALID_ADDRESS_SPACE : status;
}

noreturn void pe_refuse(pe_warp *w, const pe_access *access, uint32_t kind, uint32_t lane, uint64_t address, uint64_t size) {
  uint32_t told = size > UINT32_MAX ? UINT32_MAX : (uint32_t)size;
  pe_fault_note(w, kind, access->pos, (int32_t)lane, access->space, address, told, "");
}

uint8_t *pe_host(pe_warp *w, const pe_access *access, uint32_t lane, uint64_t address, uint64_t size) {
  pe_place place;
  bool goes_on = pe_tell_lane(w, access, lane, address, size);
  uint32_t status = pe_locate(w, access, lane, address, size, &place);
  if (status == PE_OK && !goes_on) status = PE_ILLEGAL_ADDRESS;
  if (status != PE_OK) pe_refuse(w, access, status, lane, address, size);
  return place.host;
}

noreturn void pe_refuse_range(pe_warp *w, const pe_access *access, uint32_t lane, uint64_t address, uint64_t size) {
  pe_refuse(w, access, range_fault(access->space, address), lane, address, size);
}

/* Memory of the host has no end that is known: what runs beyond it traps. */
static uint64_t remaining(const pe_warp *w, uint64_t address) {
  uint64_t room = pe_arena_remaining(w->launch->arena, address), offset = address - w->arena_base;
  bool hosts = !room && w->launch->config.host_memory && offset < w->arena_size;
  return hosts ? w->arena_size - offset : room;
}

const void *pe_host_run(const pe_warp *w, uint64_t address, uint64_t most, uint64_t *size) {
  uint64_t room = remaining(w, address);
  *size = room < most ? room : most;
  return (const void *)(uintptr_t)address;
}

void pe_check(pe_warp *w, uint32_t pos, uint32_t space, uint32_t size, uint32_t mask, const uint64_t *addr) {
  pe_access access = {.pos = pos, .space = (uint16_t)space, .within = PE_ANYWHERE, .align = size};
  PE_FOR_LANES(i, mask) {
    uint32_t status = pe_locate(w, &access, i, addr[i], size, &(pe_place){0});
    if (status != PE_OK) pe_refuse(w, &access, status, i, addr[i], size);
  }
}

noreturn void pe_refuse_lanes(pe_warp *w, uint32_t pos, uint32_t space, uint32_t size, uint32_t mask, const uint64_t *addr) {
  uint32_t first = mask ? (uint32_t)__builtin_ctz(mask) : 0;
  pe_access access = {.pos = pos, .space = (uint16_t)space, .within = PE_ANYWHERE, .align = size};
  pe_check(w, pos, space, size, mask, addr);
  pe_refuse_range(w, &access, first, addr[first], size);
}

noreturn void pe_refuse_misaligned(pe_warp *w, uint32_t pos, uint32_t space, uint32_t size, uint32_t mask,
                                   const uint64_t *addr) {
  uint32_t first = (uint32_t)__builtin_ctz(mask);
  pe_access access = {.pos = pos, .space = (uint16_t)space, .within = PE_ANYWHERE, .align = size};
  pe_refuse(w, &access, PE_MISALIGNED, first, addr[first], size);
}

uint32_t pe_observe(pe_warp *w, uint32_t pos, uint32_t kind, uint32_t space, uint32_t size, uint32_t mask,
                    const uint64_t *addr, const void *values) {
  pe_access access = {.pos = pos, .space = (uint16_t)space, .kind = (uint16_t)kind, .align = size, .values = values};
  return pe_tell(w, &access, mask, addr, size);
}

uint32_t pe_observe_pattern(pe_warp *w, const pe_pattern_site *site, uint32_t mask, uint64_t base, const void *values) {
  if (!mask || !pe_observed(w)) return mask;
  const pe_observer *observer = w->launch->observer;
  if (observer->pattern && observer->pattern(observer->context, w, site, mask, base)) return mask;
  uint64_t address[PE_WARP_LANES];
  for (uint32_t i = 0; i < PE_WARP_LANES; i++) address[i] = pe_pattern_address(site, base, i);
  return pe_observe(w, site->pos, site->kind, site->space, site->size, mask, address, values);
}

void pe_observe_listed(pe_warp *w) {
  const pe_observer *observer = w->launch->observer;
  if (observer && observer->listed) observer->listed(observer->context, w);
}

uint32_t pe_observe_claimed(pe_warp *w, const pe_pattern_site *site, uint32_t number, uint32_t mask, uint64_t base) {
  const pe_observer *observer = w->launch->observer;
  return observer && observer->claimed ? observer->claimed(observer->context, w, site, number, mask, base) : 0;
}

void pe_observe_order(pe_warp *w, uint32_t pos, uint32_t what, uint32_t mask) {
  const pe_observer *observer = w->launch->observer;
  if (mask && observer && observer->order) observer->order(observer->context, w, pos, what, mask);
}

void pe_observe_members(pe_warp *w, uint32_t pos, uint32_t mask, const uint32_t *members) {
  const pe_observer *observer = w->launch->observer;
  if (mask && observer && observer->members) observer->members(observer->context, w, pos, mask, members);
}

void pe_observe_unset(pe_warp *w, uint32_t pos, uint32_t use, uint32_t mask, const uint64_t *place) {
  const pe_observer *observer = w->launch->observer;
  if (place) {
    PE_FOR_LANES(i, mask) {
      if (memory_of(w, place[i]) != PE_IN_GLOBAL) mask &= ~(1u << i);
    }
  }
  if (mask && observer && observer->unset) observer->unset(observer->context, w, pos, use, mask);
}

/* ---- a warp ------------------------------------------------------------------------------------------------------- */

PE_INLINE void widen(pe_span *s, uint64_t address) {
  int64_t value = (int64_t)address;
  s->least = value < s->least ? value : s->least;
  s->greatest = value > s->greatest ? value : s->greatest;
  s->bits |= value;
}

PE_WIDE pe_span pe_span_of(uint32_t mask, const uint64_t *address) {
  pe_span s = {INT64_MAX, INT64_MIN, 0};
  if (mask == PE_ALL_LANES) {
    for (uint32_t i = 0; i < PE_WARP_LANES; i++) widen(&s, address[i]);
    return s;
  }
  PE_FOR_LANES(i, mask) widen(&s, address[i]);
  return s;
}

PE_WIDEST static bool all_in_step(uint32_t mask, const uint64_t *restrict address, uint64_t first, uint64_t step) {
  uint64_t differ = 0;
  for (uint64_t i = 0; i < PE_WARP_LANES; i++) differ |= (address[i] ^ (first + i * step)) & (0 - (uint64_t)(mask >> i & 1));
  return !differ;
}

bool pe_in_step(uint32_t mask, const uint64_t *address, uint64_t step) {
  uint32_t lane = (uint32_t)__builtin_ctz(mask), last = PE_LAST_LANE(mask);
  return address[last] - address[lane] == (last - lane) * step &&
         all_in_step(mask, address, address[lane] - lane * step, step);
}

/* Are all lanes in the arena and, if the access may not go there, in none of its windows? */
static bool all_global(const pe_warp *w, const pe_access *access, pe_span s, uint32_t size) {
  if (!pe_in_arena(w, (uint64_t)s.least, size) || !pe_in_arena(w, (uint64_t)s.greatest, size)) return false;
  if (access->within == PE_ANYWHERE) return true;
  return access->within & PE_IN_GLOBAL && pe_span_apart(s, w->cluster_base, w->cluster_bytes) &&
         pe_span_apart(s, w->local_base, local_extent(w)) && pe_span_apart(s, w->const_base, w->const_size) &&
         pe_span_apart(s, w->param_base, w->param_size);
}

/* Place the lanes of an access of .shared memory; false unless all are aligned and in range.  *one: they have one address. */
PE_WIDE static bool place_shared(const pe_warp *w, uint32_t mask, const uint64_t *restrict address, uint32_t align,
                                 uint32_t size, uint64_t host[restrict PE_WARP_LANES], bool *one) {
  uint64_t first = address[__builtin_ctz(mask)], base = w->shared_base, last = w->shared_size - size;
  uint64_t bits = 0, beyond = 0, differ = 0;
  if (size > w->shared_size) return false;
  for (uint64_t i = 0; i < PE_WARP_LANES; i++) {
    uint64_t on = 0 - (uint64_t)(mask >> i & 1), other = (address[i] ^ first) & on, at = first ^ other;
    bits |= at;
    beyond |= last - at; /* negative or not, where all numbers are below 2^63 */
    differ |= other;
    host[i] = base + at;
  }
  *one = !differ;
  return !((bits | beyond) >> 63) && !(bits & (align - 1));
}

static pe_verdict locate_each(const pe_warp *w, const pe_access *access, uint32_t mask, const uint64_t *address,
                              uint32_t size, uint64_t host[PE_WARP_LANES]) {
  pe_verdict v = {.lane = -1};
  PE_FOR_LANES(i, mask) {
    pe_place at;
    uint32_t status = pe_locate(w, access, i, address[i], size, &at);
    if (status != PE_OK) {
      v.lane = (int32_t)i;
      v.kind = status;
      return v;
    }
    host[i] = (uint64_t)(uintptr_t)at.host;
    *(at.shared ? &v.shared : &v.global) |= 1u << i;
  }
  return v;
}

pe_verdict pe_locate_lanes(const pe_warp *w, const pe_access *access, uint32_t mask, const uint64_t *address, uint32_t size,
                           uint64_t host[PE_WARP_LANES]) {
  bool several = mask & (mask - 1), one = false;
  if (access->space == PE_SHARED && place_shared(w, mask, address, access->align, size, host, &one))
    return (pe_verdict){.shared = mask, .lane = -1, .one_address = one && several};
  pe_span s = pe_span_of(mask, address);
  bool aligned = pe_span_aligned(s, access->align), one_address = s.least == s.greatest && several;
  if (aligned && is_absolute(access->space) && all_global(w, access, s, size)) {
    memcpy(host, address, PE_WARP_LANES * sizeof *host);
    return (pe_verdict){.global = mask, .lane = -1, .one_address = one_address};
  }
  return locate_each(w, access, mask, address, size, host);
}

uint32_t pe_other_failures(const pe_warp *w, const pe_access *access, uint32_t mask, int32_t lane, const uint64_t *address,
                           uint32_t size) {
  uint32_t count = 0;
  PE_FOR_LANES(i, mask & ~((2u << lane) - 1)) count += pe_locate(w, access, i, address[i], size, &(pe_place){0}) != PE_OK;
  return count;
}
