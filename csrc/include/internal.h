/* internal.h: what the runtime's own files share.
 *
 * A launch is run by workers (pool.c), each with one CTA at a time (sched.c); its warps run on fibers (fiber.c), whose
 * context is abandoned, never unwound, when the launch ends early (fault.c, signals.c).  Hence a rule for every function
 * that JIT code calls: hold no lock and own no heap memory while touching device memory or calling pe_fault.
 */
#ifndef PTXEMU_INTERNAL_H
#define PTXEMU_INTERNAL_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stdnoreturn.h>
#include "checked.h"
#include "ptxemu.h"
#include "types.h"
#include "host.h"

#define PE_WARP_LANES 32
#define PE_MAX_THREADS 1024
#define PE_MAX_WARPS (PE_MAX_THREADS / PE_WARP_LANES)
#define PE_ALL_LANES 0xffffffffu
#define PE_NULL_BYTES 4096 /* addresses below are a null pointer plus a small offset */

/* Where the addresses of a process end (Linux, unless it asks for more). */
#if defined(__aarch64__)
#define PE_ADDRESS_SPACE (1ull << 48)
#else
#define PE_ADDRESS_SPACE (1ull << 47)
#endif

/* The address may be dereferenced by the host without leaving the arena and its margins (it may still be unallocated,
 * which faults like an access of JIT code). */
static inline bool pe_in_arena(const pe_warp *w, uint64_t address, uint64_t size) {
  return pe_within(address - w->arena_base, size, w->arena_size);
}

#endif
