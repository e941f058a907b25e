/* steps.h: threaded code: tables of steps, which say what is done in turn, on registers in a frame (lower/functions/threaded.py).
 *
 * A step begins with the number of its routine. Masks of lanes are words at places in the frame. A way is the distance in bytes
 * from a step to the one that it leads to. */
#ifndef PTXEMU_STEPS_H
#define PTXEMU_STEPS_H
#include "ptxemu.h"

/* CDEF BEGIN */
/* What a frame begins with; registers come after it. */
typedef struct pe_frame {
  uint64_t stack;   /* where the frame of a device function starts in local memory */
  uint32_t nowhere; /* a place for masks that nobody reads */
  uint32_t running; /* the lanes that run */
  uint32_t taken;   /* those that part ways at a branch */
  uint32_t other;
  uint32_t moved;       /* not 0 if lanes have run since somebody looked */
  uint32_t released;    /* lanes whose bar.warp.sync is complete */
  const void *routines; /* by number */
} pe_frame;
/* CDEF END */

/* A routine does what a step says, and returns the next one, or null where control leaves the table. */
typedef const uint32_t *pe_routine(pe_warp *w, pe_frame *frame, uint32_t lanes, const uint32_t *step);

/* Execute steps until one is the last; returns the word behind its number, which says why. */
uint32_t pe_run_steps(pe_warp *w, pe_frame *frame, const uint32_t *step);

/* The routines that decide which lanes run next, and where, with the words of their steps:
 *
 * enter     waiting, running, way: the lanes at `waiting` run, or if there are none, another step is next
 * admit     lanes, way: they run, or if there are none, another step is next
 * test      lanes, way: the way is taken if there are none
 * resume    lanes: they run
 * split     condition: the lanes that run become those at `taken` and those at `other`
 * send      lanes, waiting, way: they are the lanes that wait there
 * join      lanes, waiting, way: they wait there with others
 * go        way
 * branch    condition, way: of a scalar; the way is taken where it is false
 * select    index, last, ways: by a scalar
 * scatter   last, indices, edges, apart, table, and where the way `edges` leads, three words for each edge: the way to steps
 *           that end with a stop, or 0, the place of the lanes that wait at its end, and the way on if all lanes take it
 * places    count, pairs: from the place in the first to that in the second
 * stop      reason */
pe_routine pe_step_enter, pe_step_admit, pe_step_test, pe_step_resume, pe_step_split, pe_step_send, pe_step_join, pe_step_go;
pe_routine pe_step_branch, pe_step_select, pe_step_scatter, pe_step_places, pe_step_stop;

#endif
