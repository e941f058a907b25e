/* dialects.h: the functions of dialects that JIT code may call, for the table of symbols. */
#ifndef PTXEMU_DIALECTS_H
#define PTXEMU_DIALECTS_H
#include "ctm.h"

#define PE_DIALECT_SYMBOLS(SYMBOL) SYMBOL(pe_ctm_load), SYMBOL(pe_ctm_store), SYMBOL(pe_ctm_umrt), SYMBOL(pe_ctm_test)

#endif
