/* lanes.h: what compiled code does lane by lane, out of line: addresses of a pattern, gathers and scatters. */
#ifndef PTXEMU_LANES_H
#define PTXEMU_LANES_H
#include "internal.h"

/* Every lane's address of a pattern: `base` plus its offset, modulo 2^64 or 2^32. */
void pe_spread_64(uint64_t *addresses, uint64_t base, const uint64_t *offsets);
void pe_spread_32(uint64_t *addresses, uint64_t base, const uint32_t *offsets);

/* The lanes of a pattern that lack 2^32, or have it too much, as 32-bit sums have wrapped when it was widened to 64 bits. */
typedef struct pe_corrections {
  uint32_t lacking, beyond;
} pe_corrections;

/* A warp has `count` corrections, one for each widening, which say nothing until one has `wrapped`.  The first function writes
 * that of `number`, for a base that is widened already; the other adds some, times a factor, to values of the pattern. */
void pe_keep_corrections(pe_corrections *all, uint32_t count, uint32_t number, uint64_t base, const uint64_t *offsets,
                         uint32_t is_signed, uint32_t wrapped);
void pe_correct(uint64_t *values, const pe_corrections *corrections, uint64_t factor, uint32_t wrapped);

/* Read or write an element of so many bits at addresses[i] + plus for each lane of `mask`, in order. Gathers leave zeros in the
 * other lanes. Other threads may take part in strong accesses. */
#define PE_LANE_ACCESSES(size)                                                                  \
  void pe_gather_##size(const uint64_t *addresses, uint64_t plus, uint32_t mask, void *values); \
  void pe_scatter_##size(const uint64_t *addresses, uint64_t plus, uint32_t mask, const void *values);
PE_LANE_ACCESSES(8)
PE_LANE_ACCESSES(16)
PE_LANE_ACCESSES(32)
PE_LANE_ACCESSES(64)
PE_LANE_ACCESSES(128)
PE_LANE_ACCESSES(strong_8)
PE_LANE_ACCESSES(strong_16)
PE_LANE_ACCESSES(strong_32)
PE_LANE_ACCESSES(strong_64)
PE_LANE_ACCESSES(strong_128)
#undef PE_LANE_ACCESSES

/* Read the elements of the lanes of `mask` from a row that has a place for each lane, or write them there. What other lanes have in
 * `out` stays as it is. */
#define PE_ROW_ACCESS(size)                                                               \
  void pe_load_row_##size(const uint##size##_t *row, uint32_t mask, uint##size##_t *out); \
  void pe_store_row_##size(uint##size##_t *row, const uint##size##_t *values, uint32_t mask);
PE_ROW_ACCESS(8)
PE_ROW_ACCESS(16)
PE_ROW_ACCESS(32)
PE_ROW_ACCESS(64)
#undef PE_ROW_ACCESS

/* Write an element at start + offsets[i] for each lane of `mask`, in order. */
void pe_scatter_near_32(uint64_t start, const int32_t *offsets, uint32_t mask, const uint32_t *values);
void pe_scatter_near_64(uint64_t start, const int32_t *offsets, uint32_t mask, const uint64_t *values);

/* Update the words of so many bits at base + offsets[i], of all lanes in order, with a word of each or the same value. No other
 * thread touches that memory. */
#define PE_LANE_UPDATE(name, size)                                                              \
  void pe_##name##_##size(uint64_t base, const uint32_t *offsets, const uint##size##_t *words); \
  void pe_##name##_same_##size(uint64_t base, const uint32_t *offsets, uint##size##_t value);
PE_LANE_UPDATE(add, 32)
PE_LANE_UPDATE(and, 32)
PE_LANE_UPDATE(or, 32)
PE_LANE_UPDATE(xor, 32)
PE_LANE_UPDATE(add, 64)
PE_LANE_UPDATE(and, 64)
PE_LANE_UPDATE(or, 64)
PE_LANE_UPDATE(xor, 64)
#undef PE_LANE_UPDATE

#endif
