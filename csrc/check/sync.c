/* sync.c: the checker `sync`: barriers that the lanes of a warp do not come to together. */
#include "checker.h"
#include "text.h"

void pe_sync_barrier(pe_checker *checker, const pe_warp *w, uint32_t pos, uint32_t id, uint32_t mask, uint32_t how) {
  uint32_t missing = w->active & ~mask;
  if (id >= PE_BARRIER_CLUSTER || how & PE_BARRIER_LANES || !missing || !mask) return;
  uint32_t gone = missing & w->exited;
  pe_finding f = {.check = PE_CHECK_SYNC, .pos = pos, .other_pos = PE_NO_POS, .what = gone == missing};
  pe_text t = pe_text_in(f.text, sizeof f.text);
  pe_add(&t, "barrier %u: %d of the %d threads of warp %u %s", id, __builtin_popcount(missing),
         __builtin_popcount(w->active), w->warpid,
         gone == missing ? "have exited before it" : "do not come to it with the others");
  pe_report(checker, w, (uint32_t)__builtin_ctz(mask), &f);
}
