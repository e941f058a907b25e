/* px_context.h: contexts, and the stack of them that each thread has.
 *
 * There is one device, whose memory and modules all contexts share; what a context has of its own is an error that stays. The primary one
 * is that of the runtime API, whose functions make it current where a thread has none.
 */
#ifndef PTXEMU_CUDA_CONTEXT_H
#define PTXEMU_CUDA_CONTEXT_H
#include <stdatomic.h>
#include <stdbool.h>
#include "abi.h"
#include "px_live.h"

typedef struct px_context {
  px_mortal mortal;
  _Atomic unsigned owners; /* the handle, and work under way */
  _Atomic cudaError_t staying;
  unsigned flags;
  unsigned long long id;
} px_context;

extern px_context px_primary;

/* ---- which there are ---- */

/* A new one, which is current from then on; an error: the stack is full, or there is no memory. */
cudaError_t px_context_create(unsigned flags, px_context **out);

/* Destroy one, and reset the device if it was the last. Not within a call. */
cudaError_t px_context_destroy(px_context *context);

/* What no context owns keeps the device as it is: one thing more; some less, not within a call; none, as it is reset. */
void px_device_keep(void);
cudaError_t px_device_unkeep(unsigned times);
void px_device_unkept(void);

/* Whether a handle is that of a context. Within a call. */
bool px_context_lives(const px_context *context);

/* Work that goes on keeps its context. */
px_context *px_context_keep(px_context *context);
void px_context_release(px_context *context);

/* The primary one exists as long as somebody holds it: the runtime API does from its first call on. false: nobody does. */
void px_primary_retain(void);
bool px_primary_release(void); /* not within a call, as the next one */
cudaError_t px_primary_reset(void);
bool px_primary_is_held(void);

/* ---- the thread's stack ---- */

px_context *px_context_top(void); /* or NULL */
bool px_context_push(px_context *context);
void px_context_pop(void);

/* ---- a call ---- */

/* From here to the end of the function, this is a call of the driver API. */
typedef struct px_driver_call {
  unsigned before;
} px_driver_call;

px_driver_call px_driver_call_begin(void);
void px_driver_call_end(px_driver_call *call);

/* The context that a call works in: the current one. Where there is none, calls of the runtime API make the primary one current, and those of
 * the driver API that need no current one work in it. */
px_context *px_context_own(void);

/* Whether a program has begun to use CUDA: by cuInit, or the runtime API. */
void px_initialise(void);
bool px_is_initialised(void);

/* A context's error that stays: the first one does. cudaSuccess: there is none. */
cudaError_t px_context_error(px_context *context);
void px_stay_in(px_context *context, cudaError_t error);

#endif
