/* check.h: checkers of launches: observers that look for what programs do wrong (docs/checkers.md). */
#ifndef PTXEMU_CHECK_H
#define PTXEMU_CHECK_H
#include "host.h"

#pragma GCC visibility push(default)
/* CDEF BEGIN */
typedef struct pe_checker pe_checker;

/* The checkers, as a set. */
enum { PE_CHECK_MEMORY = 1, PE_CHECK_RACE = 2, PE_CHECK_SYNC = 4, PE_CHECK_LEAK = 8, PE_CHECK_INIT = 16 };

/* What users call them, in the order in which they are told. */
typedef struct pe_check_kind {
  const char *name;
  uint32_t code;
} pe_check_kind;
const pe_check_kind *pe_check_kinds(uint32_t *count);

/* What code must tell of its accesses that runs under a set of them: "", "members" ... (ptxemu/ir/observed.py). */
const char *pe_checks_observed(uint32_t checks);

/* The set of a list of names with commas between them; "all" are all of them. NULL, or the name that there is not, `size` bytes long. */
const char *pe_checks_parse(const char *names, uint32_t *checks, size_t *size);

/* A thread of a launch. */
typedef struct pe_thread_place {
  uint32_t ctaid[3], tid[3];
  uint32_t warp;
} pe_thread_place;

enum { PE_MAX_FINDING = 320 }; /* bytes of its text, with a zero byte */

/* What was found at one place of a program, as the first of its threads did it: `count` lanes did. */
typedef struct pe_finding {
  uint32_t check;     /* PE_CHECK_... */
  uint32_t what;      /* of that checker's findings: those at one place are told apart by it */
  uint32_t pos;       /* source offset */
  uint32_t note;      /* nonzero: nothing is wrong with it, but who reads the program should know */
  uint32_t other_pos; /* and that of another access that takes part, by thread `other`; or PE_NO_POS */
  pe_thread_place other;
  pe_thread_place thread;
  uint64_t kernel; /* address of its code */
  uint64_t launch; /* its number */
  uint64_t count;
  char text[PE_MAX_FINDING];
} pe_finding;

/* What was checked. */
typedef struct pe_checked {
  uint64_t launches;
  uint64_t lost;    /* accesses that were not checked, for there was no memory */
  uint64_t dropped; /* findings at places beyond the first PE_MAX_PLACES, until they are taken */
} pe_checked;

enum { PE_MAX_PLACES = 1000 };

/* Watch an arena from now on, until the checker is destroyed: nothing may use the arena then. NULL: there is no memory. */
pe_checker *pe_checker_create(pe_arena *arena, uint32_t checks);
void pe_checker_destroy(pe_checker *checker);

/* Memory outside of the arena that kernels may touch, and may touch no more: its first address. */
void pe_checker_allow(pe_checker *checker, uint64_t address, uint64_t size, const char *name);
void pe_checker_forbid(pe_checker *checker, uint64_t address);

/* Find the blocks that kernels have allocated and nobody has freed: of one kernel, by the address of its code, or of all if it is 0.
 * They are found each time, until they are forgotten. */
void pe_checker_find_leaks(pe_checker *checker, uint64_t kernel);
void pe_checker_forget_leaks(pe_checker *checker, uint64_t kernel);

/* The same of what the host has allocated: those allocations that are called "allocation 3 of cudaMalloc", of one kind. */
void pe_checker_find_kept(pe_checker *checker, const char *kind);

/* Take the oldest finding. 0: there is none. */
int pe_checker_take(pe_checker *checker, pe_finding *out);
void pe_checker_counts(pe_checker *checker, pe_checked *out);
/* CDEF END */
#pragma GCC visibility pop

#endif
