/* shadow.h: memory beside device memory, in which a checker keeps a number of 64 bits, or some, for each word of 4 bytes. */
#ifndef PTXEMU_SHADOW_H
#define PTXEMU_SHADOW_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "host.h"

/* CDEF BEGIN */
/* How many bytes of memory have their numbers together: all of them are kept, or none. */
enum { PE_SHADOW_LOG2 = 16 };
/* CDEF END */
enum { PE_SHADOW_WORDS = (1 << PE_SHADOW_LOG2) / 4 };

typedef struct pe_shadow {
  pe_arena *arena;
  uint64_t base, chunks, blank, each;
  uint64_t *numbers;     /* of all words, 0 where none are kept */
  _Atomic uint8_t *kept; /* of each chunk of so many words: whether theirs are */
  _Atomic uint64_t lost; /* accesses of which nothing is kept, for there is no memory */
} pe_shadow;

/* `blank`: what is kept of words first, in `each` numbers. */
bool pe_shadow_init(pe_shadow *shadow, pe_arena *arena, uint64_t blank, uint64_t each);
void pe_shadow_end(pe_shadow *shadow);

/* Begin to keep those of the chunk of an address, which count as memory of the device. */
bool pe_shadow_keep(pe_shadow *shadow, uint64_t address);

enum { PE_NOT_KEPT, PE_TO_BE_KEPT, PE_KEPT };

/* The numbers of an address and of what follows in its chunk; NULL: none are kept. */
static inline uint64_t *pe_shadow_find(const pe_shadow *shadow, uint64_t address) {
  uint64_t at = address - shadow->base, chunk = at >> PE_SHADOW_LOG2;
  bool kept = chunk < shadow->chunks && atomic_load_explicit(&shadow->kept[chunk], memory_order_acquire) == PE_KEPT;
  return kept ? &shadow->numbers[at / 4 * shadow->each] : NULL;
}

/* The same, kept from now on if there is memory. */
static inline uint64_t *pe_shadow_make(pe_shadow *shadow, uint64_t address) {
  uint64_t *found = pe_shadow_find(shadow, address);
  return found || !pe_shadow_keep(shadow, address) ? found : pe_shadow_find(shadow, address);
}

/* Nothing is known any more of the words of some bytes. Where nothing was kept, nothing is made. */
void pe_shadow_clear(pe_shadow *shadow, uint64_t address, uint64_t size);

#endif
