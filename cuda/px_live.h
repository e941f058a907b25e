/* px_live.h: what programs hold by handles, and how long it lives.
 *
 * A handle is the address of an object. A table has the live ones with their kinds: every function asks it before it looks at what a
 * handle points to, so that a wild handle, one of another kind and one that was destroyed are errors.
 *
 * What is destroyed leaves the table at once, and its memory goes when all calls have returned that were under way by then: until a call
 * returns, what it has found in the table is there.
 */
#ifndef PTXEMU_CUDA_LIVE_H
#define PTXEMU_CUDA_LIVE_H
#include <stdbool.h>

/* ---- calls ---- */

typedef struct px_call {
  unsigned side;
} px_call;

px_call px_call_begin(void);
void px_call_end(px_call *call);

/* From here to the end of the function, what is found in the table stays. */
#define PX_CALL() px_call px_this_call __attribute__((cleanup(px_call_end))) = px_call_begin()

/* ---- the table ---- */

typedef enum px_handle_kind {
  PX_STREAM = 1,
  PX_EVENT,
  PX_GRAPH,
  PX_NODE,
  PX_EXEC,
  PX_ARRAY,
  PX_MIPMAP,
  PX_KERNEL,
  PX_MODULE,
  PX_REFERENCE,
  PX_LINK,
  PX_JIT_LINK,
  PX_CONTEXT,
  PX_PHYSICAL,
  PX_POOL
} px_handle_kind;

/* Objects begin at multiples of this. */
enum { PX_HANDLE_UNIT = 16 };

/* false: there is no memory. */
bool px_live_add(const void *object, px_handle_kind kind);

/* Within a call. */
bool px_is_live(const void *handle, px_handle_kind kind);

/* false: it is not live, or another thread was first. */
bool px_live_remove(const void *handle, px_handle_kind kind);

/* ---- the end of objects ---- */

/* The first member of what is destroyed. */
typedef struct px_mortal {
  struct px_mortal *next;
  void (*end)(struct px_mortal *object);
} px_mortal;

/* Have `end` called when all calls have returned that are under way, at the end of one of them or of a later one: on any thread, which
 * holds no lock. */
void px_end_later(px_mortal *object, void (*end)(px_mortal *object));

/* For objects that own nothing. */
void px_end_free(px_mortal *object);

/* Wait until all that was destroyed has ended. Not within a call. */
void px_end_all(void);

#endif
