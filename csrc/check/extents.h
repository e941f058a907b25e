/* extents.h: what lies where in device memory, as programs see it: allocations, variables, and what kernels have allocated. */
#ifndef PTXEMU_EXTENTS_H
#define PTXEMU_EXTENTS_H
#include <pthread.h>
#include <stdbool.h>
#include "check.h"

/* One of them.  Freed ones are known for a while. */
typedef struct pe_extent {
  uint64_t address, size;
  bool freed;
  bool lasting; /* it stays at least until the launches end that use it */
  char name[sizeof((pe_allocation *)0)->name];
} pe_extent;

enum { PE_FREED_EXTENTS = 256 };

/* A block of the heap of kernels: its size in bytes, and who has allocated it, if anybody wants to know. */
typedef struct pe_heap_block {
  uint64_t size;
  uint64_t kernel; /* the address of its code, or 0 */
  uint32_t pos;
  pe_thread_place thread;
} pe_heap_block;

/* The heap of kernels in granules: whose each one is, from 1 on the number of a block's first, with the top bit set when it is freed;
 * and there the block. */
typedef struct pe_heap_map {
  uint64_t base, granules;
  uint32_t *owner;
  pe_heap_block *block;
} pe_heap_map;

typedef struct pe_extents {
  pe_arena *arena;
  pthread_rwlock_t lock; /* of all but the heap's map, whose entries are atomic */
  pe_extent *variables;  /* in the order of their addresses */
  size_t variable_count, variable_room;
  pe_extent freed[PE_FREED_EXTENTS]; /* the latest ones, in turn */
  uint64_t freed_count;
  pe_heap_map heap;
} pe_extents;

bool pe_extents_init(pe_extents *extents, pe_arena *arena);
void pe_extents_end(pe_extents *extents);

/* The host, or a kernel, has allocated something, or is about to free it. What the host allocates, the arena knows. */
void pe_extents_allocated(pe_extents *extents, uint64_t address, const pe_heap_block *block);
void pe_extents_freed(pe_extents *extents, uint64_t address);
/* A variable of a module lies in an allocation; or there is memory outside of the arena, until it is unnamed. */
void pe_extents_named(pe_extents *extents, uint64_t address, uint64_t size, const char *name);
void pe_extents_unnamed(pe_extents *extents, uint64_t address);

/* Whether an address lies in the heap of kernels. */
bool pe_extents_in_heap(const pe_extents *extents, uint64_t address);

/* Look at each block of the heap that is not freed, with the lock held. */
void pe_extents_heap(pe_extents *extents, void (*look)(void *context, pe_heap_block *block), void *context);

/* What contains an address and may be used; false if nothing does. */
bool pe_extents_at(pe_extents *extents, uint64_t address, pe_extent *out);

/* What an address most likely was meant for: what contained it before it was freed, or the nearest extent. */
bool pe_extents_near(pe_extents *extents, uint64_t address, pe_extent *out);

#endif
