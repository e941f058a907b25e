/* array.c: CUDA arrays: texels in device memory, alone or as the levels of a mipmap. */
#include <stdlib.h>
#include <string.h>
#include "core.h"
#include "px_stream.h"

enum { BASE_ALIGNMENT = 512, FACES = 6, MOST_LEVELS = 16 };

/* ---- formats ---- */

bool px_format(const cudaChannelFormatDesc *format, pe_surface_desc *surface) {
  static const uint32_t kinds[] = {PE_KIND_SINT, PE_KIND_UINT, PE_KIND_FLOAT};
  static const uint32_t orders[] = {0, PE_ORDER_R, PE_ORDER_RG, 0, PE_ORDER_RGBA};
  const int bits[] = {format->x, format->y, format->z, format->w};
  unsigned count = 0;
  while (count < 4 && bits[count]) count++;
  for (unsigned i = 0; i < 4; i++)
    if (bits[i] != (i < count ? format->x : 0)) return false;
  if ((count != 1 && count != 2 && count != 4) || (unsigned)format->f > cudaChannelFormatKindFloat) return false;
  if (format->x != 32 && format->x != 16 && (format->x != 8 || format->f == cudaChannelFormatKindFloat)) return false;
  surface->components = count;
  surface->bits = (uint32_t)format->x;
  surface->kind = kinds[format->f];
  surface->order = orders[count];
  surface->enum_family = PE_ENUM_CUDA;
  return true;
}

PX_API cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, int kind) {
  return (cudaChannelFormatDesc){x, y, z, w, kind};
}

/* ---- shapes ---- */

/* Extents and geometry of an array: false if no array has them. */
static bool shape(pe_surface_desc *surface, cudaExtent extent, unsigned flags) {
  bool layered = flags & cudaArrayLayered, cube = flags & cudaArrayCubemap;
  if (!extent.width || extent.width > UINT32_MAX || extent.height > UINT32_MAX || extent.depth > UINT32_MAX) return false;
  if (cube && (extent.width != extent.height || (layered ? !extent.depth || extent.depth % FACES : extent.depth != FACES)))
    return false;
  surface->width = (uint32_t)extent.width;
  surface->height = extent.height ? (uint32_t)extent.height : 1;
  surface->depth = surface->layers = 1;
  if (layered || cube)
    surface->layers = (uint32_t)extent.depth;
  else if (extent.depth)
    surface->depth = (uint32_t)extent.depth;
  if (!surface->layers || (extent.depth && !extent.height && !layered)) return false;
  surface->geom = cube            ? (layered ? PE_GEOM_ACUBE : PE_GEOM_CUBE)
                  : layered       ? (extent.height ? PE_GEOM_A2D : PE_GEOM_A1D)
                  : extent.depth  ? PE_GEOM_3D
                  : extent.height ? PE_GEOM_2D
                                  : PE_GEOM_1D;
  return true;
}

static cudaError_t make(pe_surface_desc *surface, const cudaChannelFormatDesc *format, cudaExtent extent, unsigned flags,
                        unsigned levels) {
  const unsigned known = cudaArrayLayered | cudaArraySurfaceLoadStore | cudaArrayCubemap | cudaArrayTextureGather;
  if (!format || flags & ~known) return cudaErrorInvalidValue;
  *surface = (pe_surface_desc){.state = PE_SURFACE_VALID, .levels = levels, .layout = PE_LAYOUT_PITCH};
  if (!px_format(format, surface)) return cudaErrorInvalidChannelDescriptor;
  if (!shape(surface, extent, flags) || pe_surface_layout(surface)) return cudaErrorInvalidValue;
  surface->base = (uint8_t *)(uintptr_t)px_allocate(surface->total_bytes, px_memory_array);
  surface->size = surface->total_bytes;
  if (!surface->base) return cudaErrorMemoryAllocation;
  return cudaSuccess;
}

static void give_back(const pe_surface_desc *surface) {
  pe_arena_free(px_device_get()->parts.arena, (uint64_t)(uintptr_t)surface->base);
}

bool px_is_array(cudaArray_t array) { return px_is_live(array, PX_ARRAY); }

bool px_is_mipmap(cudaMipmappedArray_t mipmap) { return px_is_live(mipmap, PX_MIPMAP); }

/* ---- arrays ---- */

PX_API cudaError_t cudaMalloc3DArray(cudaArray_t *out, const cudaChannelFormatDesc *format, cudaExtent extent,
                                     unsigned flags) {
  PX_ENTER();
  PX_REQUIRE(out, cudaErrorInvalidValue);
  cudaArray_t array = calloc(1, sizeof *array);
  PX_REQUIRE(array, cudaErrorMemoryAllocation);
  cudaError_t error = make(&array->surface, format, extent, flags, 1);
  if (!error && !px_live_add(array, PX_ARRAY)) {
    give_back(&array->surface);
    error = cudaErrorMemoryAllocation;
  }
  if (error) {
    free(array);
    return px_report(error);
  }
  array->format = *format;
  array->extent = extent;
  array->flags = flags;
  *out = array;
  return px_report(cudaSuccess);
}

PX_API cudaError_t cudaMallocArray(cudaArray_t *out, const cudaChannelFormatDesc *format, size_t width, size_t height,
                                   unsigned flags) {
  return cudaMalloc3DArray(out, format, (cudaExtent){width, height, 0}, flags);
}

static void end_array(px_mortal *object) {
  cudaArray_t array = (cudaArray_t)object;
  give_back(&array->surface);
  free(array);
}

PX_API cudaError_t cudaFreeArray(cudaArray_t array) {
  PX_ENTER();
  PX_SETTLE();
  if (!array) return px_report(cudaSuccess);
  PX_REQUIRE(px_is_array(array) && !array->owner, cudaErrorInvalidResourceHandle);
  PX_REQUIRE(px_live_remove(array, PX_ARRAY), cudaErrorInvalidResourceHandle);
  px_end_later(&array->mortal, end_array);
  return px_report(cudaSuccess);
}

PX_API cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc *format, cudaExtent *extent, unsigned *flags, cudaArray_t array) {
  PX_ENTER();
  PX_REQUIRE(px_is_array(array), cudaErrorInvalidResourceHandle);
  if (format) *format = array->format;
  if (extent) *extent = array->extent;
  if (flags) *flags = array->flags;
  return px_report(cudaSuccess);
}

PX_API cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc *format, cudaArray_t array) {
  PX_REQUIRE(format, cudaErrorInvalidValue);
  return cudaArrayGetInfo(format, NULL, NULL, array);
}

/* ---- mipmaps ---- */

static size_t halved(size_t extent, unsigned times) { return extent ? (extent >> times ? extent >> times : 1) : 0; }

/* A level as an array of its own, in the memory of the mipmap. */
static bool make_level(struct px_mipmap *mipmap, unsigned number, cudaExtent extent, unsigned flags) {
  struct px_array *array = &mipmap->level[number];
  const pe_surface_level *level = &mipmap->surface.level[number];
  bool planes = flags & (cudaArrayLayered | cudaArrayCubemap);
  pe_surface_desc *surface = &array->surface;
  *surface = mipmap->surface;
  surface->levels = 1;
  surface->width = level->width;
  surface->height = level->height;
  surface->depth = level->depth;
  surface->pitch = level->pitch;
  surface->slice_stride = level->slice_stride;
  surface->base += level->offset;
  if (pe_surface_layout(surface)) return false;
  array->format = mipmap->format;
  array->extent = (cudaExtent){halved(extent.width, number), halved(extent.height, number),
                               planes ? extent.depth : halved(extent.depth, number)};
  array->flags = flags;
  array->owner = mipmap;
  return true;
}

static cudaError_t fill_mipmap(struct px_mipmap *mipmap, const cudaChannelFormatDesc *format, cudaExtent extent,
                               unsigned levels, unsigned flags) {
  cudaError_t error = make(&mipmap->surface, format, extent, flags, levels);
  if (error) return error;
  mipmap->format = *format;
  mipmap->levels = levels;
  for (unsigned i = 0; i < levels; i++) {
    if (make_level(mipmap, i, extent, flags)) continue;
    give_back(&mipmap->surface);
    return cudaErrorInvalidValue;
  }
  return cudaSuccess;
}

static void forget_levels(struct px_mipmap *mipmap) {
  for (unsigned i = 0; i < mipmap->levels; i++) px_live_remove(&mipmap->level[i], PX_ARRAY);
}

static bool tell_levels(struct px_mipmap *mipmap) {
  bool fits = true;
  for (unsigned i = 0; fits && i < mipmap->levels; i++) fits = px_live_add(&mipmap->level[i], PX_ARRAY);
  fits = fits && px_live_add(mipmap, PX_MIPMAP);
  if (!fits) forget_levels(mipmap);
  return fits;
}

static void end_mipmap(px_mortal *object) {
  struct px_mipmap *mipmap = (struct px_mipmap *)object;
  give_back(&mipmap->surface);
  free(mipmap->level);
  free(mipmap);
}

PX_API cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *out, const cudaChannelFormatDesc *format,
                                            cudaExtent extent, unsigned levels, unsigned flags) {
  PX_ENTER();
  PX_REQUIRE(out && levels && levels <= MOST_LEVELS, cudaErrorInvalidValue);
  struct px_mipmap *mipmap = calloc(1, sizeof *mipmap);
  if (mipmap) mipmap->level = calloc(levels, sizeof *mipmap->level);
  cudaError_t error =
      mipmap && mipmap->level ? fill_mipmap(mipmap, format, extent, levels, flags) : cudaErrorMemoryAllocation;
  if (!error && !tell_levels(mipmap)) {
    give_back(&mipmap->surface);
    error = cudaErrorMemoryAllocation;
  }
  if (error) {
    if (mipmap) free(mipmap->level);
    free(mipmap);
    return px_report(error);
  }
  *out = mipmap;
  return px_report(cudaSuccess);
}

PX_API cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t *out, cudaMipmappedArray_t mipmap, unsigned level) {
  PX_ENTER();
  PX_REQUIRE(px_is_mipmap(mipmap), cudaErrorInvalidResourceHandle);
  PX_REQUIRE(out && level < mipmap->levels, cudaErrorInvalidValue);
  *out = &mipmap->level[level];
  return px_report(cudaSuccess);
}

PX_API cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t mipmap) {
  PX_ENTER();
  PX_SETTLE();
  if (!mipmap) return px_report(cudaSuccess);
  PX_REQUIRE(px_live_remove(mipmap, PX_MIPMAP), cudaErrorInvalidResourceHandle);
  forget_levels(mipmap);
  px_end_later(&mipmap->mortal, end_mipmap);
  return px_report(cudaSuccess);
}
