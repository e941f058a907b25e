/* link.c: the linker. What it makes is an image that holds its inputs. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "driver.h"
#include "linked.h"

enum { LARGEST = 1 << 30 }; /* bytes of a file */
enum { CUBIN, PTX, FATBINARY, OBJECT, LIBRARY };

struct px_link {
  px_mortal mortal;
  px_jit jit;
  px_linked linked;
};

PX_API CUresult cuLinkCreate_v2(unsigned count, const int *options, void **values, CUlinkState *out) {
  CU_ENTER();
  CU_REQUIRE(out && (!count || (options && values)), CUDA_ERROR_INVALID_VALUE);
  CUlinkState made = calloc(1, sizeof *made);
  CU_REQUIRE(made, CUDA_ERROR_OUT_OF_MEMORY);
  if (!px_live_add(made, PX_LINK)) {
    free(made);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  made->jit = (px_jit){count, options, values}; /* the program keeps them until the link is destroyed */
  *out = made;
  return CUDA_SUCCESS;
}
CU_SAME(cuLinkCreate, cuLinkCreate_v2);

static CUresult refuse(CUlinkState link, CUresult error, const char *text) {
  cu_log(&link->jit, text);
  return error;
}

static CUresult add_input(CUlinkState link, int type, const void *data, size_t size) {
  if (type != PTX && type != FATBINARY)
    return refuse(link, CUDA_ERROR_NO_BINARY_FOR_GPU, "only PTX, and fat binaries that hold it, can be linked");
  return px_linked_add(&link->linked, data, size) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

PX_API CUresult cuLinkAddData_v2(CUlinkState link, int type, void *data, size_t size, const char *name, unsigned count,
                                 const int *options, void **values) {
  (void)name, (void)count, (void)options, (void)values;
  CU_ENTER();
  CU_REQUIRE(px_is_live(link, PX_LINK), CUDA_ERROR_INVALID_HANDLE);
  CU_REQUIRE(data && size, CUDA_ERROR_INVALID_VALUE);
  return add_input(link, type, data, size);
}
CU_SAME(cuLinkAddData, cuLinkAddData_v2);

void *cu_file(const char *path, size_t *size) {
  FILE *file = fopen(path, "rbe");
  if (!file) return NULL;
  long end = fseek(file, 0, SEEK_END) ? -1 : ftell(file);
  rewind(file);
  void *data = end > 0 && end < LARGEST ? malloc((size_t)end) : NULL;
  if (data && fread(data, 1, (size_t)end, file) != (size_t)end) {
    free(data);
    data = NULL;
  }
  fclose(file);
  if (data) *size = (size_t)end;
  return data;
}

/* A library's members are taken only for names that are not defined; where they are machine code, the names stay undefined,
 * which is an error of the link. */
PX_API CUresult cuLinkAddFile_v2(CUlinkState link, int type, const char *path, unsigned count, const int *options,
                                 void **values) {
  (void)count, (void)options, (void)values;
  CU_ENTER();
  CU_REQUIRE(px_is_live(link, PX_LINK), CUDA_ERROR_INVALID_HANDLE);
  CU_REQUIRE(path, CUDA_ERROR_INVALID_VALUE);
  if (access(path, R_OK)) return refuse(link, CUDA_ERROR_FILE_NOT_FOUND, "a file that is to be linked cannot be read");
  if (type == LIBRARY) return CUDA_SUCCESS;
  size_t size;
  void *data = cu_file(path, &size);
  CUresult error = data ? add_input(link, type, data, size) : CUDA_ERROR_INVALID_IMAGE;
  free(data);
  return error;
}
CU_SAME(cuLinkAddFile, cuLinkAddFile_v2);

/* The image lives as long as the link. */
PX_API CUresult cuLinkComplete(CUlinkState link, void **image, size_t *size) {
  CU_ENTER();
  CU_REQUIRE(px_is_live(link, PX_LINK), CUDA_ERROR_INVALID_HANDLE);
  px_linked *linked = &link->linked;
  CU_REQUIRE(image && linked->inputs, CUDA_ERROR_INVALID_VALUE);
  px_linked_end(linked);
  cudaError_t error = px_module_check(linked->image, linked->bytes);
  cu_log(&link->jit, error ? px_module_problem() : "");
  CU_REQUIRE(!error, cu_result(error));
  *image = linked->image;
  if (size) *size = linked->bytes;
  return CUDA_SUCCESS;
}

static void end_link(px_mortal *object) {
  CUlinkState link = (CUlinkState)object;
  px_linked_free(&link->linked);
  free(link);
}

PX_API CUresult cuLinkDestroy(CUlinkState link) {
  CU_ENTER_ANY();
  CU_REQUIRE(px_live_remove(link, PX_LINK), CUDA_ERROR_INVALID_HANDLE);
  px_end_later(&link->mortal, end_link);
  return CUDA_SUCCESS;
}
