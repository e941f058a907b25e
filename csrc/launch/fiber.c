/* fiber.c: stacks with an unmapped end, and two ways to switch to them: assembly, and ucontext everywhere else.
 *
 * Environment PTXEMU_FIBERS=ucontext selects the portable way where both exist (for tests).
 */
#include "fiber.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include "checked.h"
#include "sanitizer.h"

/* Wide, because compiled frames hold hundreds of vectors and may step over a single page. */
#define GUARD_BYTES (64u << 10)

/* Of a stack, for the runtime's own functions. */
#define RESERVED_BYTES (128u << 10)

/* Usable of a new stack. */
#define FIRST_BYTES (32u << 10)

#if !defined(PE_PORTABLE_FIBERS) && (defined(__x86_64__) || defined(__aarch64__))
#define HAVE_ASSEMBLY 1
#else
#define HAVE_ASSEMBLY 0
#endif

struct pe_fiber {
  uint8_t *mapping;
  size_t guard, stack;     /* bytes, from the start of the mapping */
  size_t first, committed; /* usable of the stack, at its end: when it is new, and now */
  uintptr_t top;
  bool portable;
  void *own, *home; /* stack pointers of the assembly switch */
  ucontext_t own_context, home_context;
  void (*entry)(void *);
  void *argument;
  pe_sanitizer sanitizer;
};

/* ---- the assembly switch: save callee-saved registers, exchange stacks, restore ---- */

#if HAVE_ASSEMBLY
void pe_fiber_switch(void **save, void *load);
void pe_fiber_first(void);
#endif

#if HAVE_ASSEMBLY && defined(__x86_64__)
__asm__(
    ".text\n"
    ".hidden pe_fiber_switch\n"
    ".globl pe_fiber_switch\n"
    ".type pe_fiber_switch,@function\n"
    "pe_fiber_switch:\n"
    "  pushq %rbp\n"
    "  pushq %rbx\n"
    "  pushq %r12\n"
    "  pushq %r13\n"
    "  pushq %r14\n"
    "  pushq %r15\n"
    "  movq %rsp, (%rdi)\n"
    "  movq %rsi, %rsp\n"
    "  popq %r15\n"
    "  popq %r14\n"
    "  popq %r13\n"
    "  popq %r12\n"
    "  popq %rbx\n"
    "  popq %rbp\n"
    "  ret\n"
    ".size pe_fiber_switch,.-pe_fiber_switch\n"
    ".hidden pe_fiber_first\n"
    ".globl pe_fiber_first\n"
    ".type pe_fiber_first,@function\n"
    "pe_fiber_first:\n"
    "  .cfi_startproc\n"
    "  .cfi_undefined rip\n"
    "  movq %r12, %rdi\n"
    "  callq *%r13\n"
    "  ud2\n"
    "  .cfi_endproc\n"
    ".size pe_fiber_first,.-pe_fiber_first\n");

static void *first_frame(uintptr_t top, void (*run)(void *), void *argument) {
  uint64_t *sp = (uint64_t *)top - 9; /* r15 r14 r13 r12 rbx rbp, return address; then 16-byte aligned for the call */
  memset(sp, 0, 72);
  sp[2] = (uint64_t)(uintptr_t)run;
  sp[3] = (uint64_t)(uintptr_t)argument;
  sp[6] = (uint64_t)(uintptr_t)pe_fiber_first;
  return sp;
}
#elif HAVE_ASSEMBLY
__asm__(
    ".text\n"
    ".hidden pe_fiber_switch\n"
    ".globl pe_fiber_switch\n"
    ".type pe_fiber_switch,%function\n"
    "pe_fiber_switch:\n"
    "  sub sp, sp, #160\n"
    "  stp x19, x20, [sp, #0]\n"
    "  stp x21, x22, [sp, #16]\n"
    "  stp x23, x24, [sp, #32]\n"
    "  stp x25, x26, [sp, #48]\n"
    "  stp x27, x28, [sp, #64]\n"
    "  stp x29, x30, [sp, #80]\n"
    "  stp d8, d9, [sp, #96]\n"
    "  stp d10, d11, [sp, #112]\n"
    "  stp d12, d13, [sp, #128]\n"
    "  stp d14, d15, [sp, #144]\n"
    "  mov x9, sp\n"
    "  str x9, [x0]\n"
    "  mov sp, x1\n"
    "  ldp x19, x20, [sp, #0]\n"
    "  ldp x21, x22, [sp, #16]\n"
    "  ldp x23, x24, [sp, #32]\n"
    "  ldp x25, x26, [sp, #48]\n"
    "  ldp x27, x28, [sp, #64]\n"
    "  ldp x29, x30, [sp, #80]\n"
    "  ldp d8, d9, [sp, #96]\n"
    "  ldp d10, d11, [sp, #112]\n"
    "  ldp d12, d13, [sp, #128]\n"
    "  ldp d14, d15, [sp, #144]\n"
    "  add sp, sp, #160\n"
    "  ret\n"
    ".size pe_fiber_switch,.-pe_fiber_switch\n"
    ".hidden pe_fiber_first\n"
    ".globl pe_fiber_first\n"
    ".type pe_fiber_first,%function\n"
    "pe_fiber_first:\n"
    "  .cfi_startproc\n"
    "  .cfi_undefined x30\n"
    "  mov x0, x19\n"
    "  blr x20\n"
    "  brk #1\n"
    "  .cfi_endproc\n"
    ".size pe_fiber_first,.-pe_fiber_first\n");

static void *first_frame(uintptr_t top, void (*run)(void *), void *argument) {
  uint64_t *sp = (uint64_t *)top - 20; /* x19 to x30, d8 to d15 */
  memset(sp, 0, 160);
  sp[0] = (uint64_t)(uintptr_t)argument;
  sp[1] = (uint64_t)(uintptr_t)run;
  sp[11] = (uint64_t)(uintptr_t)pe_fiber_first;
  return sp;
}
#endif

/* ---- stacks ---- */

static bool use_portable;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void choose(void) {
  const char *wish = getenv("PTXEMU_FIBERS");
  use_portable = !HAVE_ASSEMBLY || (wish && !strcmp(wish, "ucontext"));
}

bool pe_fiber_portable(void) {
  pthread_once(&once, choose);
  return use_portable;
}

pe_fiber *pe_fiber_create(size_t stack_bytes, uint32_t color) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  pe_fiber *fiber = calloc(1, sizeof *fiber);
  if (!fiber) return NULL;
  fiber->portable = pe_fiber_portable();
  fiber->guard = pe_round_up(GUARD_BYTES, page);
  fiber->stack = pe_round_up(stack_bytes, page);
  size_t offset = (size_t)color % 32 * 1088;
  size_t length = fiber->guard + fiber->stack + pe_round_up(offset, page);
  fiber->mapping = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (fiber->mapping == MAP_FAILED) {
    free(fiber);
    return NULL;
  }
  fiber->stack = length - fiber->guard;
  if (!pe_fiber_grow(fiber, pe_round_up(offset, page) + FIRST_BYTES)) {
    munmap(fiber->mapping, length);
    free(fiber);
    return NULL;
  }
  fiber->first = fiber->committed;
  fiber->top = ((uintptr_t)fiber->mapping + length - offset) & ~(uintptr_t)63;
  return fiber;
}

void pe_fiber_destroy(pe_fiber *fiber) {
  if (!fiber) return;
  pe_sanitizer_destroy(&fiber->sanitizer);
  munmap(fiber->mapping, fiber->guard + fiber->stack);
  free(fiber);
}

size_t pe_fiber_stack_bytes(const pe_fiber *fiber) { return fiber->stack; }

size_t pe_fiber_committed(const pe_fiber *fiber) { return fiber->committed; }

size_t pe_fiber_grown(const pe_fiber *fiber) { return fiber->committed - fiber->first; }

static uint8_t *end_of(const pe_fiber *fiber) { return fiber->mapping + fiber->guard + fiber->stack; }

size_t pe_fiber_wanting(const pe_fiber *fiber, uintptr_t address) {
  uintptr_t end = (uintptr_t)end_of(fiber), low = end - fiber->committed;
  if (address >= low || address < end - fiber->stack) return 0;
  return pe_round_up(low - address, (size_t)sysconf(_SC_PAGESIZE));
}

bool pe_fiber_grow(pe_fiber *fiber, size_t bytes) {
  size_t room = fiber->stack - fiber->committed;
  if (bytes > room) bytes = room;
  if (mprotect(end_of(fiber) - fiber->committed - bytes, bytes, PROT_READ | PROT_WRITE)) return false;
  fiber->committed += bytes;
  return true;
}

void pe_fiber_shrink(pe_fiber *fiber, size_t bytes) {
  size_t grown = pe_fiber_grown(fiber);
  uint8_t *low = end_of(fiber) - fiber->committed;
  if (grown <= bytes || mprotect(low, grown, PROT_NONE)) return;
  madvise(low, grown, MADV_DONTNEED);
  fiber->committed = fiber->first;
}

uintptr_t pe_fiber_abandon(pe_fiber *fiber) {
  pe_sanitizer_abandon(fiber->mapping + fiber->guard, fiber->stack);
  return fiber->top;
}

bool pe_fiber_overflowed(const pe_fiber *fiber, uintptr_t address) {
  return address - (uintptr_t)fiber->mapping < fiber->guard;
}

size_t pe_fiber_headroom(const pe_fiber *fiber) {
  return (uintptr_t)__builtin_frame_address(0) - (uintptr_t)fiber->mapping - fiber->guard;
}

uintptr_t pe_fiber_limit(const pe_fiber *fiber) { return (uintptr_t)fiber->mapping + fiber->guard + RESERVED_BYTES; }

/* ---- running ---- */

static void run_entry(void *argument) {
  pe_fiber *fiber = argument;
  pe_sanitizer_arrived(&fiber->sanitizer);
  fiber->entry(fiber->argument);
  abort(); /* entries leave, they do not return */
}

/* makecontext passes ints only. */
static void run_entry_halves(unsigned high, unsigned low) { run_entry((void *)(uintptr_t)((uint64_t)high << 32 | low)); }

static void make_context(pe_fiber *fiber) {
  uint64_t self = (uint64_t)(uintptr_t)fiber;
  getcontext(&fiber->own_context);
  fiber->own_context.uc_stack.ss_sp = fiber->mapping + fiber->guard;
  fiber->own_context.uc_stack.ss_size = fiber->top - (uintptr_t)fiber->mapping - fiber->guard;
  fiber->own_context.uc_link = NULL;
  makecontext(&fiber->own_context, (void (*)(void))run_entry_halves, 2, (unsigned)(self >> 32), (unsigned)self);
}

void pe_fiber_start(pe_fiber *fiber, void (*entry)(void *), void *argument) {
  fiber->entry = entry;
  fiber->argument = argument;
  pe_fiber_abandon(fiber);
  pe_sanitizer_start(&fiber->sanitizer);
#if HAVE_ASSEMBLY
  if (!fiber->portable) {
    fiber->own = first_frame(fiber->top, run_entry, fiber);
    return;
  }
#endif
  make_context(fiber);
}

void pe_fiber_resume(pe_fiber *fiber) {
  pe_sanitizer_enter(&fiber->sanitizer, fiber->mapping + fiber->guard, fiber->stack);
#if HAVE_ASSEMBLY
  if (!fiber->portable) {
    pe_fiber_switch(&fiber->home, fiber->own);
    pe_sanitizer_returned(&fiber->sanitizer);
    return;
  }
#endif
  swapcontext(&fiber->home_context, &fiber->own_context);
  pe_sanitizer_returned(&fiber->sanitizer);
}

void pe_fiber_suspend(pe_fiber *fiber) {
  pe_sanitizer_exit(&fiber->sanitizer, false);
#if HAVE_ASSEMBLY
  if (!fiber->portable) {
    pe_fiber_switch(&fiber->own, fiber->home);
    pe_sanitizer_arrived(&fiber->sanitizer);
    return;
  }
#endif
  swapcontext(&fiber->own_context, &fiber->home_context);
  pe_sanitizer_arrived(&fiber->sanitizer);
}

noreturn void pe_fiber_leave(pe_fiber *fiber) {
  pe_sanitizer_exit(&fiber->sanitizer, true);
#if HAVE_ASSEMBLY
  if (!fiber->portable) pe_fiber_switch(&fiber->own, fiber->home);
#endif
  setcontext(&fiber->home_context);
  abort();
}
