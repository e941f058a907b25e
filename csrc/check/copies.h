/* copies.h: asynchronous copies that nobody has waited for yet, as the checkers `race` and `sync` know them.
 *
 * Under `race`, where such a copy reads or writes it leaves stamps that come after all others, so that whoever touches the words next is
 * looked at. When its thread waits for it, or somebody waits for the mbarrier object that tracks it, its stamps become those of the
 * thread. `sync` looks at the lists alone (waits.c).
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

/* ---- copies.c: the list of a warp ---- */

/* False: there is no room for more. */
bool pe_copies_keep(pe_copies *copies, const pe_copy_side *side);

/* A copy that a lane issues: one side of it, at a device address. */
pe_copy_side pe_copies_side(const pe_copies *copies, const pe_memory_event *e, uint32_t lane, uint64_t address);

/* What lanes wait for: all but the last groups, for PE_COPIES_WAIT ..., or copies that an object tracks. */
typedef struct pe_copies_wait {
  uint32_t what, but, mask;
  uint64_t mbarrier;
} pe_copies_wait;

/* Take those off the list that are complete, by one of the tests below; `done`, or NULL, is told of each. */
typedef bool pe_copies_test(const pe_copies_wait *wait, const pe_copies *copies, const pe_copy_side *side);
void pe_copies_settle(pe_copies *copies, const pe_copies_wait *wait, pe_copies_test *test,
                      void (*done)(void *context, const pe_copy_side *side), void *context);
pe_copies_test pe_copies_are_awaited, pe_copies_have_passed, pe_copies_are_over;

/* What an event of PE_COPIES_GROUP ... asks for; lanes end a group, if it is that. */
pe_copies_wait pe_copies_asked(uint32_t what, uint32_t mask);
bool pe_copies_end_group(pe_copies *copies, uint32_t what, uint32_t mask);

/* An mbarrier object is in a phase; and it begins to track copies of a lane. */
void pe_copies_notice(pe_copies *copies, uint64_t mbarrier, uint8_t phase);
void pe_copies_track(pe_copies *copies, const pe_memory_event *e, uint32_t lane, uint64_t mbarrier, uint8_t phase);

/* ---- race_copies.c ---- */

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
