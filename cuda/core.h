/* core.h: what the files of the CUDA libraries share.
 *
 * Every function of the API begins with px_enter, which starts the device, and passes what it returns through px_report, which
 * keeps it for cudaGetLastError. An error of a launch stays with its context: px_enter then returns it for every call there, until
 * the device is reset.
 * Work is done in the order of streams (px_stream.h): at once if there is nothing before it.
 */
#ifndef PTXEMU_CUDA_CORE_H
#define PTXEMU_CUDA_CORE_H
#include <stdbool.h>
#include "abi.h"
#include "host.h"
#include "module.h"
#include "px_context.h"
#include "px_live.h"
#include "surface.h"
#include "texture.h"

#define PX_API __attribute__((visibility("default")))

/* ---- device.c ---- */

typedef struct px_device {
  pe_device parts;
  uint64_t capacity; /* bytes of device memory */
  unsigned arch;     /* compute capability, 80 for 8.0 */
  unsigned processors;
  bool quiet;    /* nothing is said on stderr */
  bool blocking; /* a launch waits for its kernel */
} px_device;

/* What the device is to be; zeros are the defaults. */
typedef struct px_settings {
  uint64_t capacity, slack;
  unsigned arch, workers;
  uint32_t checks; /* checkers that watch it (px_check.h) */
  bool host_memory, quiet, blocking;
  const char *like; /* or NULL */
} px_settings;

bool px_is_arch(long arch);

/* Whose results programs get where PTX leaves bits open (ptxemu/ir/numerics.py): what the device was started with, else PTXEMU_LIKE; an
 * empty text if that is not set. */
const char *px_like(void);

/* Whether there are results of that name; the compute capability of an architecture, or 0. */
bool px_is_like(const char *like);
unsigned px_arch_of(const char *like);

/* Start the device so; false: it runs already, or cannot be started. */
bool px_device_start(const px_settings *settings);

/* The device, started by the first call as the environment says; NULL where it cannot be. */
px_device *px_device_get(void);

/* Local memory that a thread has beyond what its kernel says, in bytes. */
void px_set_stack(uint64_t bytes);

/* Forget everything: memory, modules, errors. Not within a call; an error: this is a thread that must not wait. */
cudaError_t px_device_reset(void);

/* The value of a device attribute. -1: there is no such attribute. */
int px_attribute(int attribute);

/* Have a function called when the device is reset, before its memory is gone. */
void px_at_reset(void (*function)(void));

/* ---- error.c ---- */

/* Whether a call can be made: there is a device, and the context lives and has no error that stays. */
cudaError_t px_enter(void);

/* Keep an error for cudaGetLastError. */
cudaError_t px_report(cudaError_t error);
void px_forget_errors(void);
int px_not_supported(void);

/* Begin a function of the API. Where this stands, handles can be looked at. */
#define PX_ENTER()                     \
  PX_CALL();                           \
  cudaError_t px_entered = px_enter(); \
  PX_REQUIRE(!px_entered, px_entered)

/* Leave it with an error if `condition` does not hold. */
#define PX_REQUIRE(condition, error)           \
  do {                                         \
    if (!(condition)) return px_report(error); \
  } while (0)

/* ---- memory.c ---- */

/* What an allocation was made as; its name in messages. */
extern const char px_memory_device[], px_memory_host[], px_memory_managed[], px_memory_array[], px_memory_embed[];

/* All kinds that programs free, by a number from 0 on; NULL behind the last. */
const char *px_memory_kind(unsigned number);

bool px_is_of_kind(const pe_allocation *found, const char *kind);

/* Memory of a kind, or 0. */
uint64_t px_allocate(uint64_t size, const char *kind);

/* The allocation that contains an address. */
bool px_find(const void *address, pe_allocation *out);

/* Whether all of a range is memory that CUDA knows of: it was allocated or registered. */
bool px_is_known(const void *address, uint64_t size);
/* What may be touched as device memory: the same, and all memory of the process if kernels may touch it. */
bool px_is_device(const void *address, uint64_t size);
/* What a program may pass for host memory: anything that does not lie in the arena, too. */
bool px_is_any(const void *address, uint64_t size);

/* Whether nothing in a range was mapped so that it cannot be written. */
bool px_may_write(const void *address, uint64_t size);

/* ---- registered.c ---- */

/* Whether all of a range is registered memory of the host, and whether there is any. */
bool px_is_registered(const void *address, uint64_t size);
bool px_any_registered(void);

/* ---- copy.c ---- */

/* One side of a copy: rows of bytes in memory, or texels of an array. */
typedef struct px_side {
  uint8_t *memory;
  size_t pitch, slice; /* bytes from row to row, and from slice to slice */
  cudaArray_t array;   /* not NULL: the texels from (x in bytes, y, z) on */
  size_t x, y, z;
} px_side;

/* Copy `width` bytes of each of `height` rows of `depth` slices. `kind` is cudaMemcpy*. All is done when px_copy returns, in the order
 * of the legacy default stream; `px_copy_in` copies in the order of a stream, later if both sides can wait. */
cudaError_t px_copy(const px_side *to, const px_side *from, size_t width, size_t height, size_t depth, int kind);
cudaError_t px_copy_in(cudaStream_t stream, const px_side *to, const px_side *from, size_t width, size_t height,
                       size_t depth, int kind);

struct px_box;
struct px_work;

/* The box of a copy that a program describes; nothing is checked but that its sizes can be. */
cudaError_t px_copy_parse(const cudaMemcpy3DParms *what, struct px_box *out);

/* A copy of a box, or a set of it, that can be done any number of times. */
cudaError_t px_copy_work(const struct px_box *box, int kind, struct px_work **out);
cudaError_t px_set_work(const struct px_box *box, struct px_work **out);

/* Set a box of device memory in the order of a stream. */
cudaError_t px_set_in(cudaStream_t stream, const struct px_box *box);

/* Do a copy or a set; false: memory or an array that it was made with, as a node of a graph, has been freed since. */
bool px_work_move(const struct px_work *work);

/* ---- array.c ---- */

struct px_array {
  px_mortal mortal;
  _Alignas(PX_HANDLE_UNIT) pe_surface_desc surface;
  cudaChannelFormatDesc format;
  cudaExtent extent; /* as the program gave it */
  unsigned flags;
  cudaMipmappedArray_t owner; /* of a level */
};

struct px_mipmap {
  px_mortal mortal;
  pe_surface_desc surface;
  cudaChannelFormatDesc format;
  unsigned levels;
  struct px_array *level; /* one for each */
};

bool px_is_array(cudaArray_t array);
bool px_is_mipmap(cudaMipmappedArray_t mipmap);

/* The components of a format: false if no surface has it. */
bool px_format(const cudaChannelFormatDesc *format, pe_surface_desc *surface);

/* ---- handle.c ---- */

/* Put a copy of a surface or a texture into the device's tables: its handle, or 0. */
uint64_t px_surface_handle(const pe_surface_desc *surface);
uint64_t px_texture_handle(const pe_texture *texture);
/* Put a copy in the place of what a handle stands for; false: there is no memory. */
bool px_surface_bind(uint64_t handle, const pe_surface_desc *surface);
bool px_texture_bind(uint64_t handle, const pe_texture *texture);

bool px_surface_close(uint64_t handle);
bool px_texture_close(uint64_t handle);

/* Around all else that takes handles. */
void px_handles_lock(void);
void px_handles_unlock(void);

/* ---- object.c ---- */

/* The texture that a description says. */
cudaError_t px_texture_of(const cudaResourceDesc *resource, const cudaTextureDesc *wanted, const cudaResourceViewDesc *view,
                          pe_texture *out);

/* ---- stream.c ---- */

/* NULL, 1 and 2 are the default streams. */
bool px_is_stream(cudaStream_t stream);

#endif
