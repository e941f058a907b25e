/* check.c: the checkers of a program, as PTXEMU_CHECK says.
 *
 * Findings are told when the program ends, by the compile server, which knows the lines of programs. What was found in a module's kernels
 * goes there when the module does: nobody knows its text afterwards.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "check.h"
#include "core.h"
#include "px_check.h"
#include "px_module.h"
#include "px_stream.h"

enum { MOST_AT_ONCE = 64, DEFAULT_EXIT = 5, MOST_EXIT = 255 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all below */
static pe_checker *checker;                              /* of the device, while there is one */
static uint32_t checks;                                  /* what was ever looked for */
static px_module *modules;                               /* those that are loaded */
static pe_checked total;                                 /* of devices that are gone */
static pe_finding *untold;                               /* findings that the server has not been given */
static size_t untold_count, untold_room;
static pid_t owner;
static int status; /* of the program */
static uint32_t allowed = UINT32_MAX;
static bool decided; /* the server and all devices look for the same */

/* ---- what is wanted ---- */

static void say_once(const char *format, const char *text, int size) {
  static atomic_flag said = ATOMIC_FLAG_INIT;
  if (!atomic_flag_test_and_set(&said)) fprintf(stderr, format, size, text);
}

static bool is_decided(uint32_t *wanted) {
  pthread_mutex_lock(&lock);
  bool known = decided;
  *wanted = checks;
  pthread_mutex_unlock(&lock);
  return known;
}

void px_checks_allow(uint32_t these) { allowed = these; }

bool px_checks_wanted(bool host_memory, uint32_t *wanted) {
  const char *given = getenv("PTXEMU_CHECK");
  size_t size;
  if (is_decided(wanted) || !given) return true;
  const char *wrong = pe_checks_parse(given, wanted, &size);
  if (wrong) say_once("ptxemu: PTXEMU_CHECK: there is no checker '%.*s'\n", wrong, (int)size);
  if (*wanted & ~allowed)
    say_once("ptxemu: PTXEMU_CHECK: nothing is known of %.*s, on which kernels work: only sync and leak are checked\n",
             "the program's memory", (int)strlen("the program's memory"));
  *wanted &= allowed;
  bool excluded = host_memory && *wanted;
  if (excluded)
    say_once("ptxemu: %.*s is set, under which nothing is known of allocations: there can be no PTXEMU_CHECK\n",
             "PTXEMU_HOST_MEMORY", (int)strlen("PTXEMU_HOST_MEMORY"));
  return !wrong && !excluded;
}

const char *px_checks_named(void) {
  static char names[64];
  uint32_t count;
  const pe_check_kind *kinds = pe_check_kinds(&count);
  names[0] = 0;
  for (uint32_t i = 0; i < count; i++)
    if (checks & kinds[i].code)
      snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", names[0] ? "," : "", kinds[i].name);
  return names;
}

void px_check_tier(const char *tier, char *out, size_t size) {
  const char *observed = pe_checks_observed(checks);
  snprintf(out, size, observed[0] ? "%s observed, %s" : "%s%s", observed, tier);
}

/* ---- findings ---- */

/* Take what was found. With the lock held. */
static void take(void) {
  pe_finding found;
  while (checker && pe_checker_take(checker, &found)) {
    if (untold_count == untold_room) {
      size_t room = 2 * untold_room + 16;
      pe_finding *grown = realloc(untold, room * sizeof *grown);
      if (!grown) break;
      untold = grown;
      untold_room = room;
    }
    untold[untold_count++] = found;
  }
}

static bool is_code_of(const px_kernel *kernel, uint64_t address) {
  for (unsigned i = 0; i < PX_CODES; i++)
    if (kernel->codes[i] && pe_code_address(kernel->codes[i]) == address) return true;
  return false;
}

/* Give the server what was found in a kernel; what it does not take stays. With the lock held. */
static void tell_kernel(const px_kernel *kernel) {
  pe_finding part[MOST_AT_ONCE];
  size_t count = 0, kept = 0;
  for (size_t i = 0; i < untold_count; i++) {
    if (count < MOST_AT_ONCE && is_code_of(kernel, untold[i].kernel))
      part[count++] = untold[i];
    else
      untold[kept++] = untold[i];
  }
  untold_count = kept;
  if (count && px_server_found(&kernel->module->image, kernel->name, part, count * sizeof *part)) {
    if (count == MOST_AT_ONCE) tell_kernel(kernel);
    return;
  }
  memcpy(untold + kept, part, count * sizeof *part);
  untold_count += count;
}

/* What a kernel has left, which is found with other things. */
static void find_leaks(const px_kernel *kernel) {
  for (unsigned i = 0; i < PX_CODES; i++) {
    if (!kernel->codes[i]) continue;
    uint64_t address = pe_code_address(kernel->codes[i]);
    pe_checker_find_leaks(checker, address);
    take();
    pe_checker_forget_leaks(checker, address);
  }
}

static void tell_module(const px_module *module) {
  for (uint64_t i = 0; checker && i < module->count; i++) find_leaks(&module->kernels[i]);
  take();
  for (uint64_t i = 0; untold_count && i < module->count; i++) tell_kernel(&module->kernels[i]);
}

void px_check_opened(px_module *module) {
  pthread_mutex_lock(&lock);
  if (checker) {
    module->checked = true;
    module->next = modules;
    modules = module;
  }
  pthread_mutex_unlock(&lock);
}

void px_check_closing(px_module *module) {
  if (!module->checked) return;
  px_wait_all(); /* its kernels may run; where this may not wait, what they will have found is told without lines */
  pthread_mutex_lock(&lock);
  tell_module(module);
  px_module **at = &modules;
  while (*at != module) at = &(*at)->next;
  *at = module->next;
  pthread_mutex_unlock(&lock);
}

/* ---- the end of the program ---- */

/* Before the destructors of the program, which may free what it has allocated. */
static void program_ends(int code, void *unused) {
  (void)unused;
  status = code;
  if (owner == getpid()) px_wait_all();
}

static int exit_code(void) {
  const char *given = getenv("PTXEMU_CHECK_EXIT");
  long code = given ? strtol(given, NULL, 10) : DEFAULT_EXIT;
  return code >= 0 && code <= MOST_EXIT ? (int)code : DEFAULT_EXIT;
}

static void add_counts(void) {
  pe_checked counts;
  const char *kind;
  if (!checker) return;
  for (unsigned i = 0; (kind = px_memory_kind(i)); i++) pe_checker_find_kept(checker, kind);
  take();
  pe_checker_counts(checker, &counts);
  total.launches += counts.launches;
  total.lost += counts.lost;
  total.dropped += counts.dropped;
}

/* Say what the server cannot: whether any of it is wrong. */
static bool say_untold(void) {
  bool any = false;
  for (size_t i = 0; i < untold_count; i++) {
    fprintf(stderr, "ptxemu: %s%s\n", untold[i].note ? "note: " : "", untold[i].text);
    any |= !untold[i].note;
  }
  return any;
}

/* Give the server the rest: whether anything was told. */
static bool tell_rest(void) {
  int told = px_server_report(&total, sizeof total, untold, untold_count * sizeof *untold);
  return told < 0 ? say_untold() : told != 0;
}

__attribute__((destructor)) static void report(void) {
  if (!checks || owner != getpid()) return;
  pthread_mutex_lock(&lock);
  add_counts();
  for (const px_module *module = modules; module; module = module->next) tell_module(module);
  fflush(stdout);
  bool any = tell_rest();
  pthread_mutex_unlock(&lock);
  if (!any || status || !exit_code()) return;
  fflush(NULL);
  _exit(exit_code());
}

/* ---- life ---- */

bool px_check_begin(pe_arena *arena, uint32_t wanted) {
  pthread_mutex_lock(&lock);
  decided = true;
  if (wanted) {
    checker = pe_checker_create(arena, wanted);
    checks = wanted;
    if (!owner) on_exit(program_ends, NULL);
    owner = getpid();
  }
  bool begun = !wanted || checker;
  pthread_mutex_unlock(&lock);
  return begun;
}

void px_check_end(void) {
  pthread_mutex_lock(&lock);
  add_counts();
  pe_checker_destroy(checker);
  checker = NULL;
  pthread_mutex_unlock(&lock);
}

/* ---- memory of the host ---- */

void px_check_registered(uint64_t address, uint64_t size) {
  if (checker) pe_checker_allow(checker, address, size, "registered memory of the host");
}

void px_check_unregistered(uint64_t address) {
  if (checker) pe_checker_forbid(checker, address);
}
