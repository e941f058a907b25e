/* signals.c: hardware traps of JIT code become faults.
 *
 * The handler acts only on a thread that runs a warp, and only on addresses of the arena (all, if the launch may touch the
 * host's memory) or of the fiber's stack, and on arithmetic traps; everything else goes to the handler that was there before.  A stack grows into what is left of it, as
 * far as the device has memory.  Else the handler records the fault and makes the thread continue, on a fresh part of the
 * fiber's stack, in pe_leave.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include "signals.h"
#include "cta.h"
#include "fault.h"
#include "launch.h"
#include "worker.h"

static const int SIGNALS[] = {SIGSEGV, SIGBUS, SIGFPE};
enum { SIGNAL_COUNT = sizeof SIGNALS / sizeof *SIGNALS };

static struct sigaction previous[SIGNAL_COUNT];
static _Thread_local bool chaining __attribute__((tls_model("initial-exec")));
static _Thread_local bool chained __attribute__((tls_model("initial-exec")));

static uint64_t program_counter(const ucontext_t *context) {
#if defined(__x86_64__)
  return (uint64_t)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
  return context->uc_mcontext.pc;
#else
  (void)context;
  return 0;
#endif
}

/* Continue in pe_leave when the handler returns. */
static void redirect(ucontext_t *context, uintptr_t top) {
#if defined(__x86_64__)
  context->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)pe_leave;
  context->uc_mcontext.gregs[REG_RSP] = (greg_t)(top - 64 - 8);
  context->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)0x400; /* the direction flag, clear by convention */
#elif defined(__aarch64__)
  context->uc_mcontext.pc = (uintptr_t)pe_leave;
  context->uc_mcontext.sp = top - 64;
#else
  (void)context, (void)top;
#endif
}

/* What the trap is about.  x86 does not say it of addresses that no memory can have: such an access has run beyond the last one
 * that can. */
static uintptr_t address_of(const siginfo_t *info) {
#if defined(__x86_64__)
  if (info->si_signo == SIGSEGV && info->si_code == SI_KERNEL) return PE_ADDRESS_SPACE;
#endif
  return (uintptr_t)info->si_addr;
}

/* The fault kind of a trap, or PE_OK if it is not the runtime's. */
static uint32_t classify(const pe_warp_state *state, int signal, uintptr_t address) {
  const pe_warp *w = &state->warp;
  if (signal == SIGFPE) return PE_ARITHMETIC;
  if (pe_fiber_overflowed(state->fiber, address)) return PE_STACK_OVERFLOW;
  uint64_t offset = address - (w->arena_base - PE_ARENA_MARGIN);
  if (offset >= w->arena_size + 2 * PE_ARENA_MARGIN) return PE_OK;
  return address < PE_NULL_BYTES ? PE_NULL : PE_ILLEGAL_ADDRESS;
}

static bool in_memory(uint32_t kind) { return kind == PE_ILLEGAL_ADDRESS || kind == PE_NULL; }

static uint32_t position(const pe_warp *w, uint32_t kind) {
  if (in_memory(kind)) return w->pos;
  return kind == PE_STACK_OVERFLOW ? pe_last_position(w) : PE_NO_POS;
}

/* Twice as much of the stack, or just what is wanted, as far as the device has memory. */
static bool grow_stack(pe_warp_state *state, size_t wanting) {
  pe_launch *launch = state->warp.launch;
  size_t committed = pe_fiber_committed(state->fiber), most = committed > wanting ? committed : wanting;
  if (pe_launch_charge(launch, most)) return pe_fiber_grow(state->fiber, most);
  return pe_launch_charge(launch, wanting) && pe_fiber_grow(state->fiber, wanting);
}

/* The thread leaves the kernel when the handler returns. */
static void leave(pe_warp_state *state, ucontext_t *context) {
  if (pe_fiber_portable()) pe_leave();
  redirect(context, pe_fiber_abandon(state->fiber));
}

static bool handle(int signal, const siginfo_t *info, ucontext_t *context) {
  pe_worker *self = pe_self;
  pe_warp_state *state = self ? self->running : NULL;
  if (!state || info->si_code <= 0) return false; /* si_code <= 0: sent by kill, not by the CPU */
  uintptr_t address = address_of(info);
  size_t wanting = signal == SIGFPE ? 0 : pe_fiber_wanting(state->fiber, address);
  if (wanting) {
    if (grow_stack(state, wanting)) return true;
    pe_launch_starved(state->warp.launch);
    leave(state, context);
    return true;
  }
  uint32_t kind = classify(state, signal, address);
  if (kind == PE_OK) return false;
  pe_record fault = {.kind = kind,
                     .pos = position(&state->warp, kind),
                     .space = in_memory(kind) ? state->warp.space : PE_GENERIC,
                     .pc = program_counter(context),
                     .lane = -1,
                     .address = in_memory(kind) ? address : 0};
  pe_record_fault(&state->warp, &fault);
  leave(state, context);
  return true;
}

/* Die of the signal: a trap repeats, a sent signal is sent again. */
static void die(int signal, const siginfo_t *info) {
  struct sigaction action = {.sa_handler = SIG_DFL};
  sigaction(signal, &action, NULL);
  if (info->si_code <= 0) raise(signal);
}

/* Call a handler with the signal mask that the kernel would have set for it. */
static void call_handler(const struct sigaction *next, int signal, siginfo_t *info, void *context) {
  sigset_t before, blocked = next->sa_mask, unblocked;
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  sigemptyset(&unblocked);
  sigaddset(&unblocked, signal);
  if (next->sa_flags & SA_NODEFER) pthread_sigmask(SIG_UNBLOCK, &unblocked, NULL);
  if (next->sa_flags & SA_SIGINFO)
    next->sa_sigaction(signal, info, context);
  else
    next->sa_handler(signal);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Hand on to the handler that was there before.  One that gives up may restore us and raise the signal again: that ends
 * the process. */
static void chain(const struct sigaction *next, int signal, siginfo_t *info, void *context) {
  bool is_default = next->sa_handler == SIG_DFL || next->sa_handler == SIG_IGN;
  bool again = chaining || (chained && info->si_code <= 0);
  if (is_default || again) {
    die(signal, info);
    return;
  }
  chaining = chained = true;
  call_handler(next, signal, info, context);
  chaining = false;
}

static void on_signal(int signal, siginfo_t *info, void *context) {
  if (handle(signal, info, context)) return;
  for (int i = 0; i < SIGNAL_COUNT; i++)
    if (SIGNALS[i] == signal) chain(&previous[i], signal, info, context);
}

void pe_signals_ensure(void) {
  for (int i = 0; i < SIGNAL_COUNT; i++) {
    struct sigaction current, action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGNALS[i], NULL, &current)) continue;
    if ((current.sa_flags & SA_SIGINFO) && current.sa_sigaction == on_signal) continue;
    previous[i] = current;
    sigaction(SIGNALS[i], &action, NULL);
  }
}

void pe_signals_thread(void) {
  stack_t stack = {.ss_sp = malloc(PE_ALTERNATE_STACK_BYTES), .ss_size = PE_ALTERNATE_STACK_BYTES};
  if (stack.ss_sp) sigaltstack(&stack, NULL);
}

static sigset_t blocked;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill_blocked(void) {
  static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP};
  sigfillset(&blocked);
  for (size_t i = 0; i < sizeof own / sizeof *own; i++) sigdelset(&blocked, own[i]);
}

const sigset_t *pe_signals_blocked(void) {
  pthread_once(&once, fill_blocked);
  return &blocked;
}

int pe_thread_start(pe_thread_function *function, void *argument) {
  sigset_t before;
  pthread_t thread;
  pthread_sigmask(SIG_SETMASK, pe_signals_blocked(), &before);
  int error = pthread_create(&thread, NULL, function, argument);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (!error) pthread_detach(thread);
  return error;
}
