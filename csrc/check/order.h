/* order.h: what puts accesses of a launch in an order, as the checker `race` knows it.
 *
 * Each warp has a clock, which goes on where others may learn what it has done: at barriers, fences and bar.warp.sync.  A warp
 * *knows* of each warp of its CTA how far it has seen that; barriers spread this.  What leads beyond a CTA are strong accesses
 * (volatile, relaxed, atomic ...): one behind a fence releases, at a time that all warps share, what the fence has put in
 * order, and one that reads the same word makes its warp follow that time: at once, or from the next fence on if it takes a lock
 * and does not acquire.  In a cluster, barrier.cluster does the same: arrivals release, and who goes on behind a wait follows those
 * of that phase, but none of the next one, which others may have come to by then.
 *
 * Where this is less exact than the manual's model, it finds less: any warp that follows a time follows all releases before it,
 * strong reads that take no lock need no fence behind them, but what they alone put in an order is told apart, and barriers and
 * bar.warp.sync serve as fences.
 */
#ifndef PTXEMU_ORDER_H
#define PTXEMU_ORDER_H
#include <pthread.h>
#include "copies.h"
#include "internal.h"
#include "observer.h"
#include "quiet.h"
#include "shadow.h"
#include "stamp.h"

struct pe_order_launch;
struct pe_order_block;
struct pe_period;

typedef struct pe_order {
  pe_arena *arena;
  pe_shadow released;         /* of each word, when it was last released */
  pthread_mutex_t mutex;      /* of all but `time` */
  struct pe_period **segment; /* periods, from number `first` on */
  uint32_t first, next;
  struct pe_order_launch *launches;
  struct pe_order_block *blocks;
  _Atomic bool overlapped;        /* two launches have run at one time */
  uint64_t time;                  /* of releases */
  struct pe_order_block *unknown; /* a CTA of which nothing is known */
} pe_order;

/* Scopes that are not all of the device. */
enum { PE_SCOPE_CTA, PE_SCOPE_CLUSTER, PE_INNER_SCOPES };

/* From one turn of shared memory to the next. */
#define PE_TURN (1ull << PE_CLAIM_TURN_AT)

/* What a warp knows: of each warp of its CTA, before which clock, and of all of them; and the time that it follows, and those
 * up to which it follows releases of its own CTA, and of its cluster. */
typedef struct pe_knowledge {
  uint32_t clock[PE_MAX_WARPS], common;
  uint64_t time, near[PE_INNER_SCOPES];
} pe_knowledge;

/* A barrier's meeting: what those know that have arrived, and how many these are.  Meetings of one barrier take turns. */
typedef struct pe_meeting {
  pe_knowledge known;
  uint32_t number, arrived;
} pe_meeting;

typedef struct pe_order_warp {
  pe_stamp floor; /* accesses of this CTA with lesser stamps come before that */
  uint32_t clock;
  bool unsettled;                  /* of the next three, one is not none */
  bool meets_grid;                 /* it waits for the barrier of a grid */
  pe_meeting *leaves;              /* the meeting that it waits for */
  uint32_t reads;                  /* lanes whose last access was strong: they follow who releases there until it is done */
  uint32_t loose;                  /* PE_LOOSE, if that access does not acquire, and PE_LOCK, if they take locks by it */
  uint64_t locked;                 /* the last time that one who takes a lock has found there */
  uint64_t sure;                   /* up to which time it follows others by what acquires, or with a fence behind */
  bool has_fenced;                 /* there is `fenced` */
  bool has_inner[PE_INNER_SCOPES]; /* and `inner`: a fence of that scope has come since */
  uint64_t released;               /* when that was last released, or 0 */
  pe_knowledge known, fenced;      /* now, of the warps of the CTA, and at the last fence */
  pe_knowledge inner[PE_INNER_SCOPES];
  uint64_t own;          /* when lanes of `reads` have released their words themselves, or 0 */
  uint64_t updates, end; /* all releases from one of these times on, before the other, are updates of its own */
  uint64_t hides;        /* when it last released words in which others, at the same time, may have left their stamps */
  uint32_t arrived[PE_BARRIERS_TOLD]; /* how often, at each barrier */
  uint32_t words;                     /* of each of `reads` */
  uint64_t word[PE_WARP_LANES];       /* where its first is among the words of `released` */
} pe_order_warp;

typedef struct pe_order_block {
  pe_stamping stamping[PE_MAX_WARPS]; /* compiled code knows that it is here, and the log behind it */
  pe_shared_log log;
  struct pe_order_block *next;
  const struct pe_order_launch *launch;
  uint64_t number, cluster; /* in the grid, and that of its cluster */
  bool clustered;           /* in a cluster of several CTAs, which touch each other's shared memory */
  struct pe_order_block *head,
      *peer;       /* the first and the next of its cluster, all in a ring, if they run beside each other */
  uint32_t oldest; /* the first period of its cluster */
  uint64_t met[2]; /* of the first: when threads released what came before phases of barrier.cluster, in turn */
  uint32_t warps;
  uint64_t began;                  /* the time of releases when it began */
  bool in_step;                    /* all warps have met, or begun, and nothing has been put in an order since */
  bool blind;                      /* there was no memory: nothing is known of it any more */
  bool alone;                      /* no other thread runs CTAs of the launch */
  bool has_inner[PE_INNER_SCOPES]; /* its warps have released something in a scope alone */
  uint32_t *periods;               /* their numbers */
  uint32_t count, room;
  uint32_t latest;         /* the last of them */
  struct pe_period *spare; /* periods that are taken, but not begun: the first of them, its number, and how many they are */
  uint32_t spare_number, spares, share; /* and how many it takes the next time */
  uint32_t turns;                       /* how often all warps have met */
  struct pe_foresight *foresight;       /* of its turns, or NULL */
  uint32_t barriers;                    /* as many, from the first on, have had meetings */
  pe_knowledge proxied;                 /* what its fences between proxies have put in an order */
  pe_meeting meetings[PE_BARRIERS_TOLD][2];
  pe_quiet quiet;
  _Atomic uint64_t ranges; /* of its worker */
  bool has_copies;         /* in these */
  pe_copies copies[PE_MAX_WARPS];
  pe_order_warp warp[PE_MAX_WARPS];
} pe_order_block;

bool pe_order_init(pe_order *order, pe_arena *arena);
void pe_order_end(pe_order *order);
/* A launch begins; whether stamps of all before are of no use any more, and must be forgotten, for numbers begin anew. */
bool pe_order_begun(pe_order *order, const pe_config *config);
void pe_order_ended(pe_order *order, const pe_config *config);

/* The least stamp that may be of a launch, or of one that has run beside it. */
pe_stamp pe_order_oldest(pe_order *order, const pe_config *config);

/* The CTA of a warp begins, in the cluster of `first` (observer.h). One of which nothing is known if there is no memory. */
pe_order_block *pe_order_block_begun(pe_order *order, const pe_warp *w, const pe_warp *first);

static inline pe_order_block *pe_order_block_of(const pe_warp *w) { return (pe_order_block *)(uintptr_t)w->watch; }

/* Whether no other thread runs CTAs, of this launch or another one. */
static inline bool pe_order_is_alone(const pe_order *order, const pe_order_block *b) {
  return b->alone && !atomic_load_explicit(&order->overlapped, memory_order_relaxed);
}

/* Whether it is of a launch. */
bool pe_order_is_of(const pe_order_block *b, const pe_config *config);

void pe_order_settle_one(pe_order *order, pe_order_block *b, uint32_t warp);
static inline void pe_order_settle(pe_order *order, pe_order_block *b, uint32_t warp) {
  if (b->warp[warp].unsettled) pe_order_settle_one(order, b, warp);
}
void pe_order_fence(pe_order *order, pe_order_block *b, uint32_t warp);
/* The same for threads of the CTA, or of the cluster, alone. */
void pe_order_fence_in(pe_order *order, pe_order_block *b, uint32_t warp, uint32_t scope);
/* A fence between the generic and the async proxy, which puts nothing else in an order. */
void pe_order_fence_proxies(pe_order *order, pe_order_block *b, uint32_t warp);
void pe_order_warp_sync(pe_order *order, pe_order_block *b, uint32_t warp);
void pe_order_barrier(pe_order *order, pe_order_block *b, uint32_t warp, uint32_t id, uint32_t how);
/* It arrives at barrier.cluster, or goes on behind it: PE_CLUSTER_ARRIVE ... */
void pe_order_cluster(pe_order *order, pe_order_block *b, uint32_t warp, uint32_t what);
/* A barrier to which these warps have come, and all of them go on. */
void pe_order_together(pe_order *order, pe_order_block *b, uint32_t warps);

/* It has read what was released at a time, by an access that is so loose. */
void pe_order_follow(pe_order_block *b, uint32_t warp, uint64_t time, uint32_t loose);

/* Everybody may learn what the last fence has put in order; the time of that, a new one for each strong write, or 0. */
uint64_t pe_order_release(pe_order *order, pe_order_block *b, uint32_t warp);

/* A word is released at a time by a warp; when it was before, by others or by what did not follow these, or 0. `alone`: no other
 * worker is there. */
uint64_t pe_order_release_word(pe_order *order, const pe_order_warp *s, uint64_t word, uint64_t time, bool alone);

/* When a word was last released, or 0. */
uint64_t pe_order_released_at(pe_order *order, uint64_t word);

/* Lanes have updated words and released them at a time: those of `reads`, and others in shared memory. */
void pe_order_updated(pe_order *order, pe_order_block *b, uint32_t warp, uint64_t time);

/* Whether an access of a word was made by this CTA; the warp's clock then. */
bool pe_order_is_own(const pe_order_block *b, pe_stamp before, uint32_t *clock);

/* Whether it comes before what a lane does now; loosely, if only by a strong read that does not acquire, without a fence behind it.
 * `word`: where that is; `met`: up to when it follows for sure whose value it reads there itself. */
enum { PE_NO_ORDER, PE_LOOSE_ORDER, PE_IN_ORDER };
uint32_t pe_order_is_before(pe_order *order, const pe_order_block *b, uint32_t warp, uint32_t lane, pe_stamp before,
                            uint64_t word, uint64_t met);

/* Whether there is a fence between proxies behind an access of this launch: one that its CTA has made, or this one since. */
bool pe_order_is_proxied(pe_order *order, const pe_order_block *b, pe_stamp before);

/* The CTA that has made an access, as its number in the grid; and whether it is of the cluster of another one. */
uint64_t pe_order_block_number(pe_order *order, pe_stamp stamp);
bool pe_order_is_in_cluster(pe_order *order, const pe_order_block *b, pe_stamp stamp);

#endif
