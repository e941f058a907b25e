/* tensor.c: tensor maps. Which there can be, the runtime knows (csrc/tensor/tensor_map.c). */
#include <string.h>
#include "driver.h"
#include "tensor.h"

typedef pe_tensor_map CUtensorMap; /* at any address, though programs align it to 64 bytes */

enum { WIDE_MODES = 2, SWIZZLES = 7, DATA_TYPES = PE_TENSOR_TYPES };
enum { COMPUTE_CAPABILITY_MAJOR = 75 };                     /* an attribute */
enum { SWIZZLES_OF_HOPPER = 4, DATA_TYPES_OF_HOPPER = 13 }; /* and of what came before */

static bool is_after_hopper(void) { return px_attribute(COMPUTE_CAPABILITY_MAJOR) >= 10; }

/* CUtensorMapDataType, which is not numbered as tensormap.replace does it. */
static uint32_t type_of(unsigned type) {
  static const uint8_t types[] = {
    PE_TENSOR_U8,       PE_TENSOR_U16,   PE_TENSOR_U32,       PE_TENSOR_S32,       PE_TENSOR_U64,     PE_TENSOR_S64,
    PE_TENSOR_F16,      PE_TENSOR_F32,   PE_TENSOR_F64,       PE_TENSOR_BF16,      PE_TENSOR_F32_FTZ, PE_TENSOR_TF32,
    PE_TENSOR_TF32_FTZ, PE_TENSOR_B4X16, PE_TENSOR_B4X16_P64, PE_TENSOR_B6X16_P32,
  };
  return type < (is_after_hopper() ? DATA_TYPES : DATA_TYPES_OF_HOPPER) ? types[type] : UINT32_MAX;
}

/* CUtensorMapSwizzle has a number for each mode with each atomicity. */
static void set_swizzle(pe_tensor_layout *layout, unsigned swizzle) {
  static const uint8_t modes[SWIZZLES][2] = {
    {PE_SWIZZLE_NONE, PE_ATOM_OF_16B}, {PE_SWIZZLE_32B, PE_ATOM_OF_16B},  {PE_SWIZZLE_64B, PE_ATOM_OF_16B},
    {PE_SWIZZLE_128B, PE_ATOM_OF_16B}, {PE_SWIZZLE_128B, PE_ATOM_OF_32B}, {PE_SWIZZLE_128B, PE_ATOM_OF_32B_FLIPPED},
    {PE_SWIZZLE_128B, PE_ATOM_OF_64B},
  };
  bool exists = swizzle < (is_after_hopper() ? SWIZZLES : SWIZZLES_OF_HOPPER);
  layout->swizzle = exists ? modes[swizzle][0] : UINT32_MAX;
  layout->atomicity = exists ? modes[swizzle][1] : 0;
}

/* What all modes say of the tensor. */
static pe_tensor_layout tensor(unsigned type, uint32_t rank, void *address, const uint64_t *dim, const uint64_t *stride,
                               const uint32_t *step) {
  return (pe_tensor_layout){
    .type = type_of(type), .rank = rank, .address = (uintptr_t)address, .dim = dim, .stride = stride, .step = step};
}

static CUresult encode(CUtensorMap *map, pe_tensor_layout *layout, unsigned interleave, unsigned swizzle, unsigned promotion,
                       unsigned fill) {
  layout->interleave = interleave;
  layout->promotion = promotion;
  layout->fill = fill;
  set_swizzle(layout, swizzle);
  bool complete = layout->dim && layout->step && (layout->stride || layout->rank == 1);
  CU_REQUIRE(map && complete, CUDA_ERROR_INVALID_VALUE);
  CUtensorMap made;
  CU_REQUIRE(!pe_tensor_encode(layout, &made), CUDA_ERROR_INVALID_VALUE);
  memcpy(map, &made, sizeof made);
  return CUDA_SUCCESS;
}

PX_API CUresult cuTensorMapEncodeTiled(CUtensorMap *map, unsigned type, uint32_t rank, void *address, const uint64_t *dim,
                                       const uint64_t *stride, const uint32_t *box, const uint32_t *step,
                                       unsigned interleave, unsigned swizzle, unsigned promotion, unsigned fill) {
  CU_ENTER();
  CU_REQUIRE(box, CUDA_ERROR_INVALID_VALUE);
  pe_tensor_layout layout = tensor(type, rank, address, dim, stride, step);
  layout.kind = PE_TENSOR_TILED;
  layout.box = box;
  return encode(map, &layout, interleave, swizzle, promotion, fill);
}

PX_API CUresult cuTensorMapEncodeIm2col(CUtensorMap *map, unsigned type, uint32_t rank, void *address, const uint64_t *dim,
                                        const uint64_t *stride, const int *lower, const int *upper, uint32_t channels,
                                        uint32_t pixels, const uint32_t *step, unsigned interleave, unsigned swizzle,
                                        unsigned promotion, unsigned fill) {
  CU_ENTER();
  CU_REQUIRE(lower && upper, CUDA_ERROR_INVALID_VALUE);
  pe_tensor_layout layout = tensor(type, rank, address, dim, stride, step);
  layout.kind = PE_TENSOR_IM2COL;
  layout.lower = lower;
  layout.upper = upper;
  layout.channels = channels;
  layout.pixels = pixels;
  return encode(map, &layout, interleave, swizzle, promotion, fill);
}

PX_API CUresult cuTensorMapEncodeIm2colWide(CUtensorMap *map, unsigned type, uint32_t rank, void *address,
                                            const uint64_t *dim, const uint64_t *stride, int lower, int upper,
                                            uint32_t channels, uint32_t pixels, const uint32_t *step, unsigned interleave,
                                            unsigned mode, unsigned swizzle, unsigned promotion, unsigned fill) {
  CU_ENTER();
  CU_REQUIRE(mode < WIDE_MODES, CUDA_ERROR_INVALID_VALUE);
  pe_tensor_layout layout = tensor(type, rank, address, dim, stride, step);
  layout.kind = PE_TENSOR_IM2COL_W; /* of both modes the same */
  layout.lower = &lower;
  layout.upper = &upper;
  layout.channels = channels;
  layout.pixels = pixels;
  return encode(map, &layout, interleave, swizzle, promotion, fill);
}

PX_API CUresult cuTensorMapReplaceAddress(CUtensorMap *map, void *address) {
  CU_ENTER();
  CU_REQUIRE(map, CUDA_ERROR_INVALID_VALUE);
  CUtensorMap moved;
  memcpy(&moved, map, sizeof moved);
  CU_REQUIRE(!pe_tensor_move(&moved, (uintptr_t)address), CUDA_ERROR_INVALID_VALUE);
  memcpy(map, &moved, sizeof moved);
  return CUDA_SUCCESS;
}
