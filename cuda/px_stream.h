/* px_stream.h: work in the order of streams. */
#ifndef PTXEMU_CUDA_STREAM_H
#define PTXEMU_CUDA_STREAM_H
#include <stdatomic.h>
#include <time.h>
#include "core.h"
#include "px_block.h"
#include "px_module.h"
#include "start.h"

/* ---- work.c: what is to be done ---- */

typedef enum px_kind { PX_NOTHING, PX_LAUNCH, PX_COPY, PX_SET, PX_HOST, PX_RECORD, PX_WAIT, PX_TAKE, PX_GIVE } px_kind;

/* A box of bytes, for copies and sets. */
typedef struct px_box {
  px_side to, from;
  size_t width, height, depth;
  uint32_t value; /* of a set ... */
  size_t repeats; /* every so many bytes: 1, 2 or 4 */
  size_t texel;   /* bytes of the texels of its arrays; 1: it has none */
} px_box;

/* Does not change once it is made, so that it may be done many times: nodes of graphs are work. */
typedef struct px_work {
  _Atomic unsigned owners;
  px_kind kind;
  pe_start start;     /* of a launch; module and code are owned */
  const void *handle; /* what the program calls its kernel */
  px_kernel *kernel;  /* of a launch, unless its module has been unloaded */
  uint64_t launches;  /* the address of the list where the kernel leaves launches; 0: it makes none */
  px_box box;
  int direction;         /* of a copy: cudaMemcpy* */
  cudaHostFn_t function; /* or ... */
  cudaStreamCallback_t callback;
  cudaStream_t stream; /* for the callback */
  void *data;
  cudaEvent_t event; /* that is recorded, or waited for; it is owned */
  px_block *block;   /* of a graph's memory, that is taken or given back; it is owned */
  uint8_t params[];  /* of a launch */
} px_work;

/* New work with one owner; NULL: there is no memory. */
px_work *px_work_new(px_kind kind);
px_work *px_work_launch(const pe_start *start, px_kernel *kernel, const void *handle);
px_work *px_host_work(cudaHostFn_t function, void *data);
px_work *px_work_event(px_kind kind, cudaEvent_t event);
px_work *px_work_block(px_kind kind, px_block *block); /* which it owns then, also if there is no memory */
px_work *px_work_keep(px_work *work);
void px_work_release(px_work *work);

/* What pe_start_launch says, as CUDA says it. */
cudaError_t px_start_error(int error);

/* ---- item.c: when it is done ---- */

/* One time that work is done. */
typedef struct px_item {
  unsigned owners;
  unsigned missing; /* items that must be done before */
  bool done;
  bool direct; /* run by the call that has submitted it, which returns `error` */
  cudaError_t error;
  struct timespec at; /* when it was done */
  px_work *work;
  px_context *context;
  bool over;                      /* its launch has ended */
  uint64_t record;                /* of a shared event: its number */
  struct px_plan *plan;           /* of a graph: the item is its begin, or ... */
  const struct px_branch *branch; /* ... chooses one of several, once that ... */
  bool chosen;                    /* ... has been asked already */
  pe_launch *running;
  struct pe_child *children; /* launches that its kernel has made */
  struct px_item **after;    /* which wait for this one */
  size_t count, room;
  struct px_item *next;
} px_item;

/* ---- event.c ---- */

typedef struct px_nodes {
  struct px_node **node;
  size_t count, room;
} px_nodes;

struct px_event {
  px_mortal mortal;
  unsigned flags;
  _Atomic unsigned owners;            /* the handle is one */
  px_item *item;                      /* the last record of it; NULL: there is none. Guarded by the lock of item.c */
  _Atomic unsigned long long capture; /* not 0: it was recorded in a capture, behind ... */
  px_nodes behind;                    /* ... these nodes; guarded by the lock of graphs */
  struct px_shared_event *shared;     /* with other processes; or NULL */
};

enum { PX_EVENT_BLOCKING = 1, PX_EVENT_NO_TIMING = 2, PX_EVENT_INTERPROCESS = 4 };

/* A new one, which owns `shared` (or NULL), also if there is no memory for it. */
cudaError_t px_event_new(struct px_shared_event *shared, unsigned flags, cudaEvent_t *out);

cudaEvent_t px_event_keep(cudaEvent_t event);
void px_event_release(cudaEvent_t event);
bool px_is_event(cudaEvent_t event);

/* ---- streams ---- */

struct px_stream {
  px_mortal mortal;
  unsigned flags;
  int priority;
  unsigned long long id;
  const px_context *context; /* that it was made in; NULL: any. It may be gone */
  bool dead;                 /* destroyed, but not done */
  bool gone;                 /* destroyed: it cannot be captured any more; guarded by the lock of graphs */
  px_item *last;
  _Atomic(struct px_capture *) capture; /* which work goes to instead */
  px_nodes tail;                        /* the nodes behind which it goes; guarded by the lock of graphs */
  struct px_stream *next;
};

/* The stream of a handle, which px_is_stream knows. */
struct px_stream *px_stream_of(cudaStream_t stream);
void px_stream_add(struct px_stream *stream);
/* Destroyed: what is in it goes on. */
void px_stream_remove(struct px_stream *stream);

/* Submit work, which the call then owns, to a stream, or to the graph that it is captured in. What can be done at once is. */
cudaError_t px_submit(cudaStream_t stream, px_work *work);

/* What a graph does: the work of nodes, which stand behind those that they wait for. It does not change. */
typedef struct px_plan {
  _Atomic unsigned owners;
  px_work **work;            /* NULL: nothing, or ... */
  struct px_branch **branch; /* ... one of several graphs */
  size_t count;
  size_t (*edge)[2]; /* numbers of nodes: before, behind */
  size_t edges;
  struct px_start *start;
  size_t starts;
} px_plan;

/* A value that is set before anything is done. */
typedef struct px_start {
  px_block *value; /* owned */
  uint32_t word;
} px_start;

/* The graphs of a node that chooses by a value. */
typedef struct px_branch {
  _Atomic unsigned owners;
  px_block *value; /* owned */
  int kind;        /* cudaGraphCondType* */
  unsigned count;
  px_plan *plan[];
} px_branch;

px_plan *px_plan_keep(px_plan *plan);
void px_plan_release(px_plan *plan); /* NULL: nothing */

/* Submit all of a plan behind `*last`, which then is the item that is done when all of it is. */
cudaError_t px_submit_graph(cudaStream_t stream, px_plan *plan, px_item **last);

/* The last record of an event, which the caller then owns; NULL: there is none. */
px_item *px_event_item(cudaEvent_t event);

bool px_item_done(px_item *item);
cudaError_t px_item_wait(px_item *item);
void px_item_release(px_item *item);

/* Whether all that work in a stream would have to wait for is done; wait for it; wait for everything. An error: this is a thread that
 * must not wait, as it runs a function of the program in the order of a stream. */
bool px_stream_idle(cudaStream_t stream);
cudaError_t px_stream_wait(cudaStream_t stream);
cudaError_t px_wait_all(void);

/* Wait for everything, in a function of the API that takes something away. */
#define PX_SETTLE()                               \
  do {                                            \
    cudaError_t px_settled = px_wait_all();       \
    if (px_settled) return px_report(px_settled); \
  } while (0)

/* Whether this thread may wait. */
bool px_may_wait(void);

/* Stop what runs, drop what waits. */
void px_stop_all(void);

#endif
