/* lanes.c: loops over lanes. They are here and not compiled with each kernel, most of which never come to them. */
#include "lanes.h"
#include <string.h>
#include "atomic.h"

/* Races between the threads of a program are its own. */
#define UNWATCHED __attribute__((no_sanitize("thread")))

void pe_spread_64(uint64_t *addresses, uint64_t base, const uint64_t *offsets) {
  for (uint32_t i = 0; i < PE_WARP_LANES; i++) addresses[i] = base + offsets[i];
}

void pe_spread_32(uint64_t *addresses, uint64_t base, const uint32_t *offsets) {
  for (uint32_t i = 0; i < PE_WARP_LANES; i++) addresses[i] = (uint32_t)base + offsets[i];
}

void pe_keep_corrections(pe_corrections *all, uint32_t count, uint32_t number, uint64_t base, const uint64_t *offsets,
                         uint32_t is_signed, uint32_t wrapped) {
  if (!wrapped) memset(all, 0, count * sizeof *all);
  pe_corrections found = {0};
  for (uint32_t i = 0; i < PE_WARP_LANES; i++) {
    int64_t pattern = (int64_t)(base + offsets[i]);
    int64_t exact = is_signed ? (int64_t)(int32_t)pattern : (int64_t)(uint32_t)pattern;
    found.lacking |= (uint32_t)(exact > pattern) << i;
    found.beyond |= (uint32_t)(exact < pattern) << i;
  }
  all[number] = found;
}

void pe_correct(uint64_t *values, const pe_corrections *corrections, uint64_t factor, uint32_t wrapped) {
  if (!wrapped) return;
  uint64_t step = factor << 32;
  for (uint32_t i = 0; i < PE_WARP_LANES; i++)
    values[i] += step * (corrections->lacking >> i & 1) - step * (corrections->beyond >> i & 1);
}

#define EVERY_LANE _Pragma("GCC unroll 32")

/* All lanes are on as a rule; with one of them after another in the code, none waits for the mask. */
#define LANE_ACCESSES(size, type, READ, WRITE)                                                                           \
  UNWATCHED void pe_gather_##size(const uint64_t *addresses, uint64_t plus, uint32_t mask, void *values) {               \
    type *slots = values;                                                                                                \
    for (uint32_t i = 0; i < PE_WARP_LANES; i++) slots[i] = (type){0};                                                   \
    PE_FOR_LANES(i, mask) slots[i] = READ((const type *)(uintptr_t)(addresses[i] + plus));                               \
  }                                                                                                                      \
  UNWATCHED void pe_scatter_##size(const uint64_t *addresses, uint64_t plus, uint32_t mask, const void *values) {        \
    const type *slots = values;                                                                                          \
    if (mask == UINT32_MAX) {                                                                                            \
      EVERY_LANE for (uint32_t i = 0; i < PE_WARP_LANES; i++) WRITE((type *)(uintptr_t)(addresses[i] + plus), slots[i]); \
      return;                                                                                                            \
    }                                                                                                                    \
    PE_FOR_LANES(i, mask) WRITE((type *)(uintptr_t)(addresses[i] + plus), slots[i]);                                     \
  }

#define PLAIN_READ(at) (*(at))
#define PLAIN_WRITE(at, value) (*(at) = (value))
LANE_ACCESSES(8, uint8_t, PLAIN_READ, PLAIN_WRITE)
LANE_ACCESSES(16, uint16_t, PLAIN_READ, PLAIN_WRITE)
LANE_ACCESSES(32, uint32_t, PLAIN_READ, PLAIN_WRITE)
LANE_ACCESSES(64, uint64_t, PLAIN_READ, PLAIN_WRITE)
LANE_ACCESSES(128, unsigned __int128, PLAIN_READ, PLAIN_WRITE)

/* Strong accesses: other threads may take part, and each is made exactly once, also that of 16 bytes: CPUs move a vector register
 * at once if it is aligned (x86-64 with AVX, aarch64 with LSE2). */
typedef uint64_t two_words __attribute__((vector_size(16)));
#define STRONG_READ(at) __atomic_load_n((at), __ATOMIC_RELAXED)
#define STRONG_WRITE(at, value) __atomic_store_n((at), (value), __ATOMIC_RELAXED)
#define VECTOR_READ(at) (*(volatile const two_words *)(at))
#define VECTOR_WRITE(at, value) (*(volatile two_words *)(at) = (value))
LANE_ACCESSES(strong_8, uint8_t, STRONG_READ, STRONG_WRITE)
LANE_ACCESSES(strong_16, uint16_t, STRONG_READ, STRONG_WRITE)
LANE_ACCESSES(strong_32, uint32_t, STRONG_READ, STRONG_WRITE)
LANE_ACCESSES(strong_64, uint64_t, STRONG_READ, STRONG_WRITE)
LANE_ACCESSES(strong_128, two_words, VECTOR_READ, VECTOR_WRITE)

typedef uint32_t piece __attribute__((vector_size(16), aligned(1), may_alias));
UNWATCHED static inline void move_piece(void *to, const void *from) { *(piece *)to = *(const piece *)from; }

/* Lanes that are on lie side by side as a rule: 16 bytes at a time, the last of which overlap with others. */
#define ROW_ACCESS(size)                                                                                          \
  UNWATCHED static inline void copy_##size(uint##size##_t *to, const uint##size##_t *from, uint64_t count) {      \
    const uint64_t each = 128 / size;                                                                             \
    if (count < each) {                                                                                           \
      for (uint64_t i = 0; i < count; i++) to[i] = from[i];                                                       \
      return;                                                                                                     \
    }                                                                                                             \
    for (uint64_t i = 0; i + each < count; i += each) move_piece(to + i, from + i);                               \
    move_piece(to + count - each, from + count - each);                                                           \
  }                                                                                                               \
  UNWATCHED static inline void copy_lanes_##size(uint##size##_t *to, const uint##size##_t *from, uint32_t mask) { \
    while (mask) {                                                                                                \
      uint64_t first = (uint64_t)__builtin_ctz(mask), behind = (uint64_t)mask + (mask & -mask);                   \
      uint64_t end = (uint64_t)__builtin_ctzll(behind);                                                           \
      copy_##size(to + first, from + first, end - first);                                                         \
      mask &= (uint32_t)behind;                                                                                   \
    }                                                                                                             \
  }                                                                                                               \
  UNWATCHED void pe_load_row_##size(const uint##size##_t *row, uint32_t mask, uint##size##_t *out) {              \
    copy_lanes_##size(out, row, mask);                                                                            \
  }                                                                                                               \
  UNWATCHED void pe_store_row_##size(uint##size##_t *row, const uint##size##_t *values, uint32_t mask) {          \
    copy_lanes_##size(row, values, mask);                                                                         \
  }
ROW_ACCESS(8)
ROW_ACCESS(16)
ROW_ACCESS(32)
ROW_ACCESS(64)

#define NEAR_SCATTER(size)                                                                                   \
  UNWATCHED void pe_scatter_near_##size(uint64_t start, const int32_t *offsets, uint32_t mask,               \
                                        const uint##size##_t *values) {                                      \
    PE_FOR_LANES(i, mask) *(uint##size##_t *)(uintptr_t)(start + (uint64_t)(int64_t)offsets[i]) = values[i]; \
  }
NEAR_SCATTER(32)
NEAR_SCATTER(64)

#define LANE_UPDATE(name, size, operator)                                                        \
  void pe_##name##_##size(uint64_t base, const uint32_t *offsets, const uint##size##_t *words) { \
    for (uint32_t i = 0; i < PE_WARP_LANES; i++) {                                               \
      uint##size##_t *word = (uint##size##_t *)(uintptr_t)(base + offsets[i]);                   \
      *word operator words[i];                                                                   \
    }                                                                                            \
  }                                                                                              \
  void pe_##name##_same_##size(uint64_t base, const uint32_t *offsets, uint##size##_t value) {   \
    for (uint32_t i = 0; i < PE_WARP_LANES; i++) {                                               \
      uint##size##_t *word = (uint##size##_t *)(uintptr_t)(base + offsets[i]);                   \
      *word operator value;                                                                      \
    }                                                                                            \
  }
#define LANE_UPDATES(size)   \
  LANE_UPDATE(add, size, +=) \
  LANE_UPDATE(and, size, &=) \
  LANE_UPDATE(or, size, |=)  \
  LANE_UPDATE(xor, size, ^=)
LANE_UPDATES(32)
LANE_UPDATES(64)
