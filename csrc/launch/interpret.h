/* interpret.h: launches whose instructions are executed by the caller, one at a time, on its own thread: what memory such a
 * launch has, and calls of the runtime's functions on behalf of a warp. */
#ifndef PTXEMU_INTERPRET_H
#define PTXEMU_INTERPRET_H
#include "ptxemu.h"
#include "host.h"

#pragma GCC visibility push(default)
/* CDEF BEGIN */
typedef struct pe_session pe_session;

/* Begin a launch on the calling thread, which must also end it. 0, or an errno value as of pe_launch_start; config->kernel is
 * never called. */
int pe_session_start(pe_arena *arena, const pe_config *config, pe_session **session);

/* What pe_launch_output, pe_launch_result and pe_launch_request_stop take. */
pe_launch *pe_session_launch(pe_session *session);

/* End it. Does nothing if there is none. */
void pe_session_end(pe_session **session);

/* Put the blocks of a cluster, of which `block` is the first, in places that follow each other: the windows of these are theirs from
 * now on. There are as many places as have been used, those of a cluster from a multiple of its size on. 0, or an errno value. */
int pe_session_place(pe_session *session, uint32_t place, uint64_t block);

/* The first block of the cluster that clusterlaunchcontrol.try_cancel takes next, if any is `left`. */
void pe_session_offer(pe_session *session, uint64_t block, int left);

/* The blocks of a cluster have come to their end. */
void pe_session_complete(pe_session *session);

/* A warp of the block in a place. */
pe_warp *pe_session_warp(pe_session *session, uint32_t place, uint32_t warp);

/* A function of pe_symbols, or one of those below, with integers and pointers as arguments. */
enum { PE_CALL_ARGUMENTS = 14 };
typedef struct pe_call {
  void (*function)(void);
  uint64_t arguments[PE_CALL_ARGUMENTS];
  uint64_t result;
} pe_call;

/* Call a function for a warp. 1: it has returned. 0: it has ended the launch. */
int pe_session_call(pe_session *session, pe_warp *w, pe_call *call);

/* The launch is to stop while a warp is running. */
void pe_session_stop(pe_session *session, pe_warp *w);

/* Whether an observer is told of this launch. */
int pe_session_observed(const pe_session *session);

/* Functions to call. */

/* Elements of lanes, lane-major; addresses as the program writes them. */
void pe_lanes_load(pe_warp *w, uint32_t pos, uint32_t space, uint32_t element, uint32_t count, uint32_t mask,
                   const uint64_t *addr, void *data);
void pe_lanes_store(pe_warp *w, uint32_t pos, uint32_t space, uint32_t element, uint32_t count, uint32_t mask,
                    const uint64_t *addr, const void *data);

/* Lanes arrive at a barrier: the observer is told. */
void pe_lanes_arrive(pe_warp *w, uint32_t pos, uint32_t id, uint32_t mask);

/* A fault with a text that says more. */
void pe_lanes_fault(pe_warp *w, uint32_t kind, uint32_t pos, int32_t lane, uint32_t space, uint64_t address, uint32_t size,
                    const char *note);

/* All that can run has waited for mbarriers for long: the fault. */
void pe_lanes_mbarrier_deadlock(pe_warp *w);
/* CDEF END */
#pragma GCC visibility pop

#endif
