/* shadow.h: memory beside device memory, in which a checker keeps what it knows of each word of 4 bytes. */
#ifndef PTXEMU_SHADOW_H
#define PTXEMU_SHADOW_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "host.h"

enum { PE_SHADOW_LOG2 = 16, PE_SHADOW_WORDS = (1 << PE_SHADOW_LOG2) / 4, PE_SHADOW_ALIGN = 64 };

/* What is kept of so many words. */
typedef struct pe_chunk {
  void *block; /* of the C library, in which it is */
  _Alignas(PE_SHADOW_ALIGN) char cells[];
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

/* The same if it has been made, else NULL. */
static inline pe_chunk *pe_shadow_find(const pe_shadow *shadow, uint64_t address) {
  uint64_t number = (address - shadow->base) >> PE_SHADOW_LOG2;
  return number < shadow->chunks ? atomic_load_explicit(&shadow->chunk[number], memory_order_acquire) : NULL;
}

/* Nothing is known any more of the words of some bytes. Where nothing was kept, nothing is made. */
void pe_shadow_clear(pe_shadow *shadow, uint64_t address, uint64_t size);

static inline void *pe_shadow_cell(const pe_shadow *shadow, pe_chunk *chunk, uint64_t address) {
  return chunk->cells + (address - shadow->base) / 4 % PE_SHADOW_WORDS * shadow->cell;
}

#endif
