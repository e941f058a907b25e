/* symbols.c: every function that JIT code may call.  Nothing else of the process is visible to it. */
#include <math.h>
#include <string.h>
#include "async.h"
#include "dialects.h"
#include "observer.h"
#include "half.h"
#include "internal.h"
#include "lanes.h"
#include "steps.h"
#include "tensor.h"

/* What LLVM calls for 128-bit division; part of every compiler's support library. */
__int128 __divti3(__int128 a, __int128 b);
__int128 __modti3(__int128 a, __int128 b);
unsigned __int128 __udivti3(unsigned __int128 a, unsigned __int128 b);
unsigned __int128 __umodti3(unsigned __int128 a, unsigned __int128 b);

#define NAMED(name, function) {name, (void (*)(void))(function)}
#define SYMBOL(function) NAMED(#function, function)
#define LANE_UPDATE(name, size) SYMBOL(pe_##name##_##size), SYMBOL(pe_##name##_same_##size)
#define LANE_UPDATES(size) LANE_UPDATE(add, size), LANE_UPDATE(and, size), LANE_UPDATE(or, size), LANE_UPDATE(xor, size)
#define LANE_ACCESSES(size) SYMBOL(pe_gather_##size), SYMBOL(pe_scatter_##size)

static const pe_symbol SYMBOLS[] = {
  SYMBOL(pe_stack_overflow),
  SYMBOL(pe_invalid_call),
  SYMBOL(pe_stop),
  SYMBOL(pe_fault),
  SYMBOL(pe_check),
  SYMBOL(pe_refuse_lanes),
  SYMBOL(pe_reach),
  SYMBOL(pe_spread_64),
  SYMBOL(pe_spread_32),
  SYMBOL(pe_keep_corrections),
  SYMBOL(pe_correct),
  LANE_ACCESSES(8),
  LANE_ACCESSES(16),
  LANE_ACCESSES(32),
  LANE_ACCESSES(64),
  LANE_ACCESSES(128),
  LANE_ACCESSES(strong_8),
  LANE_ACCESSES(strong_16),
  LANE_ACCESSES(strong_32),
  LANE_ACCESSES(strong_64),
  LANE_ACCESSES(strong_128),
  LANE_UPDATES(32),
  LANE_UPDATES(64),
  SYMBOL(pe_observe),
  SYMBOL(pe_observe_pattern),
  SYMBOL(pe_observe_order),
  SYMBOL(pe_observe_members),
  SYMBOL(pe_observe_unset),
  SYMBOL(pe_yield),
  SYMBOL(pe_barrier),
  SYMBOL(pe_barrier_red),
  SYMBOL(pe_barrier_lanes),
  SYMBOL(pe_barrier_passed),
  SYMBOL(pe_barrier_idle),
  SYMBOL(pe_barrier_results),
  SYMBOL(pe_barrier_watched),
  SYMBOL(pe_barrier_together),
  SYMBOL(pe_grid_sync),
  SYMBOL(pe_stuck),
  SYMBOL(pe_vprintf),
  SYMBOL(pe_assertfail),
  SYMBOL(pe_malloc),
  SYMBOL(pe_free),
  SYMBOL(pe_set_condition),
  SYMBOL(pe_clock),
  SYMBOL(pe_globaltimer),
  SYMBOL(pe_atomic),
  SYMBOL(pe_atomic_shared),
  SYMBOL(pe_red),
  SYMBOL(pe_surface),
  SYMBOL(pe_surface_view_of),
  SYMBOL(pe_surface_watched_view_of),
  SYMBOL(pe_surface_lanes),
  SYMBOL(pe_typed_atomic),
  SYMBOL(pe_headers),
  SYMBOL(pe_suq),
  SYMBOL(pe_is_surface),
  SYMBOL(pe_tex),
  SYMBOL(pe_txq),
  SYMBOL(pe_is_texture),
  SYMBOL(pe_round),
  SYMBOL(pe_round_convert),
  SYMBOL(pe_mma),
  SYMBOL(pe_wgmma),
  SYMBOL(pe_warpgroup_wait),
  SYMBOL(pe_wmma_load),
  SYMBOL(pe_wmma_store),
  SYMBOL(pe_ldmatrix),
  SYMBOL(pe_stmatrix),
  SYMBOL(pe_movmatrix),
  SYMBOL(pe_ldmatrix_lines),
  SYMBOL(pe_stmatrix_lines),
  SYMBOL(pe_mbarrier),
  SYMBOL(pe_mbarrier_wait),
  SYMBOL(pe_copy),
  SYMBOL(pe_bulk_copy),
  SYMBOL(pe_bulk_multicast),
  SYMBOL(pe_bulk_reduce),
  SYMBOL(pe_bulk_zero),
  SYMBOL(pe_tensor_load),
  SYMBOL(pe_tensor_store),
  SYMBOL(pe_tensor_multicast),
  SYMBOL(pe_tensor_replace),
  SYMBOL(pe_tensor_publish),
  SYMBOL(pe_cluster_arrive),
  SYMBOL(pe_cluster_wait),
  SYMBOL(pe_cluster_cancel),
  PE_DIALECT_SYMBOLS(SYMBOL),
  SYMBOL(pe_run_steps),
  SYMBOL(pe_step_enter),
  SYMBOL(pe_step_admit),
  SYMBOL(pe_step_test),
  SYMBOL(pe_step_resume),
  SYMBOL(pe_step_split),
  SYMBOL(pe_step_send),
  SYMBOL(pe_step_join),
  SYMBOL(pe_step_go),
  SYMBOL(pe_step_branch),
  SYMBOL(pe_step_select),
  SYMBOL(pe_step_scatter),
  SYMBOL(pe_step_places),
  SYMBOL(pe_step_stop),
  /* calls that LLVM makes of its own accord */
  SYMBOL(memcpy),
  SYMBOL(memmove),
  SYMBOL(memset),
  SYMBOL(memcmp),
  NAMED("fma", (double (*)(double, double, double))fma),
  NAMED("fmaf", (float (*)(float, float, float))fmaf),
  NAMED("__truncsfhf2", pe_truncsfhf2),
  NAMED("__truncdfhf2", pe_truncdfhf2),
  NAMED("__extendhfsf2", pe_extendhfsf2),
  NAMED("__truncsfbf2", pe_truncsfbf2),
  NAMED("__truncdfbf2", pe_truncdfbf2),
  SYMBOL(__divti3),
  SYMBOL(__modti3),
  SYMBOL(__udivti3),
  SYMBOL(__umodti3),
  {NULL, NULL},
};

const pe_symbol *pe_symbols(void) { return SYMBOLS; }
