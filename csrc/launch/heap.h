/* heap.h: the device heap of an arena. */
#ifndef PTXEMU_HEAP_H
#define PTXEMU_HEAP_H
#include <stdint.h>

typedef struct pe_heap pe_heap;

/* A heap over `size` bytes of device memory, at most PE_MAX_HEAP; NULL when the host has no memory for its books. */
pe_heap *pe_heap_create(uint64_t base, uint64_t size);
void pe_heap_destroy(pe_heap *heap);

#endif
