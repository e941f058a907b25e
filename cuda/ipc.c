/* ipc.c: files that processes share, and the handles that name them. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "px_ipc.h"

enum { MAGIC = 0x70747869, NAME_BYTES = 64, SEALS = F_SEAL_SHRINK | F_SEAL_GROW };

/* What the bytes of a handle are. */
typedef struct name {
  uint32_t magic, kind;
  int32_t process, file;
  uint64_t inode, content;
} name;

_Static_assert(sizeof(name) <= sizeof(cudaIpcMemHandle_t), "a handle has room for a name");

static name name_of(const cudaIpcMemHandle_t *handle) {
  name out;
  memcpy(&out, handle, sizeof out);
  return out;
}

int px_ipc_create(uint64_t size) {
  int file = memfd_create("ptxemu", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0) return -1;
  if (size <= INT64_MAX && !ftruncate(file, (off_t)size) && !fcntl(file, F_ADD_SEALS, SEALS)) return file;
  close(file);
  return -1;
}

uint64_t px_ipc_number(int file) {
  struct stat status = {0};
  fstat(file, &status);
  return status.st_ino;
}

cudaIpcMemHandle_t px_ipc_handle(int kind, int file, uint64_t content) {
  cudaIpcMemHandle_t out = {{0}};
  const name made = {MAGIC, (uint32_t)kind, getpid(), file, px_ipc_number(file), content};
  memcpy(&out, &made, sizeof made);
  return out;
}

static bool is_sealed(int file, struct stat *status) {
  int seals = fcntl(file, F_GET_SEALS); /* other files have none */
  return seals >= 0 && (seals & SEALS) == SEALS && !fstat(file, status);
}

uint64_t px_ipc_size(int file) {
  struct stat status;
  return is_sealed(file, &status) ? (uint64_t)status.st_size : 0;
}

static bool is_named(int file, const name *wanted) {
  struct stat status;
  if (!is_sealed(file, &status)) return false;
  return status.st_ino == wanted->inode && wanted->content && wanted->content <= (uint64_t)status.st_size;
}

int px_ipc_open(int kind, const cudaIpcMemHandle_t *handle, uint64_t *content) {
  const name wanted = name_of(handle);
  char path[NAME_BYTES];
  if (wanted.magic != MAGIC || wanted.kind != (uint32_t)kind) return -1;
  snprintf(path, sizeof path, "/proc/%d/fd/%d", wanted.process, wanted.file);
  int file = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0) return -1;
  *content = wanted.content;
  if (is_named(file, &wanted)) return file;
  close(file);
  return -1;
}

bool px_ipc_is_own(const cudaIpcMemHandle_t *handle) { return name_of(handle).process == getpid(); }

uint64_t px_ipc_identity(const cudaIpcMemHandle_t *handle) { return name_of(handle).inode; }
