/* kinds.c: the checkers by name. */
#include <stdbool.h>
#include <string.h>
#include "check.h"

static const pe_check_kind kinds[] = {
  {"memory", PE_CHECK_MEMORY}, {"sync", PE_CHECK_SYNC}, {"race", PE_CHECK_RACE},
  {"leak", PE_CHECK_LEAK},     {"init", PE_CHECK_INIT},
};

enum { KINDS = sizeof kinds / sizeof *kinds };

const pe_check_kind *pe_check_kinds(uint32_t *count) {
  *count = KINDS;
  return kinds;
}

const char *pe_checks_observed(uint32_t checks) {
  bool stamps = checks & PE_CHECK_RACE, members = checks & PE_CHECK_SYNC;
  if (checks & PE_CHECK_INIT) return stamps ? "blanks, stamps" : "blanks";
  if (checks & PE_CHECK_MEMORY) return stamps ? "strays, stamps" : members ? "strays, members" : "strays";
  if (stamps) return "stamps";
  return members ? "members" : "";
}

static bool is_named(const char *name, const char *given, size_t size) {
  return strlen(name) == size && !strncmp(name, given, size);
}

/* The checkers that a name stands for, 0: none. */
static uint32_t checks_named(const char *given, size_t size) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < KINDS; i++)
    if (is_named(kinds[i].name, given, size) || is_named("all", given, size)) found |= kinds[i].code;
  return found;
}

const char *pe_checks_parse(const char *names, uint32_t *checks, size_t *size) {
  *checks = 0;
  for (const char *at = names;; at += *size + 1) {
    at += strspn(at, " ");
    *size = strcspn(at, ",");
    size_t length = *size;
    while (length && at[length - 1] == ' ') length--;
    uint32_t found = checks_named(at, length);
    *checks |= found;
    if (length && !found) return *size = length, at;
    if (!at[*size]) return NULL;
  }
}
