/* work.c: launches, copies, sets and functions of the host, before it is known when they come. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "px_stream.h"

static px_work *new_work(px_kind kind, size_t params) {
  px_work *work = calloc(1, sizeof *work + params);
  if (!work) return NULL;
  atomic_init(&work->owners, 1);
  work->kind = kind;
  return work;
}

px_work *px_work_new(px_kind kind) { return new_work(kind, 0); }

px_work *px_work_launch(const pe_start *start, px_kernel *kernel, const void *handle) {
  px_work *work = new_work(PX_LAUNCH, start->kernel->param_bytes);
  if (!work) return NULL;
  work->start = *start;
  work->handle = handle;
  work->kernel = kernel;
  work->launches = kernel->module->launches;
  if (start->pointers)
    pe_start_pack(start, work->params);
  else if (start->buffer)
    memcpy(work->params, start->buffer, start->kernel->param_bytes);
  work->start.pointers = NULL;
  work->start.buffer = work->params;
  work->start.buffer_size = start->kernel->param_bytes;
  pe_module_keep(start->module);
  pe_code_keep(start->code);
  return work;
}

px_work *px_work_event(px_kind kind, cudaEvent_t event) {
  px_work *work = px_work_new(kind);
  if (work) work->event = px_event_keep(event);
  return work;
}

px_work *px_work_block(px_kind kind, px_block *block) {
  px_work *work = px_work_new(kind);
  if (work)
    work->block = block;
  else
    px_block_release(block);
  return work;
}

px_work *px_work_keep(px_work *work) {
  atomic_fetch_add(&work->owners, 1);
  return work;
}

void px_work_release(px_work *work) {
  if (!work || atomic_fetch_sub(&work->owners, 1) != 1) return;
  if (work->kind == PX_LAUNCH) {
    pe_code_release(work->start.code);
    px_handles_lock();
    pe_module_release(work->start.module);
    px_handles_unlock();
  }
  if (work->event) px_event_release(work->event);
  px_block_release(work->block);
  free(work);
}

cudaError_t px_start_error(int error) {
  switch (error) {
    case 0: return cudaSuccess;
    case EINVAL: return cudaErrorInvalidConfiguration;
    case EDOM: return cudaErrorInvalidClusterSize;
    case ERANGE: return cudaErrorLaunchOutOfResources;
    case ENOSPC:
    case EFAULT: return cudaErrorInvalidValue;
    case ENOTSUP: return cudaErrorNotSupported;
    case ENOMEM: return cudaErrorMemoryAllocation;
    case E2BIG: return cudaErrorCooperativeLaunchTooLarge;
    default: return cudaErrorLaunchFailure;
  }
}
