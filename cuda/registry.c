/* registry.c: registration of fat binaries, kernels and variables, which are loaded at their first use. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core.h"
#include "linked.h"
#include "registry.h"

enum { FAT_BINARY = 0xba55ed50 };

struct px_fat {
  px_fat *next;
  const void *image;
  size_t size;      /* 0: it is no fat binary */
  px_linked linked; /* the image, if it was put together here */
  px_module *module;
  cudaError_t error; /* of the attempt to load it */
  bool loading, loaded;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t settled = PTHREAD_COND_INITIALIZER;
static px_fat *fats;

/* Open addressing; a power of two, never full. */
static px_function **table;
static size_t room, used;

static size_t slot_of(const void *host) {
  size_t at = ((uintptr_t)host >> 3) * 0x9e3779b97f4a7c15ull >> 20 & (room - 1);
  while (table[at] && table[at]->host != host) at = (at + 1) & (room - 1);
  return at;
}

static bool grow(void) {
  if (used * 2 < room) return true;
  size_t old_room = room;
  px_function **old = table, **grown = calloc(room ? room * 2 : 64, sizeof *grown);
  if (!grown) return false;
  room = room ? room * 2 : 64;
  table = grown;
  for (size_t i = 0; i < old_room; i++)
    if (old[i]) table[slot_of(old[i]->host)] = old[i];
  free(old);
  return true;
}

static void add(px_function wanted) {
  pthread_mutex_lock(&lock);
  px_function *made = grow() ? malloc(sizeof *made) : NULL;
  if (made) {
    *made = wanted;
    px_function **place = &table[slot_of(wanted.host)];
    if (*place)
      free(*place);
    else
      used++;
    *place = made;
  }
  pthread_mutex_unlock(&lock);
}

static px_function *find(const void *host) {
  pthread_mutex_lock(&lock);
  px_function *found = room ? table[slot_of(host)] : NULL;
  pthread_mutex_unlock(&lock);
  return found;
}

/* ---- what nvcc's code calls ---- */

size_t px_fat_size(const void *image) {
  struct {
    uint32_t magic;
    uint16_t version, header;
    uint64_t size;
  } head;
  memcpy(&head, image, sizeof head);
  return head.magic == FAT_BINARY ? head.header + head.size : 0;
}

/* Put the fat binaries of a list, which ends with NULL, together; false: one is none, or there is no memory. */
static bool join(px_fat *fat, const void *const *images) {
  for (; *images; images++) {
    size_t size = px_fat_size(*images);
    if (!size || !px_linked_add(&fat->linked, *images, size)) return false;
  }
  if (!fat->linked.inputs) return false;
  px_linked_end(&fat->linked);
  fat->image = fat->linked.image;
  fat->size = fat->linked.bytes;
  return true;
}

PX_API void **__cudaRegisterFatBinary(const px_fat_wrapper *wrapper) {
  px_fat *fat = calloc(1, sizeof *fat);
  if (!fat || !wrapper || wrapper->magic != PX_FAT_WRAPPER) return (void **)fat;
  fat->image = wrapper->image;
  fat->size = px_fat_size(wrapper->image);
  if (wrapper->version == PX_FAT_LINKED && !(wrapper->more && join(fat, wrapper->more))) fat->size = 0;
  pthread_mutex_lock(&lock);
  fat->next = fats;
  fats = fat;
  pthread_mutex_unlock(&lock);
  return (void **)fat;
}

PX_API void __cudaRegisterFatBinaryEnd(void **handle) { (void)handle; }

static void forget(const px_fat *fat) {
  px_function **old = table;
  size_t old_room = room;
  table = calloc(room, sizeof *table);
  if (!table) {
    table = old;
    return;
  }
  used = 0;
  for (size_t i = 0; i < old_room; i++) {
    if (old[i] && old[i]->fat != fat) {
      table[slot_of(old[i]->host)] = old[i];
      used++;
    } else {
      free(old[i]);
    }
  }
  free(old);
}

PX_API void __cudaUnregisterFatBinary(void **handle) {
  px_fat *fat = (px_fat *)handle;
  pthread_mutex_lock(&lock);
  px_fat **at = &fats;
  while (*at && *at != fat) at = &(*at)->next;
  if (*at) *at = fat->next;
  if (fat && room) forget(fat);
  pthread_mutex_unlock(&lock);
  if (fat && fat->module) px_module_close(fat->module);
  if (fat) px_linked_free(&fat->linked);
  free(fat);
}

PX_API void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit, void *tid,
                                   void *bid, dim3 *block, dim3 *grid, int *warp) {
  (void)device, (void)limit, (void)tid, (void)bid, (void)block, (void)grid, (void)warp;
  add((px_function){.fat = (px_fat *)handle, .host = host, .name = name});
}

PX_API void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external, size_t size,
                              int constant, int global) {
  (void)device, (void)external, (void)constant, (void)global;
  add((px_function){.fat = (px_fat *)handle, .host = host, .name = name, .kind = PX_IS_VARIABLE, .size = size});
}

PX_API void __cudaRegisterHostVar(void **handle, const char *name, char *host, size_t size) {
  add((px_function){.fat = (px_fat *)handle, .host = host, .name = name, .kind = PX_IS_VARIABLE, .size = size});
}

PX_API void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name, int external, size_t size,
                                     int constant, int global) {
  (void)device, (void)external, (void)constant, (void)global;
  add((px_function){.fat = (px_fat *)handle, .host = host, .name = name, .kind = PX_IS_MANAGED, .size = size});
}

PX_API void __cudaRegisterTexture(void **handle, const void *host, const void **device, const char *name, int dimensions,
                                  int normalized, int external) {
  (void)device, (void)dimensions, (void)external;
  add((px_function){.fat = (px_fat *)handle,
                    .host = host,
                    .name = name,
                    .kind = PX_IS_TEXTURE,
                    .normalized = normalized != 0,
                    .offset = PX_UNBOUND});
}

PX_API void __cudaRegisterSurface(void **handle, const void *host, const void **device, const char *name, int dimensions,
                                  int external) {
  (void)device, (void)dimensions, (void)external;
  add((px_function){.fat = (px_fat *)handle, .host = host, .name = name, .kind = PX_IS_SURFACE});
}

/* ---- loading ---- */

/* Tell the host where a module's managed variables are. */
static void set_managed(const px_fat *fat) {
  for (size_t i = 0; i < room; i++) {
    px_function *item = table[i];
    if (!item || item->fat != fat || item->kind != PX_IS_MANAGED) continue;
    uint64_t address, size;
    if (px_module_variable(fat->module, item->name, &address, &size))
      *(void **)(uintptr_t)item->host = (void *)(uintptr_t)address;
  }
}

/* Load a fat binary once, whoever asks; the lock is not held meanwhile. */
static cudaError_t load(px_fat *fat) {
  px_module *module = NULL;
  pthread_mutex_lock(&lock);
  while (fat->loading) pthread_cond_wait(&settled, &lock);
  if (!fat->loaded) {
    fat->loading = true;
    pthread_mutex_unlock(&lock);
    cudaError_t error = fat->size ? px_module_open(fat->image, fat->size, &module) : cudaErrorInvalidKernelImage;
    pthread_mutex_lock(&lock);
    fat->module = module;
    fat->error = error;
    fat->loading = false;
    fat->loaded = true;
    if (module) set_managed(fat);
    pthread_cond_broadcast(&settled);
  }
  pthread_mutex_unlock(&lock);
  return fat->error;
}

/* Only one fat binary is begun: the server answers one request at a time. */
void px_registry_prepare(void) {
  pthread_mutex_lock(&lock);
  px_fat *fat = fats;
  pthread_mutex_unlock(&lock);
  if (fat && fat->size && !fat->loaded) px_module_prepare(fat->image, fat->size);
}

void px_registry_unload(void) {
  pthread_mutex_lock(&lock);
  for (px_fat *fat = fats; fat; fat = fat->next) {
    if (fat->module) px_module_close(fat->module);
    fat->module = NULL;
    fat->loaded = false;
  }
  for (size_t i = 0; i < room; i++) {
    if (!table[i]) continue;
    table[i]->kernel = NULL;
    table[i]->offset = PX_UNBOUND;
  }
  pthread_mutex_unlock(&lock);
}

PX_API char __cudaInitModule(void **handle) {
  px_fat *fat = (px_fat *)handle;
  return fat && !px_enter() && !load(fat);
}

/* ---- lookups ---- */

cudaError_t px_kernel_of(const void *function, px_kernel **out) {
  px_function *found = find(function);
  if (!found && px_is_kernel(function)) { /* of a library */
    *out = (px_kernel *)(uintptr_t)function;
    return cudaSuccess;
  }
  if (!found || found->kind != PX_IS_KERNEL) return cudaErrorInvalidDeviceFunction;
  px_kernel *kernel =
      __atomic_load_n(&found->kernel, __ATOMIC_ACQUIRE); /* several threads may look for it, and find the same */
  if (!kernel) {
    cudaError_t error = load(found->fat);
    if (error) return error;
    kernel = px_module_kernel(found->fat->module, found->name);
    __atomic_store_n(&found->kernel, kernel, __ATOMIC_RELEASE);
  }
  *out = kernel;
  return kernel ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}

cudaError_t px_variable_of(const void *symbol, uint64_t *address, uint64_t *size) {
  px_function *found = find(symbol);
  if (!found || (found->kind != PX_IS_VARIABLE && found->kind != PX_IS_MANAGED)) return cudaErrorInvalidSymbol;
  cudaError_t error = load(found->fat);
  if (error) return error;
  return px_module_variable(found->fat->module, found->name, address, size) ? cudaSuccess : cudaErrorInvalidSymbol;
}

enum { LONGEST_REFERENCE = 1024 };

/* A reference is registered by its name in C++, "::image" or "::inner::image", and in PTX it is mangled if it is in a namespace (Itanium C++
 * ABI, "Mangling"). false: the name is too long. */
static bool mangle(const char *name, char out[LONGEST_REFERENCE]) {
  name += strncmp(name, "::", 2) ? 0 : 2;
  if (!strstr(name, "::")) return snprintf(out, LONGEST_REFERENCE, "%s", name) < LONGEST_REFERENCE;
  int size = snprintf(out, LONGEST_REFERENCE, "_ZN");
  while (size < LONGEST_REFERENCE) {
    const char *end = strstr(name, "::");
    int length = end ? (int)(end - name) : (int)strlen(name);
    size += snprintf(out + size, (size_t)(LONGEST_REFERENCE - size), "%d%.*s%s", length, length, name, end ? "" : "E");
    if (!end) break;
    name = end + 2;
  }
  return size < LONGEST_REFERENCE;
}

cudaError_t px_reference_of(const void *reference, px_symbol_kind kind, uint64_t *handle, px_function **out) {
  enum { INVALID_TEXTURE = 18, INVALID_SURFACE = 37 };
  const cudaError_t invalid = kind == PX_IS_TEXTURE ? INVALID_TEXTURE : INVALID_SURFACE;
  px_function *found = find(reference);
  if (!found || found->kind != kind) return invalid;
  cudaError_t error = load(found->fat);
  if (error) return error;
  const pe_module *resident = found->fat->module->resident;
  char name[LONGEST_REFERENCE];
  const pe_handle_facts *facts = mangle(found->name, name) ? pe_module_handle(resident, name) : NULL;
  if (!facts || facts->count != 1) return invalid;
  *handle = pe_module_handles(resident)[facts->first];
  if (out) *out = found;
  return cudaSuccess;
}

/* A kernel's handle is the host's address of it. */
PX_API cudaError_t __cudaGetKernel(cudaKernel_t *out, const void *function) {
  PX_REQUIRE(out && find(function), cudaErrorInvalidDeviceFunction);
  *out = (cudaKernel_t)(uintptr_t)function;
  return cudaSuccess;
}

PX_API cudaError_t cudaGetKernel(cudaKernel_t *out, const void *function) {
  return px_report(__cudaGetKernel(out, function));
}
