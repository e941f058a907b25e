/* shadow.h: memory beside device memory, in which a checker keeps what it knows of each word of 4 bytes. */
#ifndef PTXEMU_SHADOW_H
#define PTXEMU_SHADOW_H
#include <stdbool.h>
#include <stdint.h>
#include "host.h"

enum { PE_SHADOW_LOG2 = 16, PE_SHADOW_WORDS = (1 << PE_SHADOW_LOG2) / 4 };

/* What is kept of so many words, and a lock of it. */
typedef struct pe_chunk {
  _Atomic uint32_t locked;
  char cells[];
} pe_chunk;

typedef struct pe_shadow {
  pe_arena *arena;
  uint64_t base, chunks;
  size_t cell; /* bytes of each word's */
  pe_chunk *_Atomic *chunk;
  _Atomic uint64_t lost; /* accesses of which nothing is kept, for there is no memory */
} pe_shadow;

bool pe_shadow_init(pe_shadow *shadow, pe_arena *arena, size_t cell);
void pe_shadow_end(pe_shadow *shadow);

/* The chunk of an address, made of zeros at the first use and counted as memory of the device; NULL: there is none. */
pe_chunk *pe_shadow_chunk(pe_shadow *shadow, uint64_t address);

/* Nothing is known any more of the words of some bytes. Where nothing was kept, nothing is made. */
void pe_shadow_clear(pe_shadow *shadow, uint64_t address, uint64_t size);

static inline void *pe_shadow_cell(const pe_shadow *shadow, pe_chunk *chunk, uint64_t address) {
  return chunk->cells + (address - shadow->base) / 4 % PE_SHADOW_WORDS * shadow->cell;
}

void pe_chunk_lock(pe_chunk *chunk);
void pe_chunk_unlock(pe_chunk *chunk);

#endif
