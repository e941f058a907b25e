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

/* The address may be dereferenced by the host without leaving the arena and its margins (it may still be unallocated,
 * which faults like an access of JIT code). */
static inline bool pe_in_arena(const pe_warp *w, uint64_t address, uint64_t size) {
  return pe_within(address - w->arena_base, size, w->arena_size);
}

/* The context given at launch (a pe_su_context), or NULL. */
struct pe_su_context;
struct pe_su_context *pe_launch_surfaces(const pe_warp *w);

/* Begin a section of unlocked updates: 1 if no other thread can reach device memory until pe_exclusive_end, which must
 * then follow (a fault in between ends it too).  0: use locked operations; no end. */
int pe_exclusive_begin(pe_warp *w);
void pe_exclusive_end(pe_warp *w);

/* Record a fault and leave the kernel. */
noreturn void pe_fault_at(pe_warp *w, const pe_record *fault);

/* pe_fault with the slot and the coordinates x, y, z, layer of a surface access. */
noreturn void pe_fault_surface(pe_warp *w, uint32_t kind, uint32_t pos, int32_t lane, uint32_t slot, const int64_t coord[4],
                               uint32_t size);

/* pe_fault with a text that says more. */
noreturn void pe_fault_note(pe_warp *w, uint32_t kind, uint32_t pos, int32_t lane, uint32_t space, uint64_t address,
                            uint32_t size, const char *note);

#endif
