/* arena.h: device memory, for the runtime's own files. */
#ifndef PTXEMU_ARENA_H
#define PTXEMU_ARENA_H
#include <stdbool.h>
#include "heap.h"
#include "host.h"
#include "observer.h"

#define PE_HUGE_PAGE (2ull << 20)
/* For memory that begins with one: fewer faults, and entries for its addresses. */
void pe_prefer_huge_pages(void *pages, uint64_t bytes);

/* Who is told what happens, or NULL. */
const pe_observer *pe_arena_observer(const pe_arena *arena);

static inline void pe_tell_allocated(const pe_observer *observer, uint64_t address, uint64_t size, const pe_warp *w,
                                     int lane) {
  if (observer && observer->allocated) observer->allocated(observer->context, address, size, w, (uint32_t)lane);
}

static inline void pe_tell_named(const pe_observer *observer, uint64_t address, uint64_t size, const char *name) {
  if (observer && observer->named) observer->named(observer->context, address, size, name);
}

static inline void pe_tell_freed(const pe_observer *observer, uint64_t address) {
  if (observer && observer->freed) observer->freed(observer->context, address);
}

/* Bytes from the address to the end of the live allocation that contains it, or 0. */
uint64_t pe_arena_remaining(pe_arena *arena, uint64_t address);

/* Bytes from the address to the end of the live allocation that contains it, if all of that is its own memory to read and to write
 * until it is freed, or 0. */
uint64_t pe_arena_lasting(pe_arena *arena, uint64_t address);

/* The heap of kernels' malloc, made at the first use; NULL if there is no memory for it. With pe_lock held. */
pe_heap *pe_arena_heap(pe_arena *arena);

/* Whether other processes may have memory of it. With pe_lock held. */
bool pe_arena_is_shared(const pe_arena *arena);

/* The same without it. */
bool pe_arena_shares(pe_arena *arena);

/* Count host memory that a launch takes elsewhere against the capacity. False: there is not enough. Async-signal-safe. */
bool pe_arena_charge(pe_arena *arena, uint64_t bytes);
void pe_arena_discharge(pe_arena *arena, uint64_t bytes);

/* Of a pattern of swizzled lines of shared memory, whose place in it programs take from either address of a line. */
#define PE_WINDOW_ALIGNMENT 1024ull

/* Memory of launches, recycled without unmapping it; `counted` against the capacity or not. With pe_lock held. */
uint64_t pe_window_take(pe_arena *arena, uint64_t size, const char *name, bool counted);
void pe_window_return(pe_arena *arena, uint64_t address);

#endif
