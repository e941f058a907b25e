/* fault_text.h: a fault in words. */
#ifndef PTXEMU_CUDA_FAULT_TEXT_H
#define PTXEMU_CUDA_FAULT_TEXT_H
#include "core.h"

/* Say on stderr what happened in a launch that has ended with a fault of a kind; the error that CUDA has for it. */
cudaError_t px_say_fault(const pe_launch *launch, uint32_t kind);

/* The text of the last fault, or NULL. */
PX_API const char *ptxemu_last_fault(void);

#endif
