/* extents.c: what lies where in device memory, as programs see it. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "extents.h"
#include "internal.h"
#include "bisect.h"

#define GRANULE 16ull /* of the heap */
#define FREED 0x80000000u
#define MAX_STEPS 4096 /* granules that are searched for a neighbour */

bool pe_extents_init(pe_extents *extents, pe_arena *arena) {
  *extents = (pe_extents){.arena = arena};
  return pthread_rwlock_init(&extents->lock, NULL) == 0;
}

void pe_extents_end(pe_extents *extents) {
  if (extents->heap.owner) munmap(extents->heap.owner, extents->heap.granules * sizeof *extents->heap.owner);
  if (extents->heap.block) munmap(extents->heap.block, extents->heap.granules * sizeof *extents->heap.block);
  free(extents->variables);
  pthread_rwlock_destroy(&extents->lock);
}

static bool contains(const pe_extent *extent, uint64_t address) { return address - extent->address < extent->size; }

static pe_extent extent_of(const pe_allocation *allocation) {
  pe_extent made = {.address = allocation->address, .size = allocation->size, .lasting = true};
  memcpy(made.name, allocation->name, sizeof made.name);
  return made;
}

/* ---- the heap of kernels ---- */

static void *map(uint64_t count, size_t size) {
  void *made = mmap(NULL, count * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return made == MAP_FAILED ? NULL : made;
}

/* Make the map when the first block is there.  With the lock held. */
static void map_heap(pe_extents *extents, uint64_t address) {
  pe_allocation heap;
  pe_heap_map *made = &extents->heap;
  if (made->owner || !pe_arena_nearest(extents->arena, address, &heap)) return;
  uint64_t granules = heap.size / GRANULE;
  made->block = map(granules, sizeof *made->block);
  uint32_t *owner = made->block ? map(granules, sizeof *made->owner) : NULL;
  if (!owner) return; /* its blocks are not known, then */
  made->base = heap.address;
  made->granules = granules;
  __atomic_store_n(&made->owner, owner, __ATOMIC_RELEASE);
}

/* The heap's granule of an address; false if it has none. */
static bool granule_of(const pe_extents *extents, uint64_t address, uint64_t *granule) {
  if (!__atomic_load_n(&extents->heap.owner, __ATOMIC_ACQUIRE)) return false;
  *granule = (address - extents->heap.base) / GRANULE;
  return *granule < extents->heap.granules;
}

static uint32_t owner_of(const pe_extents *extents, uint64_t granule) {
  return __atomic_load_n(&extents->heap.owner[granule], __ATOMIC_RELAXED);
}

static void own(pe_extents *extents, uint64_t first, uint64_t size, uint32_t owner) {
  uint64_t last = pe_round_up(size, GRANULE) / GRANULE;
  for (uint64_t i = 0; i < last && first + i < extents->heap.granules; i++)
    __atomic_store_n(&extents->heap.owner[first + i], owner, __ATOMIC_RELAXED);
}

static bool heap_block(const pe_extents *extents, uint64_t granule, pe_extent *out) {
  uint32_t owner = owner_of(extents, granule);
  if (!owner) return false;
  uint64_t first = (owner & ~FREED) - 1;
  *out = (pe_extent){.address = extents->heap.base + first * GRANULE, .freed = (owner & FREED) != 0, .name = "malloc"};
  out->size = __atomic_load_n(&extents->heap.block[first].size, __ATOMIC_RELAXED);
  return true;
}

static uint64_t distance(const pe_extent *extent, uint64_t address) {
  if (contains(extent, address)) return 0;
  return address < extent->address ? extent->address - address : address - extent->address - extent->size + 1;
}

static bool near_heap_block(const pe_extents *extents, uint64_t address, uint64_t granule, pe_extent *out) {
  pe_extent other;
  bool found = false;
  for (uint64_t i = 0; i < MAX_STEPS && i <= granule && !found; i++) found = heap_block(extents, granule - i, out);
  for (uint64_t i = 1; i < MAX_STEPS && granule + i < extents->heap.granules; i++) {
    if (!heap_block(extents, granule + i, &other)) continue;
    if (!found || distance(&other, address) < distance(out, address)) *out = other;
    return true;
  }
  return found;
}

/* ---- variables ---- */

/* How many variables begin at or before an address. */
static size_t variables_up_to(const pe_extents *extents, uint64_t address) {
  return PE_FIRST_NOT(middle, extents->variable_count, extents->variables[middle].address <= address);
}

void pe_extents_named(pe_extents *extents, uint64_t address, uint64_t size, const char *name) {
  if (!size) return;
  pthread_rwlock_wrlock(&extents->lock);
  if (extents->variable_count == extents->variable_room) {
    size_t room = 2 * extents->variable_room + 16;
    pe_extent *grown = realloc(extents->variables, room * sizeof *grown);
    if (grown) extents->variables = grown, extents->variable_room = room;
  }
  if (extents->variable_count < extents->variable_room) {
    size_t at = variables_up_to(extents, address);
    pe_extent *made = &extents->variables[at];
    memmove(made + 1, made, (extents->variable_count++ - at) * sizeof *made);
    *made = (pe_extent){.address = address, .size = size, .lasting = true};
    strncpy(made->name, name, sizeof made->name - 1);
  }
  pthread_rwlock_unlock(&extents->lock);
}

/* The variable of an allocation that contains an address, or is nearest to it; the allocation itself if it has none. */
static pe_extent variable_near(const pe_extents *extents, const pe_extent *all, uint64_t address) {
  size_t next = variables_up_to(extents, address);
  const pe_extent *below = next ? &extents->variables[next - 1] : NULL, *above = &extents->variables[next];
  if (!below || !contains(all, below->address)) below = NULL;
  if (next == extents->variable_count || !contains(all, above->address)) above = NULL;
  if (!below) return above ? *above : *all;
  return above && distance(above, address) < distance(below, address) ? *above : *below;
}

void pe_extents_unnamed(pe_extents *extents, uint64_t address) {
  pthread_rwlock_wrlock(&extents->lock);
  size_t end = variables_up_to(extents, address);
  bool known = end && extents->variables[end - 1].address == address;
  pe_extent *gone = &extents->variables[end - known];
  if (known) memmove(gone, gone + 1, (extents->variable_count-- - end) * sizeof *gone);
  pthread_rwlock_unlock(&extents->lock);
}

/* What lies outside of the arena.  With the lock held. */
static bool outside_at(const pe_extents *extents, uint64_t address, pe_extent *out) {
  size_t end = variables_up_to(extents, address);
  if (end) *out = extents->variables[end - 1];
  return end && contains(out, address);
}

static void forget_variables(pe_extents *extents, const pe_extent *all) {
  if (!extents->variable_count) return;
  size_t first = variables_up_to(extents, all->address - 1), end = variables_up_to(extents, all->address + all->size - 1);
  memmove(&extents->variables[first], &extents->variables[end],
          (extents->variable_count - end) * sizeof *extents->variables);
  extents->variable_count -= end - first;
}

/* ---- events ---- */

void pe_extents_allocated(pe_extents *extents, uint64_t address, const pe_heap_block *block) {
  uint64_t granule;
  pthread_rwlock_wrlock(&extents->lock);
  map_heap(extents, address);
  bool known = granule_of(extents, address, &granule);
  if (known) {
    pe_heap_block *made = &extents->heap.block[granule];
    made->kernel = block->kernel;
    made->pos = block->pos;
    made->thread = block->thread;
    __atomic_store_n(&made->size, block->size, __ATOMIC_RELAXED); /* others read it without the lock */
  }
  pthread_rwlock_unlock(&extents->lock);
  if (known) own(extents, granule, block->size, (uint32_t)granule + 1);
}

void pe_extents_heap(pe_extents *extents, void (*look)(void *context, pe_heap_block *block), void *context) {
  pthread_rwlock_wrlock(&extents->lock);
  uint64_t granules = extents->heap.owner ? extents->heap.granules : 0;
  for (uint64_t i = 0; i < granules; i++)
    if (owner_of(extents, i) == i + 1) look(context, &extents->heap.block[i]);
  pthread_rwlock_unlock(&extents->lock);
}

void pe_extents_freed(pe_extents *extents, uint64_t address) {
  pe_allocation hosts;
  pe_extent block;
  uint64_t granule;
  if (granule_of(extents, address, &granule)) {
    if (heap_block(extents, granule, &block)) own(extents, granule, block.size, ((uint32_t)granule + 1) | FREED);
    return;
  }
  if (!pe_arena_find(extents->arena, address, &hosts)) return;
  pthread_rwlock_wrlock(&extents->lock);
  pe_extent *freed = &extents->freed[extents->freed_count++ % PE_FREED_EXTENTS];
  *freed = extent_of(&hosts);
  freed->freed = true;
  forget_variables(extents, freed);
  pthread_rwlock_unlock(&extents->lock);
}

/* ---- questions ---- */

bool pe_extents_in_heap(const pe_extents *extents, uint64_t address) {
  uint64_t granule;
  return granule_of(extents, address, &granule);
}

bool pe_extents_at(pe_extents *extents, uint64_t address, pe_extent *out) {
  pe_allocation hosts;
  uint64_t granule;
  if (granule_of(extents, address, &granule))
    return heap_block(extents, granule, out) && !out->freed && contains(out, address);
  bool inside = pe_arena_find(extents->arena, address, &hosts) != 0;
  pe_extent all = inside ? extent_of(&hosts) : (pe_extent){0};
  pthread_rwlock_rdlock(&extents->lock);
  if (inside) *out = variable_near(extents, &all, address);
  bool found = inside ? contains(out, address) : outside_at(extents, address, out);
  pthread_rwlock_unlock(&extents->lock);
  return found;
}

/* With the lock held. */
static bool freed_at(const pe_extents *extents, uint64_t address, pe_extent *out) {
  uint64_t kept = extents->freed_count < PE_FREED_EXTENTS ? extents->freed_count : PE_FREED_EXTENTS;
  for (uint64_t i = 1; i <= kept; i++) {
    const pe_extent *freed = &extents->freed[(extents->freed_count - i) % PE_FREED_EXTENTS];
    if (!contains(freed, address)) continue;
    *out = *freed;
    return true;
  }
  return false;
}

bool pe_extents_near(pe_extents *extents, uint64_t address, pe_extent *out) {
  pe_allocation nearest;
  uint64_t granule;
  if (granule_of(extents, address, &granule)) return near_heap_block(extents, address, granule, out);
  bool any = pe_arena_nearest(extents->arena, address, &nearest) != 0;
  pthread_rwlock_rdlock(&extents->lock);
  bool live = any && address - nearest.address < nearest.size;
  bool freed = !live && freed_at(extents, address, out);
  if (any && !freed) {
    pe_extent all = extent_of(&nearest);
    *out = variable_near(extents, &all, address);
  }
  pthread_rwlock_unlock(&extents->lock);
  return any || freed;
}
