/* texture.c: texture and surface objects. */
#include <string.h>
#include "driver.h"
#include "px_runtime.h"

bool cu_resource(const CUDA_RESOURCE_DESC *from, cudaResourceDesc *out) {
  *out = (cudaResourceDesc){.resType = from->resType};
  if (from->flags) return false;
  switch (from->resType) {
    case cudaResourceTypeArray: out->res.array.array = from->res.array.hArray; return true;
    case cudaResourceTypeMipmappedArray: out->res.mipmap.mipmap = from->res.mipmap.hMipmappedArray; return true;
    case cudaResourceTypeLinear:
      out->res.linear.devPtr = (void *)(uintptr_t)from->res.linear.devPtr;
      out->res.linear.sizeInBytes = from->res.linear.sizeInBytes;
      return cu_channels(from->res.linear.format, from->res.linear.numChannels, &out->res.linear.desc);
    case cudaResourceTypePitch2D:
      out->res.pitch2D.devPtr = (void *)(uintptr_t)from->res.pitch2D.devPtr;
      out->res.pitch2D.width = from->res.pitch2D.width;
      out->res.pitch2D.height = from->res.pitch2D.height;
      out->res.pitch2D.pitchInBytes = from->res.pitch2D.pitchInBytes;
      return cu_channels(from->res.pitch2D.format, from->res.pitch2D.numChannels, &out->res.pitch2D.desc);
    default: return false;
  }
}

/* The texels of a resource; those of none have no bits. */
static cudaChannelFormatDesc texels_of(const cudaResourceDesc *resource) {
  static const cudaChannelFormatDesc none;
  switch (resource->resType) {
    case cudaResourceTypeArray: return px_is_array(resource->res.array.array) ? resource->res.array.array->format : none;
    case cudaResourceTypeMipmappedArray:
      return px_is_mipmap(resource->res.mipmap.mipmap) ? resource->res.mipmap.mipmap->format : none;
    case cudaResourceTypeLinear: return resource->res.linear.desc;
    default: return resource->res.pitch2D.desc;
  }
}

/* Integers of up to 16 bits are read as fractions, unless the flag says otherwise. */
void cu_reading(const CUDA_TEXTURE_DESC *from, const cudaResourceDesc *resource, cudaTextureDesc *out) {
  cudaChannelFormatDesc texels = texels_of(resource);
  bool small = texels.f != cudaChannelFormatKindFloat && texels.x <= 16;
  bool fractions = small && !(from->flags & CU_TRSF_READ_AS_INTEGER);
  *out = (cudaTextureDesc){
    .filterMode = from->filterMode,
    .readMode = fractions ? cudaReadModeNormalizedFloat : cudaReadModeElementType,
    .sRGB = (from->flags & CU_TRSF_SRGB) != 0,
    .normalizedCoords = (from->flags & CU_TRSF_NORMALIZED_COORDINATES) != 0,
    .maxAnisotropy = from->maxAnisotropy,
    .mipmapFilterMode = from->mipmapFilterMode,
    .mipmapLevelBias = from->mipmapLevelBias,
    .minMipmapLevelClamp = from->minMipmapLevelClamp,
    .maxMipmapLevelClamp = from->maxMipmapLevelClamp,
    .disableTrilinearOptimization = (from->flags & CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION) != 0,
    .seamlessCubemap = (from->flags & CU_TRSF_SEAMLESS_CUBEMAP) != 0,
  };
  memcpy(out->addressMode, from->addressMode, sizeof out->addressMode);
  memcpy(out->borderColor, from->borderColor, sizeof out->borderColor);
}

/* ---- objects ---- */

PX_API CUresult cuTexObjectCreate(cudaTextureObject_t *out, const CUDA_RESOURCE_DESC *from, const CUDA_TEXTURE_DESC *reading,
                                  const cudaResourceViewDesc *view) {
  cudaResourceDesc resource;
  cudaTextureDesc wanted;
  CU_ENTER();
  CU_REQUIRE(out && from && reading && cu_resource(from, &resource), CUDA_ERROR_INVALID_VALUE);
  cu_reading(reading, &resource, &wanted);
  return cu_result(cudaCreateTextureObject(out, &resource, &wanted, view));
}

PX_API CUresult cuTexObjectDestroy(cudaTextureObject_t object) {
  CU_ENTER_ANY();
  return cu_result(cudaDestroyTextureObject(object));
}

PX_API CUresult cuSurfObjectCreate(cudaSurfaceObject_t *out, const CUDA_RESOURCE_DESC *from) {
  cudaResourceDesc resource;
  CU_ENTER();
  CU_REQUIRE(out && from && cu_resource(from, &resource), CUDA_ERROR_INVALID_VALUE);
  return cu_result(cudaCreateSurfaceObject(out, &resource));
}

PX_API CUresult cuSurfObjectDestroy(cudaSurfaceObject_t object) {
  CU_ENTER_ANY();
  return cu_result(cudaDestroySurfaceObject(object));
}
