/* arena_find.c: what lies where in an arena. */
#include <string.h>
#include "arena_blocks.h"
#include "bisect.h"
#include "checked.h"

/* ---- for the arena's own files ---- */

size_t pe_block_at(const pe_arena *arena, uint64_t address) {
  size_t above = PE_FIRST_NOT(middle, arena->count, arena->blocks[middle].start <= address);
  return above ? above - 1 : 0;
}

block *pe_block_of(pe_arena *arena, uint64_t address) {
  block *b = &arena->blocks[pe_block_at(arena, address)];
  return pe_block_is_live(b) && b->address == address ? b : NULL;
}

block *pe_block_around(pe_arena *arena, uint64_t address, uint64_t size) {
  block *b = &arena->blocks[pe_block_at(arena, address)];
  bool inside = pe_block_is_hosts(b) && address >= b->address && address - b->address < b->size;
  return inside && pe_within(address - b->address, size, b->size) ? b : NULL;
}

/* ---- for everybody ---- */

static bool is_idle(const pe_arena *arena, const block *b) {
  for (size_t i = 0; b->window && i < arena->idle_count; i++)
    if (arena->idle[i].address == b->address) return true;
  return false;
}

static void describe(const block *b, pe_allocation *out) {
  *out = (pe_allocation){.address = b->address, .size = b->size};
  strncpy(out->name, b->name, sizeof out->name - 1);
}

uint32_t pe_arena_allocations(pe_arena *arena) {
  pe_lock();
  uint32_t count = arena->allocations;
  pe_unlock();
  return count;
}

int pe_arena_find(pe_arena *arena, uint64_t address, pe_allocation *out) {
  pe_lock();
  const block *b = pe_block_around(arena, address, 0);
  const pe_mapping *mapping = pe_mapping_at(&arena->mappings, address);
  bool mapped = mapping && mapping->access;
  if (b) describe(b, out);
  if (mapped) pe_mapping_describe(mapping, out);
  pe_unlock();
  return b || mapped;
}

int pe_arena_next(pe_arena *arena, uint64_t address, pe_allocation *out) {
  pe_lock();
  size_t i = address < arena->base ? 0 : pe_block_at(arena, address);
  while (i < arena->count && !(pe_block_is_hosts(&arena->blocks[i]) && arena->blocks[i].address > address)) i++;
  bool found = i < arena->count;
  if (found) describe(&arena->blocks[i], out);
  pe_unlock();
  return found;
}

static uint64_t distance(const block *b, uint64_t address) {
  if (address < b->address) return b->address - address;
  return address - b->address < b->size ? 0 : address - b->address - b->size + 1;
}

int pe_arena_nearest(pe_arena *arena, uint64_t address, pe_allocation *out) {
  const block *best = NULL;
  pe_lock();
  size_t center = pe_block_at(arena, address);
  for (size_t i = center + 1; i-- > 0;) { /* the nearest live one at or below ... */
    const block *b = &arena->blocks[i];
    if (!pe_block_is_live(b) || is_idle(arena, b)) continue;
    best = b;
    break;
  }
  for (size_t i = center + 1; i < arena->count; i++) { /* ... and above */
    const block *b = &arena->blocks[i];
    if (!pe_block_is_live(b) || is_idle(arena, b)) continue;
    if (!best || distance(b, address) < distance(best, address)) best = b;
    break;
  }
  const pe_mapping *mapping = pe_mapping_at(&arena->mappings, address);
  if (mapping)
    pe_mapping_describe(mapping, out);
  else if (best)
    describe(best, out);
  pe_unlock();
  return best != NULL;
}

/* The live allocation that contains an address, or NULL. */
static const block *find_live(const pe_arena *arena, uint64_t address) {
  const block *b = &arena->blocks[pe_block_at(arena, address)];
  return pe_block_is_live(b) && !is_idle(arena, b) && address - b->address < b->size ? b : NULL;
}

uint64_t pe_arena_remaining(pe_arena *arena, uint64_t address) {
  pe_lock();
  const block *b = find_live(arena, address);
  uint64_t remaining = !b            ? 0
                       : b->reserved ? pe_mappings_reach(&arena->mappings, address)
                                     : b->size - (address - b->address);
  pe_unlock();
  return remaining;
}

uint64_t pe_arena_lasting(pe_arena *arena, uint64_t address) {
  pe_lock();
  const block *b = find_live(arena, address);
  uint64_t remaining = b && !b->reserved && !b->backed ? b->size - (address - b->address) : 0;
  pe_unlock();
  return remaining;
}
