/* px_ipc.h: what processes share: files without a name, each of which holds memory, or the state of an event.
 *
 * A handle is 64 bytes that a program sends to another process in its own way: it names a file of a process by numbers. Whoever opens it
 * makes sure that it is the file that was meant, and that it cannot become shorter.
 */
#ifndef PTXEMU_CUDA_IPC_H
#define PTXEMU_CUDA_IPC_H
#include <stdbool.h>
#include <stdint.h>
#include "abi.h"

/* ---- ipc.c: files and handles ---- */

enum { PX_IPC_MEMORY = 1, PX_IPC_EVENT };

/* A new file; -1: there is none. */
int px_ipc_create(uint64_t size);

/* The size of a file that cannot become shorter or longer; 0: it is another one. */
uint64_t px_ipc_size(int file);

/* What is shared in a file; `content`: what of it is of use, in bytes. */
cudaIpcMemHandle_t px_ipc_handle(int kind, int file, uint64_t content);

/* The file that a handle of a kind names, and its content; -1: there is no such file any more, or it is another one. */
int px_ipc_open(int kind, const cudaIpcMemHandle_t *handle, uint64_t *content);

/* Whether a handle was made by this process. */
bool px_ipc_is_own(const cudaIpcMemHandle_t *handle);

/* What tells the file of a handle from all others. */
uint64_t px_ipc_identity(const cudaIpcMemHandle_t *handle);

/* ---- ipc_memory.c ---- */

extern const char px_memory_imported[]; /* what memory of another process's pool was made as */

/* The handle of an allocation; memory of a handle, made as a kind; the end of one such time. */
cudaError_t px_ipc_give(const void *pointer, cudaIpcMemHandle_t *out);
cudaError_t px_ipc_take(const cudaIpcMemHandle_t *handle, const char *kind, void **out);
bool px_ipc_close(const void *pointer);

/* What tells a file from all others. */
uint64_t px_ipc_number(int file);

/* An allocation is gone. */
void px_ipc_freed(uint64_t address);

/* ---- ipc_event.c: how far an event is, in all processes ---- */

typedef struct px_shared_event px_shared_event;

px_shared_event *px_shared_new(void); /* or NULL */
void px_shared_close(px_shared_event *event);

/* Records have numbers. The next one; the last one so far, 0: there is none; one is done, and all before it. */
uint64_t px_shared_record(px_shared_event *event);
uint64_t px_shared_last(const px_shared_event *event);
void px_shared_end(px_shared_event *event, uint64_t record);
bool px_shared_is_done(const px_shared_event *event, uint64_t record);

/* Wait until one is done, but for a moment only. false: it is not, and never will be, as the process is gone that has made the last one. */
bool px_shared_await(px_shared_event *event, uint64_t record);

#endif
