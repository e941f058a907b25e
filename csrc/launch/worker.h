/* worker.h: a thread that runs CTAs of a launch, one after the other (sched.c). */
#ifndef PTXEMU_WORKER_H
#define PTXEMU_WORKER_H
#include <pthread.h>
#include <stdatomic.h>
#include "cta.h"
#include "supply.h"

/* What pe_reach has said of an address in this launch; the first one says it of 0. */
typedef struct pe_known_reach {
  uint64_t address, bytes;
} pe_known_reach;
enum { PE_KNOWN_REACHES = 16 };

struct pe_worker {
  pthread_cond_t wake;
  pe_launch *launch;      /* assigned; guarded by pe_lock, as the next three are */
  uint32_t index;         /* in the launch */
  pe_worker *next;        /* idle, spare, or called to the same launch */
  pe_worker *successor;   /* which the thread is to be from now on */
  atomic_bool called;     /* to a launch: for who looks without the lock */
  bool is_guest;          /* the thread is the program's */
  bool has_moved;         /* from a thread that has begun: the fiber has more to do */
  pe_warp_state *running; /* the warp on a fiber now, NULL while the scheduler runs; read by the signal handler */
  pe_cta *cta;            /* the one that runs */
  pe_cta **place;         /* what the worker holds: at least one, most of the time no more */
  uint32_t places;
  pe_supply supply;
  bool crowded;  /* there was no memory for one more */
  bool stuck;    /* counted in launch->stuck_workers */
  char *scratch; /* printf's text */
  pe_known_reach reaches[PE_KNOWN_REACHES];
  pe_twin *twin;  /* of this launch, or NULL */
  pe_apart apart; /* where it is */
  bool decided;   /* how many sums it makes before it has one */
  uint64_t sums_left;
};

/* The worker of this thread; NULL on other threads.  Initial-exec: the signal handler must not allocate. */
extern _Thread_local pe_worker *pe_self __attribute__((tls_model("initial-exec")));

/* Run CTAs until there are none left, or go on to. False: the worker has to leave the thread before that. */
bool pe_worker_run(pe_worker *worker);
/* It has run all, and what it has by itself goes to the launch. */
void pe_worker_end(pe_worker *worker);
/* One more place, for the cluster of those before it if that is not complete. False: there is no memory for it. */
bool pe_worker_add_place(pe_worker *worker);
/* Round to nearest, keep subnormals, trap nothing: whatever the creator of this thread had set. */
void pe_default_floating_point(void);
/* Suspend the running warp until the scheduler resumes it; leaves the kernel if the launch was stopped. */
void pe_suspend(pe_warp *w);
/* Let the other warps of the CTA run. */
void pe_take_turns(pe_warp *w);

#endif
