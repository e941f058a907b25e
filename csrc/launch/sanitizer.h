/* sanitizer.h: tells AddressSanitizer and ThreadSanitizer about switches of stacks; empty in ordinary builds. */
#ifndef PTXEMU_SANITIZER_H
#define PTXEMU_SANITIZER_H
#include <stdbool.h>
#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>

typedef struct pe_sanitizer {
  void *own, *home;
  const void *home_stack;
  size_t home_size;
} pe_sanitizer;

static inline void pe_sanitizer_abandon(void *stack, size_t size) { __asan_unpoison_memory_region(stack, size); }
static inline void pe_sanitizer_start(pe_sanitizer *s) { s->own = NULL; }
static inline void pe_sanitizer_destroy(pe_sanitizer *s) { (void)s; }
static inline void pe_sanitizer_enter(pe_sanitizer *s, const void *stack, size_t size) {
  __sanitizer_start_switch_fiber(&s->home, stack, size);
}
static inline void pe_sanitizer_arrived(pe_sanitizer *s) {
  __sanitizer_finish_switch_fiber(s->own, &s->home_stack, &s->home_size);
}
static inline void pe_sanitizer_exit(pe_sanitizer *s, bool for_good) {
  __sanitizer_start_switch_fiber(for_good ? NULL : &s->own, s->home_stack, s->home_size);
}
static inline void pe_sanitizer_returned(pe_sanitizer *s) { __sanitizer_finish_switch_fiber(s->home, NULL, NULL); }

#elif defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>

typedef struct pe_sanitizer {
  void *own, *home;
} pe_sanitizer;

static inline void pe_sanitizer_abandon(void *stack, size_t size) { (void)stack, (void)size; }
static inline void pe_sanitizer_destroy(pe_sanitizer *s) {
  if (s->own) __tsan_destroy_fiber(s->own);
  s->own = NULL;
}
static inline void pe_sanitizer_start(pe_sanitizer *s) {
  pe_sanitizer_destroy(s);
  s->own = __tsan_create_fiber(0);
}
static inline void pe_sanitizer_enter(pe_sanitizer *s, const void *stack, size_t size) {
  (void)stack, (void)size;
  s->home = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(s->own, 0);
}
static inline void pe_sanitizer_arrived(pe_sanitizer *s) { (void)s; }
static inline void pe_sanitizer_exit(pe_sanitizer *s, bool for_good) {
  (void)for_good;
  __tsan_switch_to_fiber(s->home, 0);
}
static inline void pe_sanitizer_returned(pe_sanitizer *s) { (void)s; }

#else

typedef struct pe_sanitizer {
  char unused;
} pe_sanitizer;

static inline void pe_sanitizer_abandon(void *stack, size_t size) { (void)stack, (void)size; }
static inline void pe_sanitizer_start(pe_sanitizer *s) { (void)s; }
static inline void pe_sanitizer_destroy(pe_sanitizer *s) { (void)s; }
static inline void pe_sanitizer_enter(pe_sanitizer *s, const void *stack, size_t size) { (void)s, (void)stack, (void)size; }
static inline void pe_sanitizer_arrived(pe_sanitizer *s) { (void)s; }
static inline void pe_sanitizer_exit(pe_sanitizer *s, bool for_good) { (void)s, (void)for_good; }
static inline void pe_sanitizer_returned(pe_sanitizer *s) { (void)s; }

#endif
#endif
