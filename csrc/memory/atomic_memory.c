/* atomic_memory.c: red and atom: from the addresses of a warp to host memory. */
#include <string.h>
#include "atomic.h"
#include "exclusive.h"
#include "fault.h"
#include "launch.h"
#include "place.h"
#include "twin.h"

/* What an atomic asks of memory: no window of one thread or of constants; vectors are for global memory. */
static pe_access access_of(uint32_t pos, uint32_t space, uint32_t size, uint32_t count) {
  bool shared = space == PE_SHARED || (space == PE_GENERIC && count == 1);
  return (pe_access){pos, (uint16_t)space, shared ? PE_IN_GLOBAL | PE_IN_SHARED : PE_IN_GLOBAL, PE_UPDATE | PE_STRONG, size,
                     NULL};
}

/* f32 sums flush subnormals in global memory, unless they are asked not to, and keep them in shared memory; what f64 sums do
 * with NaN is different too. */
static uint32_t flags_in(bool shared, uint32_t op, uint32_t type, uint32_t flags) {
  if (op == PE_ATOM_FADD && type == PE_TYPE_F64 && shared) return flags | PE_ATOM_OLD_NAN;
  if (op != PE_ATOM_FADD || type != PE_TYPE_F32) return flags;
  return shared || flags & PE_ATOM_NOFTZ ? flags & ~(uint32_t)PE_ATOM_FTZ : flags | PE_ATOM_FTZ;
}

/* ---- a warp --------------------------------------------------------------------------------------------------------- */

static void run_in(pe_atom_lanes *lanes, uint32_t mask, bool shared, bool locked) {
  lanes->mask = mask;
  lanes->locked = locked;
  lanes->flags = flags_in(shared, lanes->op, lanes->type, lanes->flags);
  pe_atom_run(lanes);
}

/* Threads of the program around the launch may reach device memory at any time; they take part in atomics of .sys scope. */
static void run_global(pe_warp *w, pe_atom_lanes *lanes, uint32_t mask, bool system, bool sums) {
  if (sums) mask &= ~pe_twin_add(w, lanes, mask);
  if (!mask) return;
  int exclusive = !system && pe_exclusive_begin(w);
  run_in(lanes, mask, false, !exclusive);
  if (exclusive) pe_exclusive_end(w);
}

/* What describes the instruction, whose lanes go to `host`; the mask and what the memory asks for are still to come. */
static pe_atom_lanes lanes_of(pe_warp *w, const pe_atom_site *site, const uint64_t *host, const void *a, const void *b,
                              void *old) {
  w->pos = site->pos;
  w->space = site->space;
  return (pe_atom_lanes){.op = site->op,
                         .type = site->type,
                         .flags = site->flags,
                         .count = site->count,
                         .addr = host,
                         .a = a,
                         .b = b,
                         .old = old};
}

void pe_atomic(pe_warp *w, const pe_atom_site *site, uint32_t mask, const uint64_t *addr, const void *a, const void *b,
               void *old) {
  uint32_t size = pe_atom_bytes(site->type) * site->count;
  if (!mask) return;
  if (!pe_atom_legal(site->op, site->type))
    pe_fault(w, PE_ILLEGAL_OP_TYPE, site->pos, -1, site->space, addr[__builtin_ctz(mask)], size);
  uint64_t host[PE_WARP_LANES];
  pe_atom_lanes lanes = lanes_of(w, site, host, a, b, old);
  pe_access access = access_of(site->pos, site->space, size, site->count);
  access.kind |= (uint16_t)site->order;
  uint32_t live = pe_tell(w, &access, mask, addr, size);
  if (live != mask && old) memset(old, 0, (size_t)PE_WARP_LANES * size);
  if (!(mask = live)) return;
  pe_verdict v = pe_locate_lanes(w, &access, mask, addr, size, host);
  lanes.one_address = v.one_address;
  if (v.shared) run_in(&lanes, v.shared, true, false); /* a CTA stays on one thread */
  if (v.global) run_global(w, &lanes, v.global, site->system, site->sums);
  if (v.lane < 0) return;
  pe_record fault = {
    .kind = v.kind, .pos = site->pos, .lane = v.lane, .space = site->space, .address = addr[v.lane], .size = size};
  fault.others = pe_other_failures(w, &access, mask, v.lane, addr, size);
  pe_fault_at(w, &fault);
}

void pe_atomic_shared(pe_warp *w, const pe_atom_site *site, uint32_t mask, const uint64_t *host, const void *a,
                      const void *b, void *old) {
  pe_atom_lanes lanes = lanes_of(w, site, host, a, b, old);
  run_in(&lanes, mask, true, false);
}

/* Does one allocation hold the element?  `known` is the last one that did. */
static bool in_region(const pe_warp *w, pe_allocation *known, uint64_t address, uint32_t size) {
  if (!pe_in_window(address, known->address, known->size) && !pe_arena_nearest(w->launch->arena, address, known))
    return false;
  return pe_within(address - known->address, size, known->size);
}

/* PE_OK or the fault of one address: window, alignment, region, in this order. */
static uint32_t locate_own(const pe_warp *w, const pe_red_site *site, const pe_access *access, uint64_t address,
                           pe_allocation *region, uint64_t *out) {
  pe_place at;
  for (int i = 0; i < 4; i += 2)
    if (pe_in_window(address, site->window[i], site->window[i + 1] - site->window[i])) return PE_INVALID_ADDRESS_SPACE;
  if (address & (access->align - 1)) return PE_MISALIGNED;
  uint64_t offset = address - site->bias, inside = w->arena_base + offset;
  if (address < site->bias || offset >= w->arena_size || !in_region(w, region, inside, access->align))
    return PE_ILLEGAL_ADDRESS;
  uint32_t status = pe_locate(w, access, 0, inside, access->align, &at);
  if (status == PE_OK) *out = (uint64_t)(uintptr_t)at.host;
  return status;
}

/* Are all lanes plainly in one allocation, and in no window?  Then fill `host`. */
static bool locate_together(const pe_warp *w, const pe_red_site *site, const pe_access *access, uint32_t mask,
                            const uint64_t *addr, pe_allocation *region, uint64_t host[PE_WARP_LANES], bool *one) {
  uint64_t shift = w->arena_base - site->bias; /* from the program's addresses to those of the arena */
  uint64_t inside[PE_WARP_LANES];
  uint32_t size = access->align;
  pe_span s = pe_span_of(mask, addr);
  if (!pe_span_aligned(s, size) || (uint64_t)s.least < site->bias) return false;
  for (int i = 0; i < 4; i += 2)
    if (!pe_span_apart(s, site->window[i], site->window[i + 1] - site->window[i])) return false;
  for (uint32_t i = 0; i < PE_WARP_LANES; i++) inside[i] = addr[i] + shift;
  pe_verdict v = pe_locate_lanes(w, access, mask, inside, size, host);
  uint64_t least = (uint64_t)s.least + shift, greatest = (uint64_t)s.greatest + shift;
  *one = v.one_address;
  return v.lane < 0 && in_region(w, region, least, size) && pe_within(greatest - region->address, size, region->size);
}

void pe_red(pe_warp *w, const pe_red_site *site, uint32_t mask, const uint64_t *addr, const void *a) {
  pe_atom_site atom = {
    .pos = site->pos, .op = site->op, .type = site->type, .space = PE_GENERIC, .count = 1, .flags = site->flags};
  uint32_t size = pe_atom_bytes(site->type), live = 0, kind = PE_OK;
  int32_t failed = -1;
  pe_allocation region = {0};
  uint64_t host[PE_WARP_LANES];
  const pe_su_context *ctx = pe_launch_surfaces(w);
  pe_atom_lanes lanes = lanes_of(w, &atom, host, a, NULL, NULL);
  if (ctx && ctx->policy.fminmax_keep_old) lanes.flags |= PE_ATOM_KEEP_OLD;
  if (!mask) return;
  pe_access access = access_of(site->pos, PE_GLOBAL, size, 1);
  if (locate_together(w, site, &access, mask, addr, &region, host, &lanes.one_address)) {
    if ((mask = pe_tell(w, &access, mask, host, size))) run_global(w, &lanes, mask, false, false);
    return;
  }
  lanes.one_address = false;
  PE_FOR_LANES(i, mask) {
    kind = locate_own(w, site, &access, addr[i], &region, &host[i]);
    if (kind != PE_OK) {
      failed = (int32_t)i;
      break;
    }
    live |= 1u << i;
  }
  if ((live = pe_tell(w, &access, live, host, size))) run_global(w, &lanes, live, false, false);
  if (failed < 0) return;
  pe_record fault = {.kind = kind,
                     .pos = site->pos,
                     .lane = failed,
                     .space = PE_GENERIC,
                     .address = addr[failed],
                     .size = size,
                     .note = "in the program's own address space"};
  PE_FOR_LANES(i, mask & ~((2u << failed) - 1))
    fault.others += locate_own(w, site, &access, addr[i], &region, &(uint64_t){0}) != PE_OK;
  pe_fault_at(w, &fault);
}

void pe_set_condition(pe_warp *w, uint32_t pos, uint32_t mask, const uint64_t *handle, const uint32_t *value) {
  const pe_atom_site site = {.pos = pos, .space = PE_GLOBAL, .op = PE_ATOM_XCHG, .type = PE_TYPE_U32, .count = 1};
  uint32_t old[PE_WARP_LANES];
  pe_atomic(w, &site, mask, handle, value, NULL, old);
}
