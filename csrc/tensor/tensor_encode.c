/* tensor_encode.c: making tensor maps of what a program or Python says of a tensor. */
#include "checked.h"
#include "tensor_types.h"

/* Of shared memory that a multiprocessor has. */
#define MOST_BOX_BYTES (228u << 10)

/* Steps that do not divide the box leave the last elements out here, though they are copied. */
uint64_t pe_tensor_box_bytes(const pe_tensor *tensor) {
  pe_tensor_type type = pe_tensor_type_of(tensor);
  uint64_t bytes = type.wide;
  if (tensor->im2col) return pe_product(bytes * tensor->box[0] / type.elements, tensor->pixels);
  for (uint32_t d = 0; d < tensor->rank; d++) bytes = pe_product(bytes, tensor->box[d] / tensor->step[d]);
  return bytes / type.elements;
}

static void set_dims(const pe_tensor_layout *layout, pe_tensor *tensor) {
  for (uint32_t d = 0; d < tensor->rank; d++) {
    tensor->dim[d] = layout->dim[d];
    tensor->step[d] = layout->step[d];
    if (layout->box) tensor->box[d] = layout->box[d];
    if (d) tensor->stride[d - 1] = layout->stride[d - 1];
  }
}

static void set_pixels(const pe_tensor_layout *layout, pe_tensor *tensor) {
  uint32_t corners = layout->kind == PE_TENSOR_IM2COL_W ? 1 : tensor->rank - 2;
  for (uint32_t i = 0; i < corners; i++) tensor->lower[i] = layout->lower[i], tensor->upper[i] = layout->upper[i];
  tensor->box[0] = layout->channels;
  tensor->pixels = layout->pixels;
}

const char *pe_tensor_encode(const pe_tensor_layout *layout, pe_tensor_map *out) {
  pe_tensor tensor = {.im2col = layout->kind != PE_TENSOR_TILED,
                      .rank = layout->rank,
                      .type = layout->type,
                      .interleave = layout->interleave,
                      .swizzle = layout->swizzle,
                      .atomicity = layout->atomicity,
                      .fill = layout->fill,
                      .promotion = layout->promotion,
                      .address = layout->address};
  if (!layout->rank || layout->rank > PE_TENSOR_RANK) return "it has no dimensions, or more than 5";
  if (tensor.im2col && layout->rank < 3) return "a tensor of im2col copies has at least 3 dimensions";
  set_dims(layout, &tensor);
  if (tensor.im2col) set_pixels(layout, &tensor);
  const char *flaw = pe_tensor_flaw(&tensor);
  if (!flaw && pe_tensor_box_bytes(&tensor) > MOST_BOX_BYTES) flaw = "its box has more than 228 KiB";
  if (!flaw) pe_tensor_write(&tensor, out);
  return flaw;
}
