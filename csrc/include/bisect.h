/* bisect.h: binary search. */
#ifndef PTXEMU_BISECT_H
#define PTXEMU_BISECT_H
#include <stddef.h>

/* The first index below `count` at which a condition on `middle` is false, or `count`: it holds below that index, and nowhere
 * above. */
#define PE_FIRST_NOT(middle, count, condition)   \
  __extension__({                                \
    size_t low_ = 0, high_ = (count);            \
    while (low_ < high_) {                       \
      size_t middle = low_ + (high_ - low_) / 2; \
      if (condition)                             \
        low_ = middle + 1;                       \
      else                                       \
        high_ = middle;                          \
    }                                            \
    low_;                                        \
  })

#endif
