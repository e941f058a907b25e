/* init_bits.h: the bits of the checker `init` (init.h), by offsets in the arena. */
#ifndef PTXEMU_INIT_BITS_H
#define PTXEMU_INIT_BITS_H
#include "init.h"

enum { PE_INIT_WORD_BYTES = 64 /* bytes of memory that a word of bits is about */ };

/* The part of a range of bytes, as offsets in the arena, that one word is about. */
typedef struct pe_init_part {
  uint64_t *word, bits, next;
} pe_init_part;

static inline pe_init_part pe_init_part_at(const pe_init *init, uint64_t first, uint64_t end) {
  uint64_t from = first % PE_INIT_WORD_BYTES, rest = end - first,
           here = PE_INIT_WORD_BYTES - from < rest ? PE_INIT_WORD_BYTES - from : rest;
  uint64_t bits = here == PE_INIT_WORD_BYTES ? ~0ull : ((1ull << here) - 1) << from;
  return (pe_init_part){&init->unset[first / PE_INIT_WORD_BYTES], bits, first + here};
}

static inline uint64_t pe_init_count_unset(const pe_init *init, uint64_t first, uint64_t size) {
  uint64_t count = 0;
  for (uint64_t end = first + size; first < end;) {
    pe_init_part p = pe_init_part_at(init, first, end);
    count += (uint64_t)__builtin_popcountll(__atomic_load_n(p.word, __ATOMIC_RELAXED) & p.bits);
    first = p.next;
  }
  return count;
}

/* Bytes of shared memory are written, whose bits are its CTA's alone. */
static inline void pe_init_set_own_written(const pe_init *init, uint64_t first, uint64_t size) {
  for (uint64_t end = first + size; first < end;) {
    pe_init_part p = pe_init_part_at(init, first, end);
    *p.word &= ~p.bits;
    first = p.next;
  }
}

#endif
