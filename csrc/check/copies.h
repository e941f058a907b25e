/* copies.h: asynchronous copies that nobody has waited for yet, as the checker `race` knows them.
 *
 * Where such a copy reads or writes, it leaves stamps that come after all others, so that whoever touches the words next is looked at.
 * When its thread waits for it, or somebody waits for the mbarrier object that tracks it, its stamps become those of the thread.
 */
#ifndef PTXEMU_COPIES_H
#define PTXEMU_COPIES_H
#include "internal.h"
#include "observer.h"
#include "stamp.h"

struct pe_order_block;
struct pe_race;
struct pe_race_use;

/* What one side of a copy touches. */
typedef struct pe_copy_side {
  uint64_t address;
  uint64_t mbarrier; /* the address of the object that tracks it, or 0 */
  pe_stamp issued;   /* of its thread, then */
  uint32_t size, group, pos;
  uint8_t lane, writes, bulk;
  uint8_t phase, passed; /* of the object when it began to track it, and whether that is over */
} pe_copy_side;

/* The copies of a warp. */
typedef struct pe_copies {
  pe_copy_side *sides;
  uint32_t count, room;
  uint32_t groups[2][PE_WARP_LANES]; /* how many groups each lane has, and of bulk copies */
} pe_copies;

/* Lanes issue a copy: look at one side of it, and keep it. */
void pe_copies_issue(struct pe_race_use *u, uint32_t mask);

/* Lanes end a group, or wait for groups: PE_COPIES_GROUP ... */
void pe_copies_order(struct pe_race *race, struct pe_order_block *b, uint32_t warp, uint32_t what, uint32_t mask);

/* Lanes use an mbarrier object, which may track copies. */
void pe_copies_meet(const struct pe_race_use *u, uint32_t mask);

/* The CTA has ended: copies that nobody has waited for do not matter any more. */
void pe_copies_end(struct pe_race *race, struct pe_order_block *b);
void pe_copies_free(struct pe_order_block *b);

/* The number of the CTA whose copy has left a stamp at an address; `own` if it is not known. */
uint64_t pe_copies_block(struct pe_race *race, pe_stamp stamp, uint64_t address, uint64_t own);

#endif
