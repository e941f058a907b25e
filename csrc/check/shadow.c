/* shadow.c: memory beside device memory, for checkers. */
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

static size_t bytes_of(const pe_shadow *shadow) {
  return sizeof(pe_chunk) + PE_SHADOW_WORDS * shadow->cell + PE_SHADOW_ALIGN;
}

static pe_chunk *new_chunk(size_t bytes) {
  void *block = calloc(1, bytes);
  if (!block) return NULL;
  pe_chunk *chunk = (pe_chunk *)(uintptr_t)pe_round_up((uint64_t)(uintptr_t)block, PE_SHADOW_ALIGN);
  chunk->block = block;
  return chunk;
}

static void free_chunk(pe_chunk *chunk) {
  if (chunk) free(chunk->block);
}

void pe_shadow_end(pe_shadow *shadow) {
  for (uint64_t i = 0; shadow->chunk && i < shadow->chunks; i++) free_chunk(atomic_load(&shadow->chunk[i]));
  free((void *)shadow->chunk);
}

pe_chunk *pe_shadow_chunk(pe_shadow *shadow, uint64_t address) {
  uint64_t number = (address - shadow->base) >> PE_SHADOW_LOG2;
  pe_chunk *chunk = pe_shadow_find(shadow, address);
  if (chunk || number >= shadow->chunks) return chunk;
  size_t bytes = bytes_of(shadow);
  pe_chunk *made = pe_arena_charge(shadow->arena, bytes) ? new_chunk(bytes) : NULL;
  if (made && atomic_compare_exchange_strong(&shadow->chunk[number], &chunk, made)) return made;
  if (made) pe_arena_discharge(shadow->arena, bytes);
  free_chunk(made);
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
    memset(chunk->cells + begin * shadow->cell, 0, (next - first) * shadow->cell);
  }
}
