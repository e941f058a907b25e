/* shadow.c: memory beside device memory, for checkers. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include "shadow.h"
#include "arena.h"
#include "checked.h"
#include "internal.h"

bool pe_shadow_init(pe_shadow *shadow, pe_arena *arena, size_t cell) {
  *shadow = (pe_shadow){.arena = arena, .base = pe_arena_base(arena), .cell = cell};
  shadow->chunks = pe_arena_extent(arena) >> PE_SHADOW_LOG2;
  shadow->chunk = calloc(shadow->chunks, sizeof *shadow->chunk);
  return shadow->chunk != NULL;
}

static size_t bytes_of(const pe_shadow *shadow) { return sizeof(pe_chunk) + PE_SHADOW_WORDS * shadow->cell; }

void pe_shadow_end(pe_shadow *shadow) {
  for (uint64_t i = 0; shadow->chunk && i < shadow->chunks; i++) free(atomic_load(&shadow->chunk[i]));
  free((void *)shadow->chunk);
}

pe_chunk *pe_shadow_chunk(pe_shadow *shadow, uint64_t address) {
  uint64_t number = (address - shadow->base) >> PE_SHADOW_LOG2;
  if (number >= shadow->chunks) return NULL;
  pe_chunk *chunk = atomic_load_explicit(&shadow->chunk[number], memory_order_acquire);
  if (chunk) return chunk;
  size_t bytes = bytes_of(shadow);
  pe_chunk *made = pe_arena_charge(shadow->arena, bytes) ? calloc(1, bytes) : NULL;
  if (made && atomic_compare_exchange_strong(&shadow->chunk[number], &chunk, made)) return made;
  if (made) pe_arena_discharge(shadow->arena, bytes);
  free(made);
  if (!chunk) shadow->lost++;
  return chunk;
}

void pe_shadow_clear(pe_shadow *shadow, uint64_t address, uint64_t size) {
  uint64_t first = (address - shadow->base) / 4, end = (pe_round_up(pe_sum(address - shadow->base, size), 4)) / 4;
  for (uint64_t next; first < end; first = next) {
    uint64_t number = first / PE_SHADOW_WORDS, begin = first % PE_SHADOW_WORDS;
    next = (number + 1) * PE_SHADOW_WORDS < end ? (number + 1) * PE_SHADOW_WORDS : end;
    if (number >= shadow->chunks) return;
    pe_chunk *chunk = atomic_load_explicit(&shadow->chunk[number], memory_order_acquire);
    if (!chunk) continue;
    pe_chunk_lock(chunk);
    memset(chunk->cells + begin * shadow->cell, 0, (next - first) * shadow->cell);
    pe_chunk_unlock(chunk);
  }
}

void pe_chunk_lock(pe_chunk *chunk) {
  while (atomic_exchange_explicit(&chunk->locked, 1, memory_order_acquire)) sched_yield();
}

void pe_chunk_unlock(pe_chunk *chunk) { atomic_store_explicit(&chunk->locked, 0, memory_order_release); }
