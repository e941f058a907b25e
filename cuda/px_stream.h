/* px_stream.h: work in the order of streams. */
#ifndef PTXEMU_CUDA_STREAM_H
#define PTXEMU_CUDA_STREAM_H
#include <stdatomic.h>
#include <time.h>
#include "core.h"
#include "start.h"

/* ---- work.c: what is to be done ---- */

typedef enum px_kind { PX_NOTHING, PX_LAUNCH, PX_COPY, PX_SET, PX_HOST } px_kind;

/* A box of bytes, for copies and sets. */
typedef struct px_box {
  px_side to, from;
  size_t width, height, depth;
  uint32_t value; /* of a set ... */
  size_t repeats; /* every so many bytes: 1, 2 or 4 */
} px_box;

/* Does not change once it is made, so that it may be done many times: nodes of graphs are work. */
typedef struct px_work {
  _Atomic unsigned owners;
  px_kind kind;
  pe_start start; /* of a launch; module and code are owned */
  px_box box;
  cudaHostFn_t function; /* or ... */
  cudaStreamCallback_t callback;
  cudaStream_t stream; /* for the callback */
  void *data;
  uint8_t params[]; /* of a launch */
} px_work;

/* New work with one owner; NULL: there is no memory. */
px_work *px_work_new(px_kind kind);
px_work *px_work_launch(const pe_start *start);
px_work *px_work_keep(px_work *work);
void px_work_release(px_work *work);

/* What pe_start_launch says, as CUDA says it. */
cudaError_t px_start_error(int error);

/* ---- queue.c: when it is done ---- */

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
  bool over; /* its launch has ended */
  pe_launch *running;
  struct px_item **after; /* which wait for this one */
  size_t count, room;
  struct px_item *next;
} px_item;

struct px_graph;

struct px_stream {
  uint32_t mark; /* STREAM */
  unsigned flags;
  int priority;
  unsigned long long id;
  bool dead; /* destroyed, but not done */
  px_item *last;
  struct px_graph *capture; /* which work goes to instead */
  int tail;                 /* the node after which it goes; -1: none */
  struct px_stream *next;
};

/* The stream of a handle, which px_is_stream knows. */
struct px_stream *px_stream_of(cudaStream_t stream);
void px_stream_add(struct px_stream *stream);
void px_stream_remove(struct px_stream *stream);

/* Submit work, which the call then owns, to a stream, behind `other` as well if that is not NULL. `out` is NULL, or gets an item with
 * an owner. What can be done at once is. */
cudaError_t px_submit(cudaStream_t stream, px_work *work, px_item *other, px_item **out);

/* Submit the work of `count` nodes; `after` has `edges` pairs (before, behind) of their numbers, in any order that goes up. All of it
 * comes behind `other`; the item that is done when all of them are gets an owner. */
cudaError_t px_submit_graph(cudaStream_t stream, px_work *const *work, size_t count, const int (*after)[2], size_t edges,
                            px_item *other, px_item **out);

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

/* Stop what runs, drop what waits. */
void px_stop_all(void);

#endif
