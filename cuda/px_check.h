/* px_check.h: the checkers of a program, as PTXEMU_CHECK says (docs/checkers.md), and what the compile server tells of their findings. */
#ifndef PTXEMU_CUDA_CHECK_H
#define PTXEMU_CUDA_CHECK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "host.h"

struct px_module;

/* The checkers that PTXEMU_CHECK names; false: none can be, which is said on stderr, once. */
bool px_checks_wanted(bool host_memory, uint32_t *checks);

/* Kernels work on memory of which nothing is known: these alone are looked for, which is said on stderr if others are wanted. Before
 * the device starts. */
void px_checks_allow(uint32_t checks);

/* Their names, with commas between them. */
const char *px_checks_named(void);

/* Watch the device from its start on; false: there is no memory. Its end: before its memory is given back. */
bool px_check_begin(pe_arena *arena, uint32_t checks);
void px_check_end(void);

/* A module is there whose kernels may run, and is about to go. */
void px_check_opened(struct px_module *module);
void px_check_closing(struct px_module *module);

/* Memory of the host that kernels may touch from now on, or no more. */
void px_check_registered(uint64_t address, uint64_t size);
void px_check_unregistered(uint64_t address);

/* What the cache calls code of a tier that runs under these checkers (ptxemu/driver/program.py). */
void px_check_tier(const char *tier, char *out, size_t size);

#endif
