/* guest.c: a thread of the program becomes one that kernels run on, for a while. */
#include "guest.h"
#include <pthread.h>
#include <stdlib.h>
#include "signals.h"

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool have_key;

/* The thread ends: its alternate stack is ours, or somebody has replaced it. */
static void forget(void *memory) {
  stack_t now, none = {.ss_flags = SS_DISABLE};
  if (!sigaltstack(NULL, &now) && now.ss_sp == memory) sigaltstack(&none, NULL);
  free(memory);
}

static void make_key(void) { have_key = !pthread_key_create(&key, forget); }

/* This thread's alternate stack, made at the first call; NULL: there is no memory. */
static void *own_stack(void) {
  pthread_once(&once, make_key);
  if (!have_key) return NULL;
  void *memory = pthread_getspecific(key);
  if (memory) return memory;
  memory = malloc(PE_ALTERNATE_STACK_BYTES);
  if (memory && !pthread_setspecific(key, memory)) return memory;
  free(memory);
  return NULL;
}

/* A thread that has no alternate stack keeps ours; one that has a small one gets it back. */
static bool take_stack(pe_guest *guest) {
  guest->stack_taken = false;
  if (sigaltstack(NULL, &guest->stack) || guest->stack.ss_flags & SS_ONSTACK) return false;
  bool disabled = guest->stack.ss_flags & SS_DISABLE;
  if (!disabled && guest->stack.ss_size >= PE_ALTERNATE_STACK_BYTES) return true;
  stack_t ours = {.ss_sp = own_stack(), .ss_size = PE_ALTERNATE_STACK_BYTES};
  if (!ours.ss_sp || sigaltstack(&ours, NULL)) return false;
  guest->stack_taken = !disabled;
  return true;
}

bool pe_guest_enter(pe_guest *guest) {
  if (!take_stack(guest)) return false;
  pthread_sigmask(SIG_SETMASK, pe_signals_blocked(), &guest->mask);
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &guest->cancel);
  fegetenv(&guest->environment);
  return true;
}

void pe_guest_leave(pe_guest *guest) {
  int cancel;
  fesetenv(&guest->environment);
  pthread_setcancelstate(guest->cancel, &cancel);
  if (guest->stack_taken) sigaltstack(&guest->stack, NULL);
  pthread_sigmask(SIG_SETMASK, &guest->mask, NULL);
}
