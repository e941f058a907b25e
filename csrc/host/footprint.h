/* footprint.h: which CTA of a launch has written, updated or read which bytes of some allocations. */
#ifndef PTXEMU_FOOTPRINT_H
#define PTXEMU_FOOTPRINT_H
#include "observer.h"

#pragma GCC visibility push(default)
/* CDEF BEGIN */
/* What has been done to a byte.  Above PE_WRITTEN are the codes of updates that commute, which their positions in the program
 * tell; PE_MIXED are different things. */
enum { PE_UNTOUCHED = 0, PE_WRITTEN = 1, PE_MIXED = 255 };

/* Memory that is watched.  For each byte of it, all zero at first: the CTA that has written it last, the first that has read
 * what it did not write itself, both counted from 1 in the order of the grid, and what has been done to it. */
typedef struct pe_footprint_area {
  uint64_t address, size;
  uint32_t *writer, *reader;
  uint8_t *done;
} pe_footprint_area;

/* An update that commutes with itself, by its position in the program. */
typedef struct pe_footprint_update {
  uint32_t pos, code;
} pe_footprint_update;

typedef struct pe_footprint {
  const pe_footprint_area *areas;     /* in the order of their addresses */
  const pe_footprint_update *updates; /* in the order of their positions */
  uint64_t area_count, update_count;
  uint32_t allocated; /* nonzero: a kernel has called malloc or free */
} pe_footprint;

/* Make an observer that keeps a footprint, which must stay where it is as long as the observer is told of anything. */
void pe_footprint_observer(pe_footprint *footprint, pe_observer *observer);
/* CDEF END */
#pragma GCC visibility pop

#endif
