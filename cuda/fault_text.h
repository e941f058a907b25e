/* fault_text.h: a fault in words. */
#ifndef PTXEMU_CUDA_FAULT_TEXT_H
#define PTXEMU_CUDA_FAULT_TEXT_H
#include "core.h"
#include "px_module.h"

/* Say on stderr what happened; the error that CUDA has for it. */
cudaError_t px_say_fault(const px_kernel *kernel, const pe_record *record);

/* The text of the last fault, or NULL. */
PX_API const char *ptxemu_last_fault(void);

#endif
