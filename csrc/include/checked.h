/* checked.h: arithmetic on sizes and addresses that a program or Python gives.
 *
 * Sums and products stay at the greatest number instead of wrapping: no bound admits it, so a test of the result suffices.
 */
#ifndef PTXEMU_CHECKED_H
#define PTXEMU_CHECKED_H
#include <stdbool.h>
#include <stdint.h>

static inline uint64_t pe_sum(uint64_t a, uint64_t b) {
  uint64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static inline uint64_t pe_product(uint64_t a, uint64_t b) {
  uint64_t product;
  return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* The next multiple of a power of two, or the last one there is. */
static inline uint64_t pe_round_up(uint64_t value, uint64_t unit) { return pe_sum(value, unit - 1) & ~(unit - 1); }

/* Whether `size` bytes from `offset` on lie in the first `extent`. */
static inline bool pe_within(uint64_t offset, uint64_t size, uint64_t extent) {
  return offset <= extent && size <= extent - offset;
}

#endif
