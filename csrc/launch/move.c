/* move.c: a worker leaves a thread of the program for one of the pool.
 *
 * Its fiber is suspended, and the other thread resumes it.  Nothing that runs on the fiber keeps what belongs to a thread.
 */
#include "move.h"
#include "fault.h"
#include "cta.h"

static void move(pe_worker *worker) {
  pe_warp_state *running = worker->running;
  worker->has_moved = true;
  worker->running = NULL;
  pe_fiber_suspend(worker->cta->fibers[0]);
  worker->running = running;
}

void pe_move_if_asked(pe_worker *worker) {
  if (worker->is_guest && pe_asked(worker->launch, PE_ASKED_TO_MOVE)) move(worker);
}

#if defined(__x86_64__)

/* Whether registers for vectors are kept: then there is XSAVE. */
__attribute__((visibility("hidden"), used)) bool pe_keeps_vectors;

__attribute__((visibility("hidden"), used)) void pe_attend_here(void) {
  pe_worker *worker = pe_self;
  if (pe_stopped(worker->launch)) pe_stop(&worker->running->warp);
  pe_move_if_asked(worker);
}

/* pe_attend: registers for whole numbers, and those for vectors with their masks, as far as the processor has them (components 1, 2
 * and 5 to 7 of XSAVE, which end within 2,688 bytes; the header, 64 bytes behind the first 512, must be zero). */
__asm__(
    ".text\n"
    ".globl pe_attend\n"
    ".type pe_attend,@function\n"
    "pe_attend:\n"
    "  .cfi_startproc\n"
    "  pushq %rbp\n"
    "  .cfi_def_cfa_offset 16\n"
    "  .cfi_offset rbp, -16\n"
    "  movq %rsp, %rbp\n"
    "  .cfi_def_cfa_register rbp\n"
    "  pushq %rax\n"
    "  pushq %rcx\n"
    "  pushq %rdx\n"
    "  pushq %rsi\n"
    "  pushq %rdi\n"
    "  pushq %r8\n"
    "  pushq %r9\n"
    "  pushq %r10\n"
    "  pushq %r11\n"
    "  subq $2752, %rsp\n"
    "  andq $-64, %rsp\n"
    "  cmpb $0, pe_keeps_vectors(%rip)\n"
    "  jne 1f\n"
    "  call pe_attend_here\n" /* to stop: it does not return */
    "  ud2\n"
    "1:\n"
    "  xorl %eax, %eax\n"
    "  leaq 512(%rsp), %rdi\n"
    "  movl $8, %ecx\n"
    "  rep stosq\n"
    "  movl $0xe6, %eax\n"
    "  xorl %edx, %edx\n"
    "  xsave64 (%rsp)\n"
    "  call pe_attend_here\n"
    "  movl $0xe6, %eax\n"
    "  xorl %edx, %edx\n"
    "  xrstor64 (%rsp)\n"
    "  leaq -72(%rbp), %rsp\n"
    "  popq %r11\n"
    "  popq %r10\n"
    "  popq %r9\n"
    "  popq %r8\n"
    "  popq %rdi\n"
    "  popq %rsi\n"
    "  popq %rdx\n"
    "  popq %rcx\n"
    "  popq %rax\n"
    "  popq %rbp\n"
    "  .cfi_def_cfa rsp, 8\n"
    "  ret\n"
    "  .cfi_endproc\n"
    ".size pe_attend,.-pe_attend\n");

void pe_move_init(void) { pe_keeps_vectors = __builtin_cpu_supports("avx"); }

#else

static const bool pe_keeps_vectors;

void pe_attend(void) {}

void pe_move_init(void) {}

#endif

bool pe_move_is_possible(const pe_launch *launch) { return launch->config.brief || pe_keeps_vectors; }
