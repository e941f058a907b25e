/* binding.c: texture and surface references, which programs of CUDA 11 bind memory to. The host's variable says how it is read. */
#include <string.h>
#include "core.h"
#include "px_stream.h"
#include "registry.h"

enum { ALIGNMENT = 512, INVALID_BINDING = 19 };

/* What the host has of a texture reference. */
typedef struct textureReference {
  int normalized, filterMode, addressMode[3];
  cudaChannelFormatDesc channelDesc;
  int sRGB;
  unsigned maxAnisotropy;
  int mipmapFilterMode;
  float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
  int disableTrilinearOptimization, reserved[14];
} textureReference;

/* What a launch after this finds; those before it have their own. */
static cudaError_t bind(const textureReference *reference, const cudaResourceDesc *resource, size_t offset) {
  uint64_t handle;
  px_function *known;
  pe_texture texture;
  PX_SETTLE();
  cudaError_t error = px_reference_of(reference, PX_IS_TEXTURE, &handle, &known);
  if (error) return px_report(error);
  cudaTextureDesc wanted = {
    .addressMode = {reference->addressMode[0], reference->addressMode[1], reference->addressMode[2]},
    .filterMode = reference->filterMode,
    .readMode = known->normalized ? cudaReadModeNormalizedFloat : cudaReadModeElementType,
    .sRGB = reference->sRGB,
    .normalizedCoords = reference->normalized,
    .maxAnisotropy = reference->maxAnisotropy,
    .mipmapFilterMode = reference->mipmapFilterMode,
    .mipmapLevelBias = reference->mipmapLevelBias,
    .minMipmapLevelClamp = reference->minMipmapLevelClamp,
    .maxMipmapLevelClamp = reference->maxMipmapLevelClamp,
  };
  error = px_texture_of(resource, &wanted, NULL, &texture);
  if (!error && !px_texture_bind(handle, &texture)) error = cudaErrorMemoryAllocation;
  if (!error) known->offset = offset;
  return px_report(error);
}

/* The start of linear memory, and how far behind that an address is, which the program must be told. */
static bool split(const void *address, size_t *offset, char **start) {
  size_t beyond = (uintptr_t)address % ALIGNMENT;
  if (offset) *offset = beyond;
  *start = (char *)(uintptr_t)address - beyond;
  return offset || !beyond;
}

/* Without an end, memory goes on to that of the allocation. */
static size_t size_from(const char *start, size_t size, size_t beyond) {
  pe_allocation found;
  if (!px_find(start, &found)) return size;
  size_t most = found.address + found.size - (uintptr_t)start;
  return size > most - beyond ? most : size + beyond;
}

PX_API cudaError_t cudaBindTexture(size_t *offset, const textureReference *reference, const void *address,
                                   const cudaChannelFormatDesc *format, size_t size) {
  char *start;
  PX_ENTER();
  PX_REQUIRE(reference && format && address && split(address, offset, &start), cudaErrorInvalidValue);
  cudaResourceDesc resource = {.resType = cudaResourceTypeLinear};
  resource.res.linear.devPtr = start;
  resource.res.linear.desc = *format;
  size_t beyond = (size_t)((const char *)address - start);
  resource.res.linear.sizeInBytes = size_from(start, size, beyond);
  return bind(reference, &resource, beyond);
}

PX_API cudaError_t cudaBindTexture2D(size_t *offset, const textureReference *reference, const void *address,
                                     const cudaChannelFormatDesc *format, size_t width, size_t height, size_t pitch) {
  char *start;
  PX_ENTER();
  PX_REQUIRE(reference && format && address && split(address, offset, &start), cudaErrorInvalidValue);
  size_t beyond = (size_t)((const char *)address - start);
  size_t bytes = (size_t)(format->x + format->y + format->z + format->w) / 8;
  PX_REQUIRE(bytes && beyond % bytes == 0, cudaErrorInvalidValue);
  cudaResourceDesc resource = {.resType = cudaResourceTypePitch2D};
  resource.res.pitch2D.devPtr = start;
  resource.res.pitch2D.desc = *format;
  resource.res.pitch2D.width = width + beyond / bytes;
  resource.res.pitch2D.height = height;
  resource.res.pitch2D.pitchInBytes = pitch;
  return bind(reference, &resource, beyond);
}

/* The format is that of the memory, whatever the program says. */
static cudaError_t bind_array(const textureReference *reference, const cudaResourceDesc *resource,
                              const cudaChannelFormatDesc *format) {
  PX_ENTER();
  PX_REQUIRE(reference && format, cudaErrorInvalidValue);
  return bind(reference, resource, 0);
}

PX_API cudaError_t cudaBindTextureToArray(const textureReference *reference, cudaArray_t array,
                                          const cudaChannelFormatDesc *format) {
  return bind_array(reference, &(cudaResourceDesc){.resType = cudaResourceTypeArray, .res.array.array = array}, format);
}

PX_API cudaError_t cudaBindTextureToMipmappedArray(const textureReference *reference, cudaMipmappedArray_t mipmap,
                                                   const cudaChannelFormatDesc *format) {
  cudaResourceDesc resource = {.resType = cudaResourceTypeMipmappedArray, .res.mipmap.mipmap = mipmap};
  return bind_array(reference, &resource, format);
}

/* What was bound may still be read: it is undefined to do so. */
PX_API cudaError_t cudaUnbindTexture(const textureReference *reference) {
  uint64_t handle;
  px_function *known;
  PX_ENTER();
  cudaError_t error = px_reference_of(reference, PX_IS_TEXTURE, &handle, &known);
  if (!error) known->offset = PX_UNBOUND;
  return px_report(error);
}

/* What was told when the reference was bound. */
PX_API cudaError_t cudaGetTextureAlignmentOffset(size_t *offset, const textureReference *reference) {
  uint64_t handle;
  px_function *known;
  PX_ENTER();
  PX_REQUIRE(offset, cudaErrorInvalidValue);
  cudaError_t error = px_reference_of(reference, PX_IS_TEXTURE, &handle, &known);
  if (!error && known->offset == PX_UNBOUND) error = INVALID_BINDING;
  if (!error) *offset = known->offset;
  return px_report(error);
}

/* A reference is known by the address of its symbol. */
static cudaError_t reference_of(const void **out, const void *symbol, px_symbol_kind kind) {
  uint64_t handle;
  PX_ENTER();
  PX_REQUIRE(out, cudaErrorInvalidValue);
  cudaError_t error = px_reference_of(symbol, kind, &handle, NULL);
  if (!error) *out = symbol;
  return px_report(error);
}

PX_API cudaError_t cudaGetTextureReference(const void **out, const void *symbol) {
  return reference_of(out, symbol, PX_IS_TEXTURE);
}

PX_API cudaError_t cudaGetSurfaceReference(const void **out, const void *symbol) {
  return reference_of(out, symbol, PX_IS_SURFACE);
}

PX_API cudaError_t cudaBindSurfaceToArray(const void *reference, cudaArray_t array, const cudaChannelFormatDesc *format) {
  uint64_t handle;
  PX_ENTER();
  PX_REQUIRE(reference && format, cudaErrorInvalidValue);
  PX_REQUIRE(px_is_array(array), cudaErrorInvalidResourceHandle);
  PX_REQUIRE(array->flags & cudaArraySurfaceLoadStore, cudaErrorInvalidValue);
  PX_SETTLE();
  cudaError_t error = px_reference_of(reference, PX_IS_SURFACE, &handle, NULL);
  if (!error && !px_surface_bind(handle, &array->surface)) error = cudaErrorMemoryAllocation;
  return px_report(error);
}
