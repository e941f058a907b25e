/* reference.c: texture and surface references: a module's variables, to which memory is bound. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "driver.h"
#include "px_runtime.h"

enum { ALIGNMENT = 512, FORMAT_OVERRIDE = 1 };

struct px_reference {
  px_mortal mortal;
  CUtexref next; /* of the module */
  const pe_handle_facts *facts;
  uint64_t handle;
  bool surface;
  bool bound;
  CUDA_RESOURCE_DESC resource;
  CUDA_TEXTURE_DESC reading;
  int format; /* of linear memory */
  unsigned channels;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void cu_references_close(CUmodule module) {
  CUtexref at = module->references;
  while (at) {
    CUtexref next = at->next;
    px_live_remove(at, PX_REFERENCE);
    px_end_later(&at->mortal, px_end_free);
    at = next;
  }
  module->references = NULL;
}

/* ---- finding ---- */

static bool is_reference(CUtexref reference, bool surface) {
  return px_is_live(reference, PX_REFERENCE) && reference->surface == surface;
}

static CUtexref made(CUmodule module, const pe_handle_facts *facts, bool surface) {
  CUtexref at = module->references;
  while (at && at->facts != facts) at = at->next;
  if (at || !(at = calloc(1, sizeof *at))) return at;
  if (!px_live_add(at, PX_REFERENCE)) {
    free(at);
    return NULL;
  }
  *at = (struct px_reference){.next = module->references,
                              .facts = facts,
                              .handle = pe_module_handles(module->module->resident)[facts->first],
                              .surface = surface,
                              .format = CU_AD_FORMAT_FLOAT,
                              .channels = 1};
  module->references = at;
  return at;
}

static CUresult find(CUtexref *out, CUmodule module, const char *name, const char *type, bool surface) {
  CU_ENTER();
  CU_REQUIRE(out && name, CUDA_ERROR_INVALID_VALUE);
  CU_REQUIRE(px_is_live(module, PX_MODULE), CUDA_ERROR_INVALID_HANDLE);
  const pe_module *resident = module->module->resident;
  const pe_handle_facts *facts = pe_module_handle(resident, name);
  bool fits = facts && facts->count == 1 && !strcmp(pe_entry_text(pe_module_entry(resident), facts->type), type);
  CU_REQUIRE(fits, CUDA_ERROR_NOT_FOUND);
  pthread_mutex_lock(&lock);
  *out = made(module, facts, surface);
  pthread_mutex_unlock(&lock);
  return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

PX_API CUresult cuModuleGetSurfRef(CUsurfref *out, CUmodule module, const char *name) {
  return find(out, module, name, "surfref", true);
}

PX_API CUresult cuModuleGetTexRef(CUtexref *out, CUmodule module, const char *name) {
  return find(out, module, name, "texref", false);
}

/* ---- surfaces ---- */

PX_API CUresult cuSurfRefSetArray(CUsurfref reference, CUarray array, unsigned flags) {
  CU_ENTER();
  CU_REQUIRE(is_reference(reference, true) && px_is_array(array), CUDA_ERROR_INVALID_HANDLE);
  CU_REQUIRE(!flags && array->flags & cudaArraySurfaceLoadStore, CUDA_ERROR_INVALID_VALUE);
  CU_REQUIRE(px_surface_bind(reference->handle, &array->surface), CUDA_ERROR_OUT_OF_MEMORY);
  reference->resource = (CUDA_RESOURCE_DESC){.resType = cudaResourceTypeArray, .res.array.hArray = array};
  reference->bound = true;
  return CUDA_SUCCESS;
}

PX_API CUresult cuSurfRefGetArray(CUarray *out, CUsurfref reference) {
  CU_ENTER();
  CU_REQUIRE(is_reference(reference, true), CUDA_ERROR_INVALID_HANDLE);
  CU_REQUIRE(out && reference->bound, CUDA_ERROR_INVALID_VALUE);
  *out = reference->resource.res.array.hArray;
  return CUDA_SUCCESS;
}

/* ---- textures: what they are bound to ---- */

/* Put what the reference says into the module's handle. */
static CUresult bind(CUtexref reference) {
  cudaResourceDesc resource;
  cudaTextureDesc wanted;
  pe_texture texture;
  if (!reference->bound) return CUDA_SUCCESS;
  CU_REQUIRE(cu_resource(&reference->resource, &resource), CUDA_ERROR_INVALID_VALUE);
  cu_reading(&reference->reading, &resource, &wanted);
  CUresult error = cu_result(px_texture_of(&resource, &wanted, NULL, &texture));
  CU_REQUIRE(!error, error);
  return px_texture_bind(reference->handle, &texture) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult bind_to(CUtexref reference, const CUDA_RESOURCE_DESC *resource) {
  reference->resource = *resource;
  reference->bound = true;
  return bind(reference);
}

#define TEXTURE() \
  CU_ENTER();     \
  CU_REQUIRE(is_reference(reference, false), CUDA_ERROR_INVALID_HANDLE)

PX_API CUresult cuTexRefSetArray(CUtexref reference, CUarray array, unsigned flags) {
  TEXTURE();
  CU_REQUIRE(px_is_array(array), CUDA_ERROR_INVALID_HANDLE);
  CU_REQUIRE(flags == FORMAT_OVERRIDE, CUDA_ERROR_INVALID_VALUE);
  reference->format = cu_format(&array->format, &reference->channels);
  return bind_to(reference, &(CUDA_RESOURCE_DESC){.resType = cudaResourceTypeArray, .res.array.hArray = array});
}

PX_API CUresult cuTexRefSetMipmappedArray(CUtexref reference, CUmipmappedArray mipmap, unsigned flags) {
  TEXTURE();
  CU_REQUIRE(px_is_mipmap(mipmap), CUDA_ERROR_INVALID_HANDLE);
  CU_REQUIRE(flags == FORMAT_OVERRIDE, CUDA_ERROR_INVALID_VALUE);
  reference->format = cu_format(&mipmap->format, &reference->channels);
  return bind_to(reference,
                 &(CUDA_RESOURCE_DESC){.resType = cudaResourceTypeMipmappedArray, .res.mipmap.hMipmappedArray = mipmap});
}

PX_API CUresult cuTexRefSetAddress_v2(size_t *offset, CUtexref reference, CUdeviceptr pointer, size_t bytes) {
  TEXTURE();
  size_t beyond = pointer % ALIGNMENT;
  CU_REQUIRE(offset || !beyond, CUDA_ERROR_INVALID_VALUE);
  if (offset) *offset = beyond;
  return bind_to(reference, &(CUDA_RESOURCE_DESC){.resType = cudaResourceTypeLinear,
                                                  .res.linear = {.devPtr = pointer - beyond,
                                                                 .format = reference->format,
                                                                 .numChannels = reference->channels,
                                                                 .sizeInBytes = bytes + beyond}});
}

PX_API CUresult cuTexRefSetAddress2D_v3(CUtexref reference, const CUDA_ARRAY_DESCRIPTOR *rows, CUdeviceptr pointer,
                                        size_t pitch) {
  TEXTURE();
  CU_REQUIRE(rows && rows->Format == reference->format && rows->NumChannels == reference->channels,
             CUDA_ERROR_INVALID_VALUE);
  return bind_to(reference, &(CUDA_RESOURCE_DESC){.resType = cudaResourceTypePitch2D,
                                                  .res.pitch2D = {.devPtr = pointer,
                                                                  .format = rows->Format,
                                                                  .numChannels = rows->NumChannels,
                                                                  .width = rows->Width,
                                                                  .height = rows->Height,
                                                                  .pitchInBytes = pitch}});
}
CU_SAME(cuTexRefSetAddress2D_v2, cuTexRefSetAddress2D_v3);

PX_API CUresult cuTexRefGetAddress_v2(CUdeviceptr *out, CUtexref reference) {
  TEXTURE();
  int type = reference->resource.resType;
  CU_REQUIRE(out && reference->bound && (type == cudaResourceTypeLinear || type == cudaResourceTypePitch2D),
             CUDA_ERROR_INVALID_VALUE);
  *out = type == cudaResourceTypeLinear ? reference->resource.res.linear.devPtr : reference->resource.res.pitch2D.devPtr;
  return CUDA_SUCCESS;
}

PX_API CUresult cuTexRefGetArray(CUarray *out, CUtexref reference) {
  TEXTURE();
  CU_REQUIRE(out && reference->bound && reference->resource.resType == cudaResourceTypeArray, CUDA_ERROR_INVALID_VALUE);
  *out = reference->resource.res.array.hArray;
  return CUDA_SUCCESS;
}

PX_API CUresult cuTexRefSetFormat(CUtexref reference, int format, int channels) {
  cudaChannelFormatDesc texels;
  TEXTURE();
  CU_REQUIRE(cu_channels(format, (unsigned)channels, &texels), CUDA_ERROR_INVALID_VALUE);
  reference->format = format;
  reference->channels = (unsigned)channels;
  return CUDA_SUCCESS;
}

PX_API CUresult cuTexRefGetFormat(int *format, int *channels, CUtexref reference) {
  TEXTURE();
  if (format) *format = reference->format;
  if (channels) *channels = (int)reference->channels;
  return CUDA_SUCCESS;
}

/* ---- textures: how they are read ---- */

#define SETTER(name, type, condition, place)                          \
  PX_API CUresult cuTexRefSet##name(CUtexref reference, type value) { \
    TEXTURE();                                                        \
    CU_REQUIRE(condition, CUDA_ERROR_INVALID_VALUE);                  \
    place = value;                                                    \
    return bind(reference);                                           \
  }

#define GETTER(name, type, place)                                    \
  PX_API CUresult cuTexRefGet##name(type *out, CUtexref reference) { \
    TEXTURE();                                                       \
    CU_REQUIRE(out, CUDA_ERROR_INVALID_VALUE);                       \
    *out = place;                                                    \
    return CUDA_SUCCESS;                                             \
  }

enum { KNOWN_FLAGS = 0x73, MOST_ANISOTROPY = 16 };

SETTER(FilterMode, int, value == 0 || value == 1, reference->reading.filterMode)
GETTER(FilterMode, int, reference->reading.filterMode)
SETTER(Flags, unsigned, !(value & ~(unsigned)KNOWN_FLAGS), reference->reading.flags)
GETTER(Flags, unsigned, reference->reading.flags)
SETTER(MaxAnisotropy, unsigned, value <= MOST_ANISOTROPY, reference->reading.maxAnisotropy)
GETTER(MaxAnisotropy, int, (int)reference->reading.maxAnisotropy)
SETTER(MipmapFilterMode, int, value == 0 || value == 1, reference->reading.mipmapFilterMode)
GETTER(MipmapFilterMode, int, reference->reading.mipmapFilterMode)
SETTER(MipmapLevelBias, float, true, reference->reading.mipmapLevelBias)
GETTER(MipmapLevelBias, float, reference->reading.mipmapLevelBias)

PX_API CUresult cuTexRefSetMipmapLevelClamp(CUtexref reference, float least, float most) {
  TEXTURE();
  reference->reading.minMipmapLevelClamp = least;
  reference->reading.maxMipmapLevelClamp = most;
  return bind(reference);
}

PX_API CUresult cuTexRefGetMipmapLevelClamp(float *least, float *most, CUtexref reference) {
  TEXTURE();
  CU_REQUIRE(least && most, CUDA_ERROR_INVALID_VALUE);
  *least = reference->reading.minMipmapLevelClamp;
  *most = reference->reading.maxMipmapLevelClamp;
  return CUDA_SUCCESS;
}

PX_API CUresult cuTexRefSetAddressMode(CUtexref reference, int dimension, int mode) {
  TEXTURE();
  CU_REQUIRE(dimension >= 0 && dimension < 3 && mode >= 0 && mode <= 3, CUDA_ERROR_INVALID_VALUE);
  reference->reading.addressMode[dimension] = mode;
  return bind(reference);
}

PX_API CUresult cuTexRefGetAddressMode(int *mode, CUtexref reference, int dimension) {
  TEXTURE();
  CU_REQUIRE(mode && dimension >= 0 && dimension < 3, CUDA_ERROR_INVALID_VALUE);
  *mode = reference->reading.addressMode[dimension];
  return CUDA_SUCCESS;
}

PX_API CUresult cuTexRefSetBorderColor(CUtexref reference, const float *colour) {
  TEXTURE();
  CU_REQUIRE(colour, CUDA_ERROR_INVALID_VALUE);
  memcpy(reference->reading.borderColor, colour, sizeof reference->reading.borderColor);
  return bind(reference);
}

PX_API CUresult cuTexRefGetBorderColor(float *colour, CUtexref reference) {
  TEXTURE();
  CU_REQUIRE(colour, CUDA_ERROR_INVALID_VALUE);
  memcpy(colour, reference->reading.borderColor, sizeof reference->reading.borderColor);
  return CUDA_SUCCESS;
}

/* Parameters of the legacy launch, which takes no other. */
PX_API CUresult cuParamSetTexRef(CUfunction kernel, int unit, CUtexref reference) {
  enum { DEFAULT = -1 };
  TEXTURE();
  CU_REQUIRE(px_is_kernel(kernel), CUDA_ERROR_INVALID_HANDLE);
  return unit == DEFAULT ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
