/* link.c: the linker. What it makes is an image that holds its inputs; the compile side links them (ptxemu/serve/image.py). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "driver.h"

enum { MAGIC = 8, MOST_INPUTS = 1024, LARGEST = 1 << 30 };
static const char magic[MAGIC + 1] = "PXLINKED";

enum { CUBIN, PTX, FATBINARY, OBJECT, LIBRARY };

/* An image: the head, then for each input its size, and its bytes with zeros up to a multiple of 8. Sizes are little-endian. */
typedef struct image_head {
  char magic[MAGIC];
  uint64_t bytes; /* of all */
  uint64_t inputs;
} image_head;

struct px_link {
  px_jit jit;
  uint8_t *image; /* grows with each input */
  size_t bytes, room;
  uint64_t inputs;
};

size_t cu_linked_size(const void *image) {
  image_head head;
  if (strncmp(image, magic, MAGIC) != 0) return 0;
  memcpy(&head, image, sizeof head);
  return head.bytes;
}

static bool append(CUlinkState link, const void *data, size_t size) {
  size_t end = link->bytes + (size + 7) / 8 * 8;
  if (size > LARGEST || end > LARGEST) return false;
  if (end > link->room) {
    size_t room = end * 2;
    uint8_t *grown = realloc(link->image, room);
    if (!grown) return false;
    link->image = grown;
    link->room = room;
  }
  memset(link->image + link->bytes, 0, end - link->bytes);
  if (data) memcpy(link->image + link->bytes, data, size);
  link->bytes = end;
  return true;
}

PX_API CUresult cuLinkCreate_v2(unsigned count, const int *options, void **values, CUlinkState *out) {
  CU_ENTER();
  CU_REQUIRE(out && (!count || (options && values)), CUDA_ERROR_INVALID_VALUE);
  CUlinkState made = calloc(1, sizeof *made);
  CU_REQUIRE(made, CUDA_ERROR_OUT_OF_MEMORY);
  made->jit = (px_jit){count, options, values}; /* the program keeps them until the link is destroyed */
  if (!append(made, NULL, sizeof(image_head))) {
    free(made);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *out = made;
  return CUDA_SUCCESS;
}
CU_SAME(cuLinkCreate, cuLinkCreate_v2);

static CUresult refuse(CUlinkState link, CUresult error, const char *text) {
  cu_log(&link->jit, text);
  return error;
}

static CUresult add_input(CUlinkState link, int type, const void *data, size_t size) {
  uint64_t bytes = size;
  if (type != PTX && type != FATBINARY)
    return refuse(link, CUDA_ERROR_NO_BINARY_FOR_GPU, "only PTX, and fat binaries that hold it, can be linked");
  CU_REQUIRE(link->inputs < MOST_INPUTS, CUDA_ERROR_INVALID_VALUE);
  CU_REQUIRE(append(link, &bytes, sizeof bytes) && append(link, data, size), CUDA_ERROR_OUT_OF_MEMORY);
  link->inputs++;
  return CUDA_SUCCESS;
}

PX_API CUresult cuLinkAddData_v2(CUlinkState link, int type, void *data, size_t size, const char *name, unsigned count,
                                 const int *options, void **values) {
  (void)name, (void)count, (void)options, (void)values;
  CU_ENTER();
  CU_REQUIRE(link, CUDA_ERROR_INVALID_HANDLE);
  CU_REQUIRE(data && size, CUDA_ERROR_INVALID_VALUE);
  return add_input(link, type, data, size);
}
CU_SAME(cuLinkAddData, cuLinkAddData_v2);

/* A library's members are taken only for names that are not defined; where they are machine code, the names stay undefined,
 * which is an error of the link. */
PX_API CUresult cuLinkAddFile_v2(CUlinkState link, int type, const char *path, unsigned count, const int *options,
                                 void **values) {
  (void)count, (void)options, (void)values;
  CU_ENTER();
  CU_REQUIRE(link, CUDA_ERROR_INVALID_HANDLE);
  CU_REQUIRE(path, CUDA_ERROR_INVALID_VALUE);
  FILE *file = fopen(path, "rbe");
  if (!file) return refuse(link, CUDA_ERROR_FILE_NOT_FOUND, "a file that is to be linked cannot be read");
  long size = fseek(file, 0, SEEK_END) ? -1 : ftell(file);
  rewind(file);
  char *data = type != LIBRARY && size > 0 && size < LARGEST ? malloc((size_t)size) : NULL;
  bool whole = data && fread(data, 1, (size_t)size, file) == (size_t)size;
  fclose(file);
  CUresult error = type == LIBRARY ? CUDA_SUCCESS
                   : whole         ? add_input(link, type, data, (size_t)size)
                                   : CUDA_ERROR_INVALID_IMAGE;
  free(data);
  return error;
}
CU_SAME(cuLinkAddFile, cuLinkAddFile_v2);

/* The image lives as long as the link. */
PX_API CUresult cuLinkComplete(CUlinkState link, void **image, size_t *size) {
  CU_ENTER();
  CU_REQUIRE(link, CUDA_ERROR_INVALID_HANDLE);
  CU_REQUIRE(image && link->inputs, CUDA_ERROR_INVALID_VALUE);
  image_head head = {.bytes = link->bytes, .inputs = link->inputs};
  memcpy(head.magic, magic, MAGIC);
  memcpy(link->image, &head, sizeof head);
  cudaError_t error = px_module_check(link->image, link->bytes);
  cu_log(&link->jit, error ? px_module_problem() : "");
  CU_REQUIRE(!error, cu_result(error));
  *image = link->image;
  if (size) *size = link->bytes;
  return CUDA_SUCCESS;
}

PX_API CUresult cuLinkDestroy(CUlinkState link) {
  CU_ENTER_ANY();
  CU_REQUIRE(link, CUDA_ERROR_INVALID_HANDLE);
  free(link->image);
  free(link);
  return CUDA_SUCCESS;
}
