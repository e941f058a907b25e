/* live.c: the table of live objects, and the end of those that are destroyed.
 *
 * The table is read without a lock. A slot is one word: the object's address, and its kind in the bits that are zero in addresses.
 *
 * Calls under way are counted on two sides. New ones go to the current side, so that the other one runs empty; then the sides are swapped.
 * What was destroyed before both sides were seen empty, one after the other, is known to no call any more.
 */
#include "px_live.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- calls, and what waits for their end ---- */

enum { SIDES = 2, PATIENCE_US = 50 };

static _Atomic unsigned inside[SIDES], current;
static pthread_mutex_t end_lock = PTHREAD_MUTEX_INITIALIZER;
static px_mortal *fresh, *old; /* destroyed since the sides were swapped, and before that; guarded by the lock */
static _Atomic bool waiting;   /* there are some */

/* With the lock held: take what nobody knows any more. */
static px_mortal *take_ended(void) {
  px_mortal *ended = NULL, **last = &ended;
  while ((fresh || old) && !atomic_load(&inside[1 - current])) {
    *last = old;
    while (*last) last = &(*last)->next;
    old = fresh;
    fresh = NULL;
    atomic_store(&current, 1 - current);
  }
  atomic_store(&waiting, fresh || old);
  return ended;
}

static void end_each(px_mortal *ended) {
  while (ended) {
    px_mortal *object = ended;
    ended = object->next;
    object->end(object);
  }
}

/* Whoever holds the lock does it, too. */
static void sweep(void) {
  if (pthread_mutex_trylock(&end_lock)) return;
  px_mortal *ended = take_ended();
  pthread_mutex_unlock(&end_lock);
  end_each(ended);
}

px_call px_call_begin(void) {
  px_call call = {atomic_load(&current)};
  atomic_fetch_add(&inside[call.side], 1);
  return call;
}

void px_call_end(px_call *call) {
  if (atomic_fetch_sub(&inside[call->side], 1) == 1 && atomic_load(&waiting)) sweep();
}

void px_end_later(px_mortal *object, void (*end)(px_mortal *object)) {
  object->end = end;
  pthread_mutex_lock(&end_lock);
  object->next = fresh;
  fresh = object;
  atomic_store(&waiting, true);
  pthread_mutex_unlock(&end_lock);
}

void px_end_free(px_mortal *object) { free(object); }

void px_end_all(void) {
  while (atomic_load(&waiting)) {
    sweep();
    if (atomic_load(&waiting)) usleep(PATIENCE_US);
  }
}

/* ---- the table ---- */

enum { EMPTY = 0, REMOVED = 1, LEAST_ROOM = 64 };

/* Open addressing; a power of two, at most half full. A larger one replaces it, not before it is filled. */
typedef struct table {
  px_mortal mortal;
  size_t room;
  _Atomic uintptr_t slot[];
} table;

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static table *_Atomic live;
static size_t used, count; /* slots that are not empty, and those that have an object; guarded by the lock */

static uintptr_t word_of(const void *handle, px_handle_kind kind) { return (uintptr_t)handle | kind; }

static size_t first_place(const table *in, uintptr_t word) {
  return (word / PX_HANDLE_UNIT) * 0x9e3779b97f4a7c15ull >> 20 & (in->room - 1);
}

/* Where a word is; NULL: nowhere. */
static _Atomic uintptr_t *find(table *in, uintptr_t word) {
  if (!in) return NULL;
  for (size_t at = first_place(in, word);; at = (at + 1) & (in->room - 1)) {
    uintptr_t found = atomic_load_explicit(&in->slot[at], memory_order_acquire);
    if (found == word) return &in->slot[at];
    if (found == EMPTY) return NULL;
  }
}

/* Put a word into the first place that has none; true: that was empty. */
static bool put(table *in, uintptr_t word) {
  size_t at = first_place(in, word);
  while (atomic_load_explicit(&in->slot[at], memory_order_relaxed) > REMOVED) at = (at + 1) & (in->room - 1);
  return atomic_exchange_explicit(&in->slot[at], word, memory_order_release) == EMPTY;
}

/* A larger table, or one without removed objects. With the lock held. */
static bool rebuild(void) {
  table *before = live;
  size_t room = LEAST_ROOM;
  while (room < 4 * (count + 1)) room *= 2;
  table *made = calloc(1, sizeof *made + room * sizeof *made->slot);
  if (!made) return false;
  made->room = room;
  for (size_t i = 0; before && i < before->room; i++) {
    uintptr_t word = atomic_load_explicit(&before->slot[i], memory_order_relaxed);
    if (word > REMOVED) put(made, word);
  }
  used = count;
  atomic_store(&live, made);
  if (before) px_end_later(&before->mortal, px_end_free);
  return true;
}

bool px_live_add(const void *object, px_handle_kind kind) {
  pthread_mutex_lock(&table_lock);
  bool fits = (live && 2 * (used + 1) <= live->room) || rebuild();
  if (fits) {
    used += put(live, word_of(object, kind));
    count++;
  }
  pthread_mutex_unlock(&table_lock);
  return fits;
}

bool px_is_live(const void *handle, px_handle_kind kind) {
  bool can_be = handle && (uintptr_t)handle % PX_HANDLE_UNIT == 0;
  return can_be && find(atomic_load(&live), word_of(handle, kind));
}

bool px_live_remove(const void *handle, px_handle_kind kind) {
  if (!handle || (uintptr_t)handle % PX_HANDLE_UNIT) return false;
  pthread_mutex_lock(&table_lock);
  _Atomic uintptr_t *place = find(live, word_of(handle, kind));
  if (place) {
    atomic_store_explicit(place, REMOVED, memory_order_release);
    count--;
  }
  pthread_mutex_unlock(&table_lock);
  return place != NULL;
}
