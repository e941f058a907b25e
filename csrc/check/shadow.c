/* shadow.c: memory beside device memory, for checkers. */
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "shadow.h"
#include "arena.h"
#include "checked.h"
#include "fault.h"
#include "internal.h"

enum {
  BEHIND = 4096 /* bytes behind the last, which compiled code may read, as it reads whole vectors */
};

static uint64_t chunk_numbers(const pe_shadow *shadow) { return PE_SHADOW_WORDS * shadow->each; }

static size_t bytes_of(const pe_shadow *shadow) {
  return shadow->chunks * chunk_numbers(shadow) * sizeof(uint64_t) + BEHIND;
}

bool pe_shadow_init(pe_shadow *shadow, pe_arena *arena, uint64_t blank, uint64_t each) {
  *shadow = (pe_shadow){.arena = arena, .base = pe_arena_base(arena), .blank = blank, .each = each};
  shadow->chunks = pe_arena_extent(arena) >> PE_SHADOW_LOG2;
  shadow->kept = calloc(shadow->chunks, sizeof *shadow->kept);
  void *made = mmap(NULL, bytes_of(shadow), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  shadow->numbers = made == MAP_FAILED ? NULL : made;
  return shadow->kept && shadow->numbers;
}

void pe_shadow_end(pe_shadow *shadow) {
  if (shadow->numbers) munmap(shadow->numbers, bytes_of(shadow));
  free(shadow->kept);
}

static void fill(const pe_shadow *shadow, uint64_t first, uint64_t end) {
  for (uint64_t i = first; i < end; i++) shadow->numbers[i] = shadow->blank;
}

bool pe_shadow_keep(pe_shadow *shadow, uint64_t address) {
  uint64_t chunk = (address - shadow->base) >> PE_SHADOW_LOG2;
  uint8_t state = PE_NOT_KEPT;
  if (chunk >= shadow->chunks) return false;
  pe_require_stack();
  if (atomic_compare_exchange_strong(&shadow->kept[chunk], &state, PE_TO_BE_KEPT)) {
    uint64_t count = chunk_numbers(shadow);
    bool any = pe_arena_charge(shadow->arena, count * sizeof(uint64_t));
    if (any && shadow->blank) fill(shadow, chunk * count, (chunk + 1) * count); /* new memory is zeros */
    if (!any) shadow->lost++;
    atomic_store_explicit(&shadow->kept[chunk], any ? PE_KEPT : PE_NOT_KEPT, memory_order_release);
    return any;
  }
  while ((state = atomic_load(&shadow->kept[chunk])) == PE_TO_BE_KEPT) sched_yield();
  return state == PE_KEPT;
}

void pe_shadow_clear(pe_shadow *shadow, uint64_t address, uint64_t size) {
  uint64_t first = (address - shadow->base) / 4, end = (pe_round_up(pe_sum(address - shadow->base, size), 4)) / 4;
  for (uint64_t next; first < end; first = next) {
    uint64_t chunk = first / PE_SHADOW_WORDS;
    next = (chunk + 1) * PE_SHADOW_WORDS < end ? (chunk + 1) * PE_SHADOW_WORDS : end;
    if (chunk >= shadow->chunks) return;
    if (atomic_load_explicit(&shadow->kept[chunk], memory_order_acquire) != PE_KEPT) continue;
    fill(shadow, first * shadow->each, next * shadow->each);
  }
}
