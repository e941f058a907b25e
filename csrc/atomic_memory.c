/* atomic_memory.c: red and atom: from the addresses of a warp to host memory. */
#include "atomic.h"
#include "runtime.h"
#include "surface_access.h"

/* Where an access of a lane goes. */
typedef struct place {
  uint64_t host;
  bool shared;
} place;

static bool in_window(uint64_t address, uint64_t base, uint64_t size) { return address - base < size; }

/* What belongs to the shared window: allocations are multiples of 256 bytes, so nothing else starts before. */
static uint64_t shared_extent(const pe_warp *w) { return pe_round_up(w->shared_size, 256); }

/* The windows other than shared memory that no atomic may touch; extents of one warp. */
static bool in_private_window(const pe_warp *w, uint64_t address) {
  return in_window(address, w->local_base, pe_product(w->local_size, PE_WARP_LANES)) ||
         in_window(address, w->const_base, w->const_size) || in_window(address, w->param_base, w->param_size);
}

/* An access of `size` bytes at an offset of the shared window. */
static int locate_shared(const pe_warp *w, uint64_t offset, uint32_t size, place *out) {
  if (offset & (size - 1)) return PE_MISALIGNED;
  if (!pe_within(offset, size, w->shared_size)) return PE_ILLEGAL_ADDRESS;
  *out = (place){w->shared_base + offset, true};
  return PE_OK;
}

static int locate(const pe_warp *w, uint32_t space, uint64_t address, uint32_t size, uint32_t count, place *out) {
  if (space == PE_SHARED) return locate_shared(w, address, size, out);
  if (in_window(address, w->shared_base, shared_extent(w))) {
    if (space == PE_GLOBAL || count > 1) return PE_INVALID_ADDRESS_SPACE;
    return locate_shared(w, address - w->shared_base, size, out);
  }
  if (in_private_window(w, address)) return PE_INVALID_ADDRESS_SPACE;
  if (address & (size - 1)) return PE_MISALIGNED;
  if (!pe_in_arena(w, address, size)) return (int)pe_range_fault(space, address);
  *out = (place){address, false};
  return PE_OK;
}

/* f32 sums flush subnormals in global memory and keep them in shared memory. */
static uint32_t flags_in(bool shared, uint32_t op, uint32_t type, uint32_t flags) {
  if (op != PE_ATOM_FADD || type != PE_TYPE_F32) return flags;
  return shared ? flags & ~(uint32_t)PE_ATOM_FTZ : flags | PE_ATOM_FTZ;
}

int pe_mem_atomic(const pe_warp *w, uint32_t space, uint64_t address, uint32_t op, uint32_t type, uint32_t flags,
                  const void *a, const void *b, void *old, int locked) {
  place at;
  if (!pe_atom_legal(op, type)) return PE_ILLEGAL_OP_TYPE;
  int status = locate(w, space, address, pe_atom_bytes(type), 1, &at);
  if (status != PE_OK) return status;
  pe_atom_update((void *)(uintptr_t)at.host, op, type, flags_in(at.shared, op, type, flags), a, b, old,
                 locked && !at.shared);
  return PE_OK;
}

/* ---- a warp --------------------------------------------------------------------------------------------------------- */

/* Least and greatest address and the union of their bits.  Signed, which vectors compare best; see plain(). */
typedef struct span {
  int64_t least, greatest, bits;
} span;

PE_INLINE void widen(span *s, uint64_t address) {
  int64_t value = (int64_t)address;
  s->least = value < s->least ? value : s->least;
  s->greatest = value > s->greatest ? value : s->greatest;
  s->bits |= value;
}

PE_WIDE static span span_of(uint32_t mask, const uint64_t *addr) {
  span s = {INT64_MAX, INT64_MIN, 0};
  if (mask == PE_ALL_LANES) {
    for (uint32_t i = 0; i < PE_WARP_LANES; i++) widen(&s, addr[i]);
    return s;
  }
  PE_FOR_LANES(i, mask) widen(&s, addr[i]);
  return s;
}

/* Every address is aligned and below 2^63. */
static bool plain(span s, uint32_t size) { return s.bits >= 0 && !(s.bits & (size - 1)); }

static bool apart(span s, uint64_t base, uint64_t size) {
  return size == 0 || (uint64_t)s.greatest < base || (uint64_t)s.least >= pe_sum(base, size);
}

/* Are all lanes plainly in global memory? */
static bool all_global(const pe_warp *w, span s, uint32_t size) {
  return pe_in_arena(w, (uint64_t)s.least, size) && pe_in_arena(w, (uint64_t)s.greatest, size) &&
         apart(s, w->shared_base, shared_extent(w)) && apart(s, w->local_base, pe_product(w->local_size, PE_WARP_LANES)) &&
         apart(s, w->const_base, w->const_size) && apart(s, w->param_base, w->param_size);
}

static bool all_shared(const pe_warp *w, span s, uint32_t size) {
  return size <= w->shared_size && (uint64_t)s.greatest <= w->shared_size - size;
}

/* Which lanes may go ahead, and which is the first that may not. */
typedef struct verdict {
  uint32_t shared, global; /* lanes below the failing one */
  int32_t lane;            /* that fails, or -1 */
  uint32_t kind;
} verdict;

/* Fill lanes->addr lane by lane. */
static verdict locate_each(const pe_warp *w, const pe_atom_site *site, uint32_t mask, uint32_t size, const uint64_t *addr,
                           pe_atom_lanes *lanes) {
  verdict v = {0, 0, -1, PE_OK};
  lanes->one_address = false;
  PE_FOR_LANES(i, mask) {
    place at;
    int status = locate(w, site->space, addr[i], size, site->count, &at);
    if (status != PE_OK) {
      v.lane = (int32_t)i;
      v.kind = (uint32_t)status;
      return v;
    }
    lanes->addr[i] = at.host;
    *(at.shared ? &v.shared : &v.global) |= 1u << i;
  }
  return v;
}

static verdict locate_all(const pe_warp *w, const pe_atom_site *site, uint32_t mask, uint32_t size, const uint64_t *addr,
                          pe_atom_lanes *lanes) {
  span s = span_of(mask, addr);
  lanes->one_address = s.least == s.greatest && mask & (mask - 1);
  if (plain(s, size) && site->space == PE_SHARED && all_shared(w, s, size)) {
    for (uint32_t i = 0; i < PE_WARP_LANES; i++) lanes->addr[i] = w->shared_base + addr[i];
    return (verdict){mask, 0, -1, PE_OK};
  }
  if (plain(s, size) && site->space != PE_SHARED && all_global(w, s, size)) {
    memcpy(lanes->addr, addr, sizeof lanes->addr);
    return (verdict){0, mask, -1, PE_OK};
  }
  return locate_each(w, site, mask, size, addr, lanes);
}

static void run_in(pe_atom_lanes *lanes, uint32_t mask, bool shared, bool locked) {
  lanes->mask = mask;
  lanes->locked = locked;
  lanes->flags = flags_in(shared, lanes->op, lanes->type, lanes->flags);
  pe_atom_run(lanes);
}

static void run_global(pe_warp *w, pe_atom_lanes *lanes, uint32_t mask) {
  int exclusive = pe_exclusive_begin(w);
  run_in(lanes, mask, false, !exclusive);
  if (exclusive) pe_exclusive_end(w);
}

/* What describes the instruction; the rest says where its lanes go. */
static pe_atom_lanes lanes_of(pe_warp *w, const pe_atom_site *site, uint32_t flags, const void *a, const void *b, void *old) {
  pe_atom_lanes lanes;
  w->pos = site->pos;
  w->space = site->space;
  lanes.op = site->op;
  lanes.type = site->type;
  lanes.flags = flags;
  lanes.count = site->count;
  lanes.a = a;
  lanes.b = b;
  lanes.old = old;
  return lanes;
}

static uint32_t after(uint32_t mask, int32_t lane) { return mask & ~((2u << lane) - 1); }

void pe_atomic(pe_warp *w, const pe_atom_site *site, uint32_t mask, const uint64_t *addr, const void *a, const void *b,
               void *old) {
  uint32_t size = pe_atom_bytes(site->type) * site->count;
  if (!mask) return;
  if (!pe_atom_legal(site->op, site->type))
    pe_fault(w, PE_ILLEGAL_OP_TYPE, site->pos, -1, site->space, addr[__builtin_ctz(mask)], size);
  pe_atom_lanes lanes = lanes_of(w, site, 0, a, b, old);
  verdict v = locate_all(w, site, mask, size, addr, &lanes);
  if (v.shared) run_in(&lanes, v.shared, true, false); /* a CTA stays on one thread */
  if (v.global) run_global(w, &lanes, v.global);
  if (v.lane < 0) return;
  pe_record fault = {.kind = v.kind, .pos = site->pos, .lane = v.lane, .space = site->space, .address = addr[v.lane], .size = size};
  PE_FOR_LANES(i, after(mask, v.lane)) fault.others += locate(w, site->space, addr[i], size, site->count, &(place){0}) != PE_OK;
  pe_fault_at(w, &fault);
}

/* Does one allocation hold the element?  `known` is the last one that did. */
static bool in_region(const pe_warp *w, pe_allocation *known, uint64_t address, uint32_t size) {
  if (!in_window(address, known->address, known->size) && !pe_arena_nearest(w->launch->arena, address, known)) return false;
  return pe_within(address - known->address, size, known->size);
}

/* PE_OK or the fault of one address: window, alignment, region, in this order. */
static int locate_own(const pe_warp *w, const pe_red_site *site, uint64_t address, uint32_t size, pe_allocation *region,
                      place *out) {
  for (int i = 0; i < 4; i += 2)
    if (in_window(address, site->window[i], site->window[i + 1] - site->window[i])) return PE_INVALID_ADDRESS_SPACE;
  if (address & (size - 1)) return PE_MISALIGNED;
  uint64_t offset = address - site->bias, host = w->arena_base + offset;
  if (address < site->bias || offset >= w->arena_size || !in_region(w, region, host, size)) return PE_ILLEGAL_ADDRESS;
  return locate(w, PE_GLOBAL, host, size, 1, out);
}

/* Are all lanes plainly in one allocation, and in no window?  Then fill lanes->addr. */
static bool locate_together(const pe_warp *w, const pe_red_site *site, uint32_t mask, uint32_t size, const uint64_t *addr,
                            pe_allocation *region, pe_atom_lanes *lanes) {
  uint64_t shift = w->arena_base - site->bias; /* from the program's addresses to those of the host */
  span s = span_of(mask, addr);
  if (!plain(s, size) || (uint64_t)s.least < site->bias) return false;
  for (int i = 0; i < 4; i += 2)
    if (!apart(s, site->window[i], site->window[i + 1] - site->window[i])) return false;
  span host = {(int64_t)((uint64_t)s.least + shift), (int64_t)((uint64_t)s.greatest + shift), 0};
  if (!all_global(w, host, size) || !in_region(w, region, (uint64_t)host.least, size)) return false;
  if ((uint64_t)host.greatest - region->address > region->size - size) return false;
  lanes->one_address = s.least == s.greatest && mask & (mask - 1);
  for (uint32_t i = 0; i < PE_WARP_LANES; i++) lanes->addr[i] = addr[i] + shift;
  return true;
}

void pe_red(pe_warp *w, const pe_red_site *site, uint32_t mask, const uint64_t *addr, const void *a) {
  uint32_t size = pe_atom_bytes(site->atom.type), live = 0, kind = PE_OK;
  int32_t failed = -1;
  pe_allocation region = {0};
  const pe_su_context *ctx = pe_launch_surfaces(w);
  pe_atom_lanes lanes = lanes_of(w, &site->atom, site->flags, a, NULL, NULL);
  if (ctx && ctx->policy.fminmax_keep_old) lanes.flags |= PE_ATOM_KEEP_OLD;
  if (!mask) return;
  if (locate_together(w, site, mask, size, addr, &region, &lanes)) {
    run_global(w, &lanes, mask);
    return;
  }
  lanes.one_address = false;
  PE_FOR_LANES(i, mask) {
    place at;
    kind = (uint32_t)locate_own(w, site, addr[i], size, &region, &at);
    if (kind != PE_OK) {
      failed = (int32_t)i;
      break;
    }
    lanes.addr[i] = at.host;
    live |= 1u << i;
  }
  if (live) run_global(w, &lanes, live);
  if (failed < 0) return;
  pe_record fault = {.kind = kind, .pos = site->atom.pos, .lane = failed, .space = PE_GENERIC, .address = addr[failed],
                     .size = size, .note = "in the program's own address space"};
  PE_FOR_LANES(i, after(mask, failed)) fault.others += locate_own(w, site, addr[i], size, &region, &(place){0}) != PE_OK;
  pe_fault_at(w, &fault);
}
