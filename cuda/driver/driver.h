/* driver.h: what the files of libcuda.so.1 share.
 *
 * The driver API lies over the same functions as the runtime API. What is its own is who is asked: handles of contexts, modules and
 * kernels instead of the host's addresses.
 */
#ifndef PTXEMU_CUDA_DRIVER_H
#define PTXEMU_CUDA_DRIVER_H
#include "core.h"
#include "driver_abi.h"
#include "px_module.h"

/* Another name of a function, of an older version with the same interface. */
#define CU_SAME(name, as) PX_API extern __typeof__(as) name __attribute__((alias(#as)))

/* ---- context.c ---- */

/* Whether calls may be made: cuInit, a context that is current and lives, no error that stays. */
CUresult cu_enter(void);

/* The same of calls that take what has a context already, and need none that is current. */
CUresult cu_enter_any(void);

/* Whether cuInit has been called, and the number is a device's. */
CUresult cu_device(CUdevice device);

/* ---- result.c ---- */

/* The driver API's number for an error. */
CUresult cu_result(cudaError_t error);

/* What PX_CALL() is in the runtime API. */
#define CU_CALL() \
  PX_CALL();      \
  px_driver_call cu_this_call __attribute__((cleanup(px_driver_call_end))) = px_driver_call_begin()

/* Begin a function that needs a context. */
#define CU_ENTER()                  \
  CU_CALL();                        \
  CUresult cu_entered = cu_enter(); \
  CU_REQUIRE(!cu_entered, cu_entered)

#define CU_ENTER_ANY()                  \
  CU_CALL();                            \
  CUresult cu_entered = cu_enter_any(); \
  CU_REQUIRE(!cu_entered, cu_entered)

/* Leave it with an error if `condition` does not hold. */
#define CU_REQUIRE(condition, error) \
  do {                               \
    if (!(condition)) return error;  \
  } while (0)

/* ---- module.c ---- */

/* A module or a library: a copy of its image, and references to its textures and surfaces. */
struct px_driver_module {
  px_mortal mortal;
  CUmodule next;
  void *image;
  px_module *module;
  struct px_reference *references;
};

/* ---- kernel.c ---- */

struct px_geometry;

/* Launch with arguments in either form. */
CUresult cu_launch(px_kernel *kernel, struct px_geometry *geometry, void **pointers, void **extra);

/* ---- jit.c ---- */

/* The options of a load or a link, as two arrays. */
typedef struct px_jit {
  unsigned count;
  const int *options;
  void **values;
} px_jit;

/* Tell the program's buffers what was said; "" for nothing. */
void cu_log(const px_jit *jit, const char *text);

/* ---- link.c ---- */

/* The bytes of a file, to be freed, or NULL. */
void *cu_file(const char *path, size_t *size);

/* ---- array.c ---- */

/* The description of texels of a format; false: there is none. */
bool cu_channels(int format, unsigned channels, cudaChannelFormatDesc *out);
int cu_format(const cudaChannelFormatDesc *channels, unsigned *count);

/* ---- copy.c ---- */

struct px_work;

/* The copy of a box that a program describes, as work and back. */
CUresult cu_copy_work(const CUDA_MEMCPY3D_PEER *what, struct px_work **out);
void cu_copy_params(const struct px_work *work, CUDA_MEMCPY3D_PEER *out);

/* ---- texture.c ---- */

/* The runtime API's description of a resource and of how it is read. */
bool cu_resource(const CUDA_RESOURCE_DESC *from, cudaResourceDesc *out);
void cu_reading(const CUDA_TEXTURE_DESC *from, const cudaResourceDesc *resource, cudaTextureDesc *out);

/* ---- reference.c ---- */

/* The module is gone, and what refers to its textures and surfaces. */
void cu_references_close(CUmodule module);

#endif
