/* array.c: arrays and mipmaps by the driver API's descriptors. */
#include <string.h>
#include "driver.h"
#include "px_runtime.h"

/* ---- formats ---- */

typedef struct format_row {
  int format, bits, kind;
} format_row;

static const format_row formats[] = {
  {CU_AD_FORMAT_UNSIGNED_INT8, 8, cudaChannelFormatKindUnsigned},
  {CU_AD_FORMAT_UNSIGNED_INT16, 16, cudaChannelFormatKindUnsigned},
  {CU_AD_FORMAT_UNSIGNED_INT32, 32, cudaChannelFormatKindUnsigned},
  {CU_AD_FORMAT_SIGNED_INT8, 8, cudaChannelFormatKindSigned},
  {CU_AD_FORMAT_SIGNED_INT16, 16, cudaChannelFormatKindSigned},
  {CU_AD_FORMAT_SIGNED_INT32, 32, cudaChannelFormatKindSigned},
  {CU_AD_FORMAT_HALF, 16, cudaChannelFormatKindFloat},
  {CU_AD_FORMAT_FLOAT, 32, cudaChannelFormatKindFloat},
};
enum { FORMATS = sizeof formats / sizeof *formats };

bool cu_channels(int format, unsigned channels, cudaChannelFormatDesc *out) {
  if (channels != 1 && channels != 2 && channels != 4) return false;
  for (unsigned i = 0; i < FORMATS; i++) {
    const format_row *row = &formats[i];
    if (row->format != format) continue;
    *out = (cudaChannelFormatDesc){row->bits, channels > 1 ? row->bits : 0, channels > 2 ? row->bits : 0,
                                   channels > 2 ? row->bits : 0, row->kind};
    return true;
  }
  return false;
}

int cu_format(const cudaChannelFormatDesc *channels, unsigned *count) {
  *count = channels->w ? 4 : channels->y ? 2 : 1;
  for (unsigned i = 0; i < FORMATS; i++)
    if (formats[i].bits == channels->x && formats[i].kind == channels->f) return formats[i].format;
  return 0;
}

/* ---- arrays ---- */

PX_API CUresult cuArray3DCreate_v2(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *wanted) {
  cudaChannelFormatDesc channels;
  CU_ENTER();
  CU_REQUIRE(out && wanted && cu_channels(wanted->Format, wanted->NumChannels, &channels), CUDA_ERROR_INVALID_VALUE);
  cudaExtent extent = {wanted->Width, wanted->Height, wanted->Depth};
  return cu_result(cudaMalloc3DArray(out, &channels, extent, wanted->Flags));
}

/* Any array can be a surface here, which the older descriptor has no flag for. */
PX_API CUresult cuArrayCreate_v2(CUarray *out, const CUDA_ARRAY_DESCRIPTOR *wanted) {
  CU_REQUIRE(wanted, CUDA_ERROR_INVALID_VALUE);
  CUDA_ARRAY3D_DESCRIPTOR whole = {wanted->Width,  wanted->Height,      0,
                                   wanted->Format, wanted->NumChannels, cudaArraySurfaceLoadStore};
  return cuArray3DCreate_v2(out, &whole);
}

PX_API CUresult cuArrayDestroy(CUarray array) {
  CU_ENTER_ANY();
  CU_REQUIRE(px_is_array(array), CUDA_ERROR_INVALID_HANDLE);
  return cu_result(cudaFreeArray(array));
}

PX_API CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *out, CUarray array) {
  unsigned channels;
  CU_ENTER();
  CU_REQUIRE(px_is_array(array), CUDA_ERROR_INVALID_HANDLE);
  CU_REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
  int format = cu_format(&array->format, &channels);
  *out = (CUDA_ARRAY3D_DESCRIPTOR){array->extent.width, array->extent.height, array->extent.depth, format, channels,
                                   array->flags};
  return CUDA_SUCCESS;
}

PX_API CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *out, CUarray array) {
  CUDA_ARRAY3D_DESCRIPTOR whole;
  CUresult error = cuArray3DGetDescriptor_v2(&whole, array);
  CU_REQUIRE(!error, error);
  CU_REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
  *out = (CUDA_ARRAY_DESCRIPTOR){whole.Width, whole.Height, whole.Format, whole.NumChannels};
  return CUDA_SUCCESS;
}

/* ---- mipmaps ---- */

PX_API CUresult cuMipmappedArrayCreate(CUmipmappedArray *out, const CUDA_ARRAY3D_DESCRIPTOR *wanted, unsigned levels) {
  cudaChannelFormatDesc channels;
  CU_ENTER();
  CU_REQUIRE(out && wanted && cu_channels(wanted->Format, wanted->NumChannels, &channels), CUDA_ERROR_INVALID_VALUE);
  cudaExtent extent = {wanted->Width, wanted->Height, wanted->Depth};
  return cu_result(cudaMallocMipmappedArray(out, &channels, extent, levels, wanted->Flags));
}

PX_API CUresult cuMipmappedArrayGetLevel(CUarray *out, CUmipmappedArray mipmap, unsigned level) {
  CU_ENTER();
  return cu_result(cudaGetMipmappedArrayLevel(out, mipmap, level));
}

PX_API CUresult cuMipmappedArrayDestroy(CUmipmappedArray mipmap) {
  CU_ENTER_ANY();
  CU_REQUIRE(px_is_mipmap(mipmap), CUDA_ERROR_INVALID_HANDLE);
  return cu_result(cudaFreeMipmappedArray(mipmap));
}
