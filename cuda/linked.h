/* linked.h: images that hold several others, which the compile side links (ptxemu/images/fatbin.py). */
#ifndef PTXEMU_CUDA_LINKED_H
#define PTXEMU_CUDA_LINKED_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One that is being put together; zeros are an empty one. */
typedef struct px_linked {
  uint8_t *image; /* grows with each input */
  size_t bytes, room;
  uint64_t inputs;
} px_linked;

/* Add an input. false: it is one too many, too large, or there is no memory; nothing has changed then. */
bool px_linked_add(px_linked *linked, const void *data, size_t size);

/* Write the head of an image that has an input: the image is whole. */
void px_linked_end(px_linked *linked);

void px_linked_free(px_linked *linked);

/* The bytes of such an image; 0: it is none. */
size_t px_linked_size(const void *image);

#endif
