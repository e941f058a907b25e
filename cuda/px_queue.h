/* px_queue.h: what the files of the queue share: item.c, order.c, plan.c, perform.c, children.c, calls.c and queue.c.
 *
 * One lock guards all streams and items. No lock is held while work is done.
 */
#ifndef PTXEMU_CUDA_QUEUE_H
#define PTXEMU_CUDA_QUEUE_H
#include "px_stream.h"

/* ---- item.c: items, each of which waits for others ---- */

void px_queue_lock(void);
void px_queue_unlock(void);
/* Wait until another item is done. With the lock held. */
void px_queue_await(void);

/* Items that are not done. With the lock held. */
extern size_t px_pending;

/* Owned by the queue until it is done; it owns the work. NULL: there is no memory. */
px_item *px_item_new(px_work *work, px_context *context);
px_item *px_item_keep(px_item *item);
void px_item_disown(px_item *item); /* with the lock held; NULL: nothing */

/* Let an item wait for another one, or for none. false: there is no memory. With the lock held. */
bool px_item_follow(px_item *item, px_item *before);

/* An item for which no memory was left to wait properly does nothing. */
void px_item_give_up(px_item *item);

/* An item is done: what can be begun now, before `rest`. */
px_item *px_item_finish(px_item *item, px_item *rest);

/* ---- order.c: what an item waits for in its stream ---- */

/* Look at each item that new work in a stream has to wait for, until one is not as it should be. With the lock held. */
bool px_stream_visit(const struct px_stream *stream, bool (*look)(px_item *item, px_item *before), px_item *item);

/* The last item of a stream. With the lock held. */
void px_stream_set_last(struct px_stream *stream, px_item *item);

/* Forget destroyed streams whose work is done. With the lock held. */
void px_stream_bury(void);

/* What work on events means for the order of items; false: there is no memory. With the lock held. */
bool px_event_heed(px_item *item);

/* ---- plan.c: the items of graphs ---- */

/* Items for a plan, between one before and one behind all of them; NULL: there is no memory. */
px_item **px_plan_items(px_plan *plan, px_context *context);

/* Let the items of a plan wait for each other. With the lock held. */
bool px_plan_follow(const px_plan *plan, px_item **items);

/* The items of a plan are under way, or given up if they do not fit: those that can be begun, before `rest`. With the lock held. */
px_item *px_plan_enqueue(const px_plan *plan, px_item **items, bool fits, px_item *rest);

/* Set the values by which a plan and all in it choose. */
void px_plan_set_values(const px_plan *plan);

/* Begin the graph that an item chooses, behind which the item comes again; true: there is none, or none any more. */
bool px_plan_choose(px_item *item, px_item **ready);

/* ---- perform.c: doing the work ---- */

/* Whether nothing more is to be done for an item. */
bool px_is_dropped(const px_item *item);

/* Launch for an item, and wait for the end. */
void px_perform_launch(px_item *item, const pe_start *what);

/* Do items, and those that come to be ready by that. */
void px_perform_all(px_item *ready);

/* ---- children.c ---- */

/* A launch for an item has ended: keep those that its kernel has made. */
void px_children_collect(px_item *item, const pe_launch *launch);

/* Begin what has been kept, and finish the item behind that; false: nothing has. */
bool px_children_begin(px_item *item);

/* ---- calls.c ---- */

/* Have the item's function called, and the item finished behind that. true: there is no memory for it. */
bool px_call_later(px_item *item);

#endif
