/* object.c: texture and surface objects. */
#include <string.h>
#include "core.h"
#include "px_stream.h"

enum { LINEAR_ALIGNMENT = 16 };

/* ---- what a resource's memory looks like: cudaSuccess, or what is wrong ---- */

static cudaError_t placed(pe_surface_desc *surface, void *memory) {
  surface->state = PE_SURFACE_VALID;
  surface->depth = surface->layers = surface->levels = 1;
  surface->base = memory;
  if (pe_surface_layout(surface)) return cudaErrorInvalidValue;
  surface->size = surface->total_bytes;
  if (pe_surface_check(surface) || !px_is_device(memory, surface->total_bytes)) return cudaErrorInvalidValue;
  return cudaSuccess;
}

static cudaError_t linear(const cudaResourceDesc *resource, pe_surface_desc *surface) {
  *surface = (pe_surface_desc){.geom = PE_GEOM_1D, .layout = PE_LAYOUT_LINEAR, .base_align = LINEAR_ALIGNMENT, .height = 1};
  if (!px_format(&resource->res.linear.desc, surface)) return cudaErrorInvalidChannelDescriptor;
  size_t width = resource->res.linear.sizeInBytes / (surface->components * surface->bits / 8);
  if (!width || width > (size_t)px_attribute(69)) return cudaErrorInvalidValue;
  surface->width = (uint32_t)width;
  return placed(surface, resource->res.linear.devPtr);
}

static cudaError_t rows(const cudaResourceDesc *resource, pe_surface_desc *surface) {
  size_t width = resource->res.pitch2D.width, height = resource->res.pitch2D.height;
  *surface = (pe_surface_desc){.geom = PE_GEOM_2D, .layout = PE_LAYOUT_PITCH, .pitch = resource->res.pitch2D.pitchInBytes};
  if (!px_format(&resource->res.pitch2D.desc, surface)) return cudaErrorInvalidChannelDescriptor;
  if (!width || !height || width > UINT32_MAX || height > UINT32_MAX) return cudaErrorInvalidValue;
  surface->width = (uint32_t)width;
  surface->height = (uint32_t)height;
  return placed(surface, resource->res.pitch2D.devPtr);
}

static cudaError_t memory_of(const cudaResourceDesc *resource, pe_surface_desc *surface) {
  if (!resource) return cudaErrorInvalidValue;
  switch (resource->resType) {
    case cudaResourceTypeArray:
      if (!px_is_array(resource->res.array.array)) return cudaErrorInvalidResourceHandle;
      *surface = resource->res.array.array->surface;
      return cudaSuccess;
    case cudaResourceTypeMipmappedArray:
      if (!px_is_mipmap(resource->res.mipmap.mipmap)) return cudaErrorInvalidResourceHandle;
      *surface = resource->res.mipmap.mipmap->surface;
      return cudaSuccess;
    case cudaResourceTypeLinear: return linear(resource, surface);
    case cudaResourceTypePitch2D: return rows(resource, surface);
    default: return cudaErrorInvalidValue;
  }
}

/* ---- textures ---- */

static uint32_t kind_read(uint32_t stored, int mode) {
  if (mode != cudaReadModeNormalizedFloat) return stored;
  return stored == PE_KIND_UINT ? PE_KIND_UNORM : stored == PE_KIND_SINT ? PE_KIND_SNORM : stored;
}

static void fill_sampler(pe_sampler *sampler, const cudaTextureDesc *wanted) {
  for (int i = 0; i < 3; i++) sampler->address[i] = (uint32_t)wanted->addressMode[i];
  sampler->filter = (uint32_t)wanted->filterMode;
  sampler->mip_filter = (uint32_t)wanted->mipmapFilterMode;
  sampler->normalized = wanted->normalizedCoords != 0;
  sampler->seamless = wanted->seamlessCubemap != 0;
  sampler->anisotropy = wanted->maxAnisotropy;
  sampler->bias = wanted->mipmapLevelBias;
  sampler->min_level = wanted->minMipmapLevelClamp;
  sampler->max_level = wanted->maxMipmapLevelClamp;
  memcpy(sampler->border, wanted->borderColor, sizeof sampler->border);
}

cudaError_t px_texture_of(const cudaResourceDesc *resource, const cudaTextureDesc *wanted, const cudaResourceViewDesc *view,
                          pe_texture *out) {
  *out = (pe_texture){.state = PE_TEXTURE_IMAGE, .samples = 1};
  if (!wanted) return cudaErrorInvalidValue;
  if (view) return cudaErrorNotSupported;
  cudaError_t error = memory_of(resource, &out->memory);
  if (error) return error;
  out->geom = out->memory.geom;
  out->kind = kind_read(out->memory.kind, wanted->readMode);
  out->srgb = wanted->sRGB != 0;
  fill_sampler(&out->sampler, wanted);
  return pe_texture_check(out) ? cudaErrorInvalidValue : cudaSuccess;
}

PX_API cudaError_t cudaCreateTextureObject(cudaTextureObject_t *out, const cudaResourceDesc *resource,
                                           const cudaTextureDesc *wanted, const cudaResourceViewDesc *view) {
  pe_texture texture;
  PX_ENTER();
  PX_REQUIRE(out, cudaErrorInvalidValue);
  cudaError_t error = px_texture_of(resource, wanted, view, &texture);
  PX_REQUIRE(!error, error);
  *out = px_texture_handle(&texture);
  return px_report(*out ? cudaSuccess : cudaErrorMemoryAllocation);
}

/* As CUDA 11.8 calls the one with all that CUDA 12 describes. */
PX_API cudaError_t cudaCreateTextureObject_v2(cudaTextureObject_t *out, const cudaResourceDesc *resource,
                                              const cudaTextureDesc *wanted, const cudaResourceViewDesc *view) {
  return cudaCreateTextureObject(out, resource, wanted, view);
}

/* What CUDA 11 describes ends before the last member. */
PX_API cudaError_t px_texture_object_of_11(cudaTextureObject_t *out, const cudaResourceDesc *resource, const void *wanted,
                                           const cudaResourceViewDesc *view) {
  cudaTextureDesc whole = {.seamlessCubemap = 0};
  if (wanted) memcpy(&whole, wanted, offsetof(cudaTextureDesc, seamlessCubemap));
  return cudaCreateTextureObject(out, resource, wanted ? &whole : NULL, view);
}

/* Before CUDA 13, there are no flags behind the resource. */
PX_API cudaError_t px_texture_object_of_13(cudaTextureObject_t *out, const cudaResourceDesc *resource,
                                           const cudaTextureDesc *wanted, const cudaResourceViewDesc *view) {
  PX_REQUIRE(!resource || !resource->flags, cudaErrorInvalidValue);
  return cudaCreateTextureObject(out, resource, wanted, view);
}

PX_API cudaError_t cudaDestroyTextureObject(cudaTextureObject_t object) {
  PX_ENTER();
  PX_SETTLE();
  return px_report(!object || px_texture_close(object) ? cudaSuccess : cudaErrorInvalidValue);
}

/* ---- surfaces ---- */

PX_API cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t *out, const cudaResourceDesc *resource) {
  PX_ENTER();
  PX_REQUIRE(out && resource && resource->resType == cudaResourceTypeArray, cudaErrorInvalidValue);
  cudaArray_t array = resource->res.array.array;
  PX_REQUIRE(px_is_array(array), cudaErrorInvalidResourceHandle);
  PX_REQUIRE(array->flags & cudaArraySurfaceLoadStore, cudaErrorInvalidValue);
  *out = px_surface_handle(&array->surface);
  return px_report(*out ? cudaSuccess : cudaErrorMemoryAllocation);
}

PX_API cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t object) {
  PX_ENTER();
  PX_SETTLE();
  return px_report(!object || px_surface_close(object) ? cudaSuccess : cudaErrorInvalidValue);
}
