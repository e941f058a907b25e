/* virtual.c: addresses that programs reserve, and memory that they map there.
 *
 * Memory is a file without a name: it can be mapped at several addresses, and handed to other processes. It lives as long as one of its
 * handles, or a mapping.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "checked.h"
#include "driver.h"
#include "px_ipc.h"
#include "px_place.h"
#include "px_stream.h"

enum { POSIX_FILE = cudaMemHandleTypePosixFileDescriptor, HANDLE_TYPES = 15 };

struct px_physical {
  CUmemAllocationProp properties;
  uint64_t size;
  int file;
  unsigned handles, mappings;
  struct px_physical *next;
};

typedef struct px_physical physical;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static physical *all;
static unsigned ended; /* what has gone, in a call that has not told yet that it does not keep the device */

static pe_arena *arena(void) { return px_device_get()->parts.arena; }

static CUresult of_errno(int error) {
  return !error ? CUDA_SUCCESS : error == EINVAL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
}

/* ---- memory, with the lock held ---- */

static void forget(physical *memory) {
  physical **at = &all;
  while (*at != memory) at = &(*at)->next;
  *at = memory->next;
  if (memory->handles) px_live_remove(memory, PX_PHYSICAL);
  close(memory->file);
  free(memory);
}

static void end_if_unused(physical *memory) {
  if (memory->handles || memory->mappings) return;
  pe_arena_give(arena(), memory->size);
  forget(memory);
  ended++;
}

/* The memory of a handle, or NULL. */
static physical *of_handle(CUmemGenericAllocationHandle handle) {
  physical *memory = (physical *)(uintptr_t)handle;
  return px_is_live(memory, PX_PHYSICAL) ? memory : NULL;
}

static bool add_handle(physical *memory) {
  if (!memory->handles && !px_live_add(memory, PX_PHYSICAL)) return false;
  memory->handles++;
  return true;
}

static void unmapped(void *owner) {
  physical *memory = owner;
  memory->mappings--;
  end_if_unused(memory);
}

/* The arena is about to go. */
static void forget_all(void) {
  pthread_mutex_lock(&lock);
  while (all) forget(all);
  px_device_unkept();
  pthread_mutex_unlock(&lock);
}

/* Memory of a file, which it owns then; NULL: the device has not enough. */
static physical *new_memory(int file, uint64_t size, const CUmemAllocationProp *properties) {
  physical *made = file < 0 ? NULL : calloc(1, sizeof *made);
  bool counted = made && pe_arena_take(arena(), size);
  px_at_reset(forget_all);
  pthread_mutex_lock(&lock);
  if (made) *made = (physical){.properties = *properties, .size = size, .file = file};
  bool fits = counted && add_handle(made);
  if (fits) {
    made->next = all;
    all = made;
    px_device_keep();
  }
  pthread_mutex_unlock(&lock);
  if (fits) return made;
  if (counted) pe_arena_give(arena(), size);
  if (file >= 0) close(file);
  free(made);
  return NULL;
}

/* ---- what there can be ---- */

static CUresult check_properties(const CUmemAllocationProp *wanted) {
  CU_REQUIRE(wanted && wanted->type == cudaMemAllocationTypePinned, CUDA_ERROR_INVALID_VALUE);
  cudaError_t error = px_place_error(&wanted->location);
  CU_REQUIRE(!error, cu_result(error));
  CU_REQUIRE(!(wanted->requestedHandleTypes & ~HANDLE_TYPES), CUDA_ERROR_INVALID_VALUE);
  return wanted->requestedHandleTypes & ~POSIX_FILE ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

static bool is_whole(uint64_t size) { return size && size % PE_MAP_UNIT == 0; }

PX_API CUresult cuMemGetAllocationGranularity(size_t *out, const CUmemAllocationProp *properties, int option) {
  CU_ENTER_ANY();
  CU_REQUIRE(out && (option == 0 || option == 1), CUDA_ERROR_INVALID_VALUE);
  CUresult error = check_properties(properties);
  if (!error) *out = PE_MAP_UNIT;
  return error;
}

/* ---- memory ---- */

PX_API CUresult cuMemCreate(CUmemGenericAllocationHandle *out, size_t size, const CUmemAllocationProp *properties,
                            unsigned long long flags) {
  CU_ENTER_ANY();
  CU_REQUIRE(out && is_whole(size) && !flags, CUDA_ERROR_INVALID_VALUE);
  CUresult error = check_properties(properties);
  CU_REQUIRE(!error, error);
  physical *made = new_memory(px_ipc_create(size), size, properties);
  CU_REQUIRE(made, CUDA_ERROR_OUT_OF_MEMORY);
  *out = (uintptr_t)made;
  return CUDA_SUCCESS;
}

static CUresult release(CUmemGenericAllocationHandle handle) {
  CU_ENTER_ANY();
  pthread_mutex_lock(&lock);
  physical *memory = of_handle(handle);
  if (memory && --memory->handles == 0) px_live_remove(memory, PX_PHYSICAL);
  if (memory) end_if_unused(memory);
  pthread_mutex_unlock(&lock);
  return memory ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* The end of a call behind which something may keep the device no more. */
static CUresult left(CUresult error) {
  pthread_mutex_lock(&lock);
  unsigned times = ended;
  ended = 0;
  pthread_mutex_unlock(&lock);
  px_device_unkeep(times);
  return error;
}

PX_API CUresult cuMemRelease(CUmemGenericAllocationHandle handle) { return left(release(handle)); }

PX_API CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *out, void *address) {
  CU_ENTER_ANY();
  CU_REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
  pthread_mutex_lock(&lock);
  physical *memory = pe_arena_mapping_owner(arena(), (uintptr_t)address, &(uint32_t){0});
  CUresult error = !memory ? CUDA_ERROR_INVALID_VALUE : add_handle(memory) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
  if (!error) *out = (uintptr_t)memory;
  pthread_mutex_unlock(&lock);
  return error;
}

PX_API CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *out, CUmemGenericAllocationHandle handle) {
  CU_ENTER_ANY();
  CU_REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
  pthread_mutex_lock(&lock);
  const physical *memory = of_handle(handle);
  if (memory) *out = memory->properties;
  pthread_mutex_unlock(&lock);
  return memory ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- other processes ---- */

/* A file of the program's own, which is the memory's. */
PX_API CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle, int type,
                                             unsigned long long flags) {
  CU_ENTER_ANY();
  CU_REQUIRE(out && !flags, CUDA_ERROR_INVALID_VALUE);
  pthread_mutex_lock(&lock);
  const physical *memory = of_handle(handle);
  bool allowed = memory && memory->properties.requestedHandleTypes & type && type == POSIX_FILE;
  int file = allowed ? fcntl(memory->file, F_DUPFD_CLOEXEC, 0) : -1;
  pthread_mutex_unlock(&lock);
  CU_REQUIRE(allowed, CUDA_ERROR_INVALID_VALUE);
  CU_REQUIRE(file >= 0, CUDA_ERROR_OUT_OF_MEMORY);
  pe_arena_share(arena());
  memcpy(out, &file, sizeof file);
  return CUDA_SUCCESS;
}

PX_API CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *out, void *handle, int type) {
  static const CUmemAllocationProp properties = {
    .type = cudaMemAllocationTypePinned, .requestedHandleTypes = POSIX_FILE, .location = {cudaMemLocationTypeDevice, 0}};
  CU_ENTER_ANY();
  CU_REQUIRE(out && type == POSIX_FILE && (uintptr_t)handle <= INT32_MAX, CUDA_ERROR_INVALID_VALUE);
  int file = (int)(uintptr_t)handle;
  uint64_t size = px_ipc_size(file);
  CU_REQUIRE(is_whole(size), CUDA_ERROR_INVALID_VALUE);
  physical *made = new_memory(fcntl(file, F_DUPFD_CLOEXEC, 0), size, &properties);
  CU_REQUIRE(made, CUDA_ERROR_OUT_OF_MEMORY);
  pe_arena_share(arena());
  *out = (uintptr_t)made;
  return CUDA_SUCCESS;
}

/* ---- addresses ---- */

/* Where they are to begin is a wish that is not granted. */
PX_API CUresult cuMemAddressReserve(CUdeviceptr *out, size_t size, size_t alignment, CUdeviceptr wish,
                                    unsigned long long flags) {
  (void)wish;
  CU_ENTER_ANY();
  CU_REQUIRE(out && is_whole(size) && !(alignment & (alignment - 1)) && !flags, CUDA_ERROR_INVALID_VALUE);
  uint64_t address = pe_arena_reserve(arena(), size, alignment);
  CU_REQUIRE(address, CUDA_ERROR_OUT_OF_MEMORY);
  px_device_keep();
  *out = address;
  return CUDA_SUCCESS;
}

static CUresult unreserve(CUdeviceptr address, size_t size) {
  CU_ENTER_ANY();
  int error = pe_arena_unreserve(arena(), address, size);
  pthread_mutex_lock(&lock);
  ended += !error;
  pthread_mutex_unlock(&lock);
  return of_errno(error);
}

PX_API CUresult cuMemAddressFree(CUdeviceptr address, size_t size) { return left(unreserve(address, size)); }

PX_API CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                         unsigned long long flags) {
  CU_ENTER_ANY();
  CU_REQUIRE(is_whole(size) && offset % PE_MAP_UNIT == 0 && !flags, CUDA_ERROR_INVALID_VALUE);
  pthread_mutex_lock(&lock);
  physical *memory = of_handle(handle);
  bool fits = memory && pe_within(offset, size, memory->size);
  int error = fits ? pe_arena_map(arena(), address, size, memory->file, offset, memory) : EINVAL;
  if (!error) memory->mappings++;
  pthread_mutex_unlock(&lock);
  return of_errno(error);
}

/* Once all is done that may touch it. */
static CUresult unmap(CUdeviceptr address, size_t size) {
  CU_ENTER_ANY();
  cudaError_t late = px_wait_all();
  CU_REQUIRE(!late, cu_result(late));
  pthread_mutex_lock(&lock);
  int error = pe_arena_unmap(arena(), address, size, unmapped);
  pthread_mutex_unlock(&lock);
  return of_errno(error);
}

PX_API CUresult cuMemUnmap(CUdeviceptr address, size_t size) { return left(unmap(address, size)); }

/* ---- what may be done there ---- */

/* The device and the host have the same pages: what one of them is allowed both are. */
PX_API CUresult cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc *wanted, size_t count) {
  uint32_t access = 0;
  CU_ENTER_ANY();
  CU_REQUIRE(wanted && count, CUDA_ERROR_INVALID_VALUE);
  for (size_t i = 0; i < count; i++) {
    const CUmemAccessDesc *one = &wanted[i];
    bool known = one->flags == 0 || one->flags == PE_MAP_READ || one->flags == (PE_MAP_READ | PE_MAP_WRITE);
    CU_REQUIRE(known, CUDA_ERROR_INVALID_VALUE);
    cudaError_t error = px_place_error(&one->location);
    CU_REQUIRE(!error, cu_result(error));
    access |= (uint32_t)one->flags;
  }
  return of_errno(pe_arena_protect(arena(), address, size, access));
}

PX_API CUresult cuMemGetAccess(unsigned long long *out, const cudaMemLocation *location, CUdeviceptr address) {
  uint32_t access;
  CU_ENTER_ANY();
  CU_REQUIRE(out && location, CUDA_ERROR_INVALID_VALUE);
  cudaError_t error = px_place_error(location);
  CU_REQUIRE(!error, cu_result(error));
  CU_REQUIRE(pe_arena_mapping_owner(arena(), address, &access), CUDA_ERROR_INVALID_VALUE);
  *out = access;
  return CUDA_SUCCESS;
}
