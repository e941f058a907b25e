/* px_symbols.h: compiled kernels told to perf and gdb, as PTXEMU_SYMBOLS says (docs/profiling.md). */
#ifndef PTXEMU_CUDA_SYMBOLS_H
#define PTXEMU_CUDA_SYMBOLS_H
#include <stdbool.h>
#include "code.h"

/* Whether any tool is to be told. Code then knows its lines, and has another key (ptxemu/driver/program.py). */
bool px_symbols_wanted(void);

/* Tell of the code of a kernel that has been loaded. What hinders is said on stderr, once. */
void px_symbols_tell(const char *kernel, const char *key, const pe_code *code);

#endif
