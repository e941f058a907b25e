/* observer.h: what those who watch launches are told. */
#ifndef PTXEMU_OBSERVER_H
#define PTXEMU_OBSERVER_H
#include "host.h"
#include "ptxemu.h"

#pragma GCC visibility push(default)
/* CDEF BEGIN */
/* An access of memory; an update is both. */
enum { PE_READ = 1, PE_WRITE = 2, PE_UPDATE = PE_READ | PE_WRITE };

/* The space of texels of surfaces and textures: the addresses are where they lie in device memory.  Of a texture, each texel
 * that goes into a result is told. */
enum { PE_TEXEL = 6 };

/* Barriers beyond those of a CTA, which are 0 to 15: barrier.cluster and the barrier of a cooperative grid. */
enum { PE_BARRIER_CLUSTER = 16, PE_BARRIER_GRID = 17 };

/* One access of the lanes of `mask`, which are allowed: `size` bytes each at address[i], as the program writes it. */
typedef struct pe_memory_event {
  uint32_t pos;
  uint32_t kind;  /* PE_READ ... */
  uint32_t space; /* PE_GENERIC ... PE_TEXEL */
  uint32_t mask;
  uint64_t size;
  const uint64_t *address;
} pe_memory_event;

/* Functions that are called when something happens; may be NULL.  Those with a warp are called on its worker's
 * thread and its fiber, so several at the same time; none may call the runtime. Accesses of compiled code are told by code
 * that is compiled for it. */
typedef struct pe_observer {
  void *context;
  void (*memory)(void *context, const pe_warp *w, const pe_memory_event *event);
  void (*allocated)(void *context, uint64_t address, uint64_t size); /* by the host, or by a kernel's malloc */
  void (*freed)(void *context, uint64_t address);
  void (*barrier)(void *context, const pe_warp *w, uint32_t pos, uint32_t id, uint32_t mask); /* lanes arrive */
  void (*begun)(void *context, const pe_config *config);
  void (*ended)(void *context, const pe_config *config, const pe_record *record); /* of each that has begun */
} pe_observer;

/* Tell `observer` of allocations from now on, and of launches that start from now on; NULL ends that.  It must stay where it is
 * until the arena and these launches have ended. */
void pe_arena_observe(pe_arena *arena, const pe_observer *observer);

/* Called by compiled code that is to be observed, after each access of its own. */
void pe_observe(pe_warp *w, uint32_t pos, uint32_t kind, uint32_t space, uint32_t size, uint32_t mask, const uint64_t *addr);
/* CDEF END */
#pragma GCC visibility pop

#endif
