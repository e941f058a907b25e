/* registers.c: the checker `init`: registers that nobody has written, as compiled code tells (ptxemu/passes/definedness.py). */
#include "checker.h"
#include "atomic.h"
#include "text.h"

enum { REGISTERS = 2 }; /* what is found: this and PE_UNSET_CHOICE ... */

static const char *const uses[] = {
  [PE_UNSET_CHOICE] = "a branch or guard depends on",
  [PE_UNSET_ADDRESS] = "an address comes from",
  [PE_UNSET_VALUE] = "a value that is stored comes from",
};

void pe_registers_unset(pe_checker *checker, const pe_warp *w, uint32_t pos, uint32_t use, uint32_t mask) {
  pe_finding f = {.check = PE_CHECK_INIT, .pos = pos, .other_pos = PE_NO_POS, .what = REGISTERS + use};
  pe_text t = pe_text_in(f.text, sizeof f.text);
  pe_add(&t, "%s a register that nobody has written", uses[use]);
  PE_FOR_LANES(lane, mask) pe_report(checker, w, lane, &f);
}
