/* ipc_event.c: events of several processes. What is known of one lies in a page that they share. */
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "core.h"
#include "px_ipc.h"
#include "px_runtime.h"
#include "px_stream.h"

enum { PATIENCE_NS = 20000000 };

/* The content of the file. */
typedef struct state {
  _Atomic uint64_t recorded, done; /* numbers of records */
  _Atomic uint32_t changes;        /* what waits sleeps here */
  _Atomic int32_t process;         /* that has recorded it last */
} state;

struct px_shared_event {
  int file;
  state *at;
};

static px_shared_event *map(int file) {
  px_shared_event *made = malloc(sizeof *made);
  state *at = made ? mmap(NULL, sizeof *at, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  if (at != MAP_FAILED) {
    *made = (px_shared_event){file, at};
    return made;
  }
  free(made);
  close(file);
  return NULL;
}

px_shared_event *px_shared_new(void) {
  int file = px_ipc_create(sizeof(state));
  return file < 0 ? NULL : map(file);
}

void px_shared_close(px_shared_event *event) {
  munmap(event->at, sizeof *event->at);
  close(event->file);
  free(event);
}

uint64_t px_shared_record(px_shared_event *event) {
  atomic_store(&event->at->process, getpid());
  return atomic_fetch_add(&event->at->recorded, 1) + 1;
}

uint64_t px_shared_last(const px_shared_event *event) { return atomic_load(&event->at->recorded); }

bool px_shared_is_done(const px_shared_event *event, uint64_t record) { return atomic_load(&event->at->done) >= record; }

void px_shared_end(px_shared_event *event, uint64_t record) {
  uint64_t done = atomic_load(&event->at->done);
  while (done < record && !atomic_compare_exchange_weak(&event->at->done, &done, record)) continue;
  atomic_fetch_add(&event->at->changes, 1);
  syscall(SYS_futex, &event->at->changes, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* Whether a process has ended, though its parent may not know yet. */
static bool has_ended(pid_t process) {
  int file = (int)syscall(SYS_pidfd_open, process, 0);
  if (file < 0) return errno == ESRCH;
  struct pollfd end = {.fd = file, .events = POLLIN};
  bool ended = poll(&end, 1, 0) == 1;
  close(file);
  return ended;
}

bool px_shared_await(px_shared_event *event, uint64_t record) {
  static const struct timespec patience = {.tv_nsec = PATIENCE_NS};
  pid_t process = atomic_load(&event->at->process);
  uint32_t changes = atomic_load(&event->at->changes);
  if (px_shared_is_done(event, record)) return true;
  syscall(SYS_futex, &event->at->changes, FUTEX_WAIT, changes, &patience, NULL, 0);
  return !has_ended(process) || px_shared_is_done(event, record);
}

/* ---- the API ---- */

PX_API cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *out, cudaEvent_t event) {
  PX_ENTER();
  PX_REQUIRE(out, cudaErrorInvalidValue);
  PX_REQUIRE(px_is_event(event) && event->shared, cudaErrorInvalidResourceHandle);
  *out = px_ipc_handle(PX_IPC_EVENT, event->shared->file, sizeof(state));
  return px_report(cudaSuccess);
}

PX_API cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *out, cudaIpcEventHandle_t handle) {
  uint64_t size;
  PX_ENTER();
  PX_REQUIRE(out, cudaErrorInvalidValue);
  PX_REQUIRE(!px_ipc_is_own(&handle), cudaErrorDeviceUninitialized);
  int file = px_ipc_open(PX_IPC_EVENT, &handle, &size);
  PX_REQUIRE(file >= 0, cudaErrorInvalidResourceHandle);
  if (size < sizeof(state)) {
    close(file);
    return px_report(cudaErrorInvalidResourceHandle);
  }
  px_shared_event *shared = map(file);
  PX_REQUIRE(shared, cudaErrorMemoryAllocation);
  return px_report(px_event_new(shared, PX_EVENT_INTERPROCESS | PX_EVENT_NO_TIMING, out));
}
