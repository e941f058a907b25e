/* px_block.h: memory that graphs own: what their nodes allocate, and the values of their conditions.
 *
 * A block has its address from the start, so that nodes can be made with it, and stays as long as it has owners: nodes, and what was
 * instantiated of them. What a graph allocates is *taken* from then on until it is freed, by a node or by the program; as long as it is
 * taken, it stays without owners, too.
 */
#ifndef PTXEMU_CUDA_BLOCK_H
#define PTXEMU_CUDA_BLOCK_H
#include <stdbool.h>
#include <stdint.h>

typedef struct px_block px_block;

extern const char px_memory_graph[]; /* what its allocation was made as */

/* With one owner; NULL: there is no memory. */
px_block *px_block_new(uint64_t size);
px_block *px_block_keep(px_block *block);
void px_block_release(px_block *block); /* NULL: nothing */

/* The block that begins at an address, with one more owner; NULL: there is none. */
px_block *px_block_at(const void *address);

/* 0 once the device was reset. */
uint64_t px_block_address(const px_block *block);
uint64_t px_block_size(const px_block *block);

/* Change whether it is taken; false: it was so already. */
bool px_block_take(px_block *block);
bool px_block_give(px_block *block);

/* Be the only one who uses it; false: somebody does. */
bool px_block_claim(px_block *block);
void px_block_disclaim(px_block *block);

/* The first word of what is in it. */
uint32_t px_block_value(const px_block *block);
void px_block_set_value(px_block *block, uint32_t value);

#endif
