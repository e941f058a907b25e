/* host.c: a program of CUDA 11, which has texture and surface references, structures that have grown since, and graphs of old. What
 * follows is as its headers have it. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 8, HEIGHT = 4, TEXELS = WIDTH * HEIGHT, TO_DEVICE = 1, TO_HOST = 2, LOAD_STORE = 2, FLOAT = 2, UNSIGNED = 1 };
enum { PROPERTIES = 728, ATTRIBUTES = 56, REST = 64 }; /* bytes */

typedef struct dim3 {
  unsigned x, y, z;
} dim3;

typedef struct channels {
  int x, y, z, w, kind;
} channels;

typedef struct textureReference {
  int normalized, filter, address[3];
  channels format;
  int srgb;
  unsigned anisotropy;
  int mip_filter;
  float bias, least, most;
  int no_trilinear, reserved[14];
} textureReference;

typedef struct resource {
  int type;
  union {
    struct {
      void *array;
    } array;
    struct {
      void *pointer;
      channels format;
      size_t width, height, pitch;
    } rows;
  } of;
} resource;

typedef struct reading {
  int address[3], filter, mode, srgb;
  float border[4];
  int normalized;
  unsigned anisotropy;
  int mip_filter;
  float bias, least, most;
  int no_trilinear;
} reading;

typedef struct wrapper {
  int magic, version;
  const void *image, *more;
} wrapper;

int cudaMalloc(void **out, size_t size);
int cudaMallocPitch(void **out, size_t *pitch, size_t width, size_t height);
int cudaMallocArray(void **out, const channels *format, size_t width, size_t height, unsigned flags);
int cudaMemcpy(void *to, const void *from, size_t size, int kind);
int cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t pitch, size_t width, size_t height, int kind);
int cudaMemcpy2DToArray(void *to, size_t x, size_t y, const void *from, size_t pitch, size_t width, size_t height, int kind);
int cudaMemcpy2DFromArray(void *to, size_t pitch, const void *from, size_t x, size_t y, size_t width, size_t height,
                          int kind);
int cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared, void *stream);
int cudaDeviceSynchronize(void);
int cudaRuntimeGetVersion(int *version);
int cudaGetDeviceProperties(void *out, int number);
int cudaFuncGetAttributes(void *out, const void *function);
int cudaBindTexture(size_t *offset, const textureReference *reference, const void *address, const channels *format,
                    size_t size);
int cudaBindTexture2D(size_t *offset, const textureReference *reference, const void *address, const channels *format,
                      size_t width, size_t height, size_t pitch);
int cudaBindTextureToArray(const textureReference *reference, const void *array, const channels *format);
int cudaUnbindTexture(const textureReference *reference);
int cudaGetTextureAlignmentOffset(size_t *offset, const textureReference *reference);
int cudaGetTextureReference(const textureReference **out, const void *symbol);
int cudaBindSurfaceToArray(const void *reference, const void *array, const channels *format);
int cudaCreateTextureObject(uint64_t *out, const resource *what, const reading *how, const void *view);
int cudaStreamCreate(void **out);
int cudaStreamBeginCapture(void *stream, int mode);
int cudaStreamEndCapture(void *stream, void **graph);
int cudaGraphInstantiate(void **out, void *graph, void **node, char *log, size_t size);
int cudaGraphExecUpdate(void *exec, void *graph, void **node, int *result);
int cudaGraphLaunch(void *exec, void *stream);
int cudaStreamSynchronize(void *stream);
void **__cudaRegisterFatBinary(const wrapper *image);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit, void *tid, void *bid,
                            dim3 *block, dim3 *grid, int *warp);
void __cudaRegisterTexture(void **handle, const textureReference *host, const void **device, const char *name,
                           int dimensions, int normalized, int external);
void __cudaRegisterSurface(void **handle, const void *host, const void **device, const char *name, int dimensions,
                           int external);

static textureReference line, image, bytes = {.address = {1, 1, 1}};
static channels canvas;
static char read_line, read_images, write_canvas; /* what kernels are known by */
static const channels floats = {32, 0, 0, 0, FLOAT}, small = {8, 0, 0, 0, UNSIGNED}, words = {32, 0, 0, 0, UNSIGNED};

static void check(bool good, const char *what) {
  if (good) return;
  printf("wrong: %s\n", what);
  exit(1);
}

#define CHECK(condition) check(condition, #condition)

static void register_all(const char *path) {
  static char file[1 << 16];
  static wrapper whole = {0x466243b1, 1, file, NULL};
  FILE *from = fopen(path, "rb");
  CHECK(from && fread(file, 1, sizeof file, from));
  fclose(from);
  void **handle = __cudaRegisterFatBinary(&whole);
  __cudaRegisterFunction(handle, &read_line, &read_line, "read_line", -1, NULL, NULL, NULL, NULL, NULL);
  __cudaRegisterFunction(handle, &read_images, &read_images, "read_images", -1, NULL, NULL, NULL, NULL, NULL);
  __cudaRegisterFunction(handle, &write_canvas, &write_canvas, "write_canvas", -1, NULL, NULL, NULL, NULL, NULL);
  __cudaRegisterTexture(handle, &line, NULL, "::line", 1, 0, 0);
  __cudaRegisterTexture(handle, &image, NULL, "::inner::image", 2, 0, 0);
  __cudaRegisterTexture(handle, &bytes, NULL, "bytes", 2, 1, 0);
  __cudaRegisterSurface(handle, &canvas, NULL, "::canvas", 2, 0);
  __cudaRegisterFatBinaryEnd(handle);
}

/* What the reference was bound with; SIZE_MAX: it is not. */
static size_t offset_of(const textureReference *reference) {
  size_t offset = 1;
  int error = cudaGetTextureAlignmentOffset(&offset, reference);
  CHECK(!error || (error == 19 && offset == 1));
  return error ? SIZE_MAX : offset;
}

static float *launch_reader(const char *kernel, dim3 block, unsigned first) {
  static float found[TEXELS];
  void *out;
  void *arguments[] = {&out, &first};
  CHECK(!cudaMalloc(&out, sizeof found));
  CHECK(!cudaLaunchKernel(kernel, (dim3){1, 1, 1}, block, arguments, 0, NULL));
  CHECK(!cudaMemcpy(found, out, sizeof found, TO_HOST));
  return found;
}

static void textures(void) {
  float texels[TEXELS];
  uint8_t levels[TEXELS];
  void *memory, *array, *rows;
  size_t offset = 1, pitch;
  for (int i = 0; i < TEXELS; i++) texels[i] = 1.5f * i, levels[i] = (uint8_t)(3 * i);
  CHECK(!cudaMalloc(&memory, sizeof texels) && !cudaMemcpy(memory, texels, sizeof texels, TO_DEVICE));
  CHECK(!cudaBindTexture(&offset, &line, memory, &floats, SIZE_MAX) && !offset);
  CHECK(launch_reader(&read_line, (dim3){TEXELS, 1, 1}, 0)[7] == 10.5f);
  CHECK(cudaBindTexture(NULL, &line, (char *)memory + 16, &floats, 64));
  CHECK(!cudaBindTexture(&offset, &line, (char *)memory + 16, &floats, 64) && offset == 16);
  CHECK(launch_reader(&read_line, (dim3){16, 1, 1}, offset / 4)[2] == 9.0f);
  CHECK(offset_of(&line) == 16 && offset_of(&image) == SIZE_MAX && cudaGetTextureAlignmentOffset(NULL, &line) == 1);
  CHECK(!cudaMallocArray(&array, &floats, WIDTH, HEIGHT, 0));
  CHECK(!cudaMemcpy2DToArray(array, 0, 0, texels, 4 * WIDTH, 4 * WIDTH, HEIGHT, TO_DEVICE));
  CHECK(!cudaBindTextureToArray(&image, array, &floats));
  CHECK(!cudaMallocPitch(&rows, &pitch, WIDTH, HEIGHT));
  CHECK(!cudaMemcpy2D(rows, pitch, levels, WIDTH, WIDTH, HEIGHT, TO_DEVICE));
  CHECK(!cudaBindTexture2D(&offset, &bytes, rows, &small, WIDTH, HEIGHT, pitch));
  CHECK(!offset_of(&image) && !offset_of(&bytes) &&
        cudaGetTextureAlignmentOffset(&offset, (textureReference *)&canvas) == 18);
  float *both = launch_reader(&read_images, (dim3){WIDTH, HEIGHT, 1}, 0);
  for (int i = 0; i < TEXELS; i++) CHECK(both[i] == texels[i] + (float)levels[i] / 255);
  const textureReference *found = NULL;
  CHECK(!cudaGetTextureReference(&found, &image) && found == &image && cudaGetTextureReference(&found, &canvas) == 18);
  CHECK(!cudaUnbindTexture(&image) && offset_of(&image) == SIZE_MAX && offset_of(&line) == 16);
  CHECK(cudaUnbindTexture((textureReference *)&read_line) == 18);
}

static void surfaces(void) {
  unsigned texels[TEXELS];
  void *array, *plain;
  CHECK(!cudaMallocArray(&array, &words, WIDTH, HEIGHT, LOAD_STORE) && !cudaMallocArray(&plain, &words, WIDTH, HEIGHT, 0));
  CHECK(cudaBindSurfaceToArray(&canvas, plain, &words) && cudaBindSurfaceToArray(&line, array, &words) == 37);
  CHECK(!cudaBindSurfaceToArray(&canvas, array, &words));
  CHECK(!cudaLaunchKernel(&write_canvas, (dim3){1, 1, 1}, (dim3){WIDTH, HEIGHT, 1}, NULL, 0, NULL));
  CHECK(!cudaMemcpy2DFromArray(texels, 4 * WIDTH, array, 0, 0, 4 * WIDTH, HEIGHT, TO_HOST));
  CHECK(texels[0] == 0 && texels[3 * WIDTH + 7] == 37);
}

/* Whether what lies behind a structure is as it was. */
static bool kept(const unsigned char *from, size_t size) {
  for (int i = 0; i < REST; i++)
    if (from[size + i] != 0xa5) return false;
  return true;
}

static void structures(void) {
  unsigned char properties[PROPERTIES + REST], attributes[ATTRIBUTES + REST];
  memset(properties, 0xa5, sizeof properties);
  memset(attributes, 0xa5, sizeof attributes);
  CHECK(!cudaGetDeviceProperties(properties, 0) && kept(properties, PROPERTIES));
  CHECK(!cudaFuncGetAttributes(attributes, &read_line) && kept(attributes, ATTRIBUTES));
  CHECK(!strncmp((char *)properties, "ptxemu", 6));
  struct {
    resource what;
    unsigned char noise[256];
    reading how;
    unsigned char more[64];
  } given = {.how = {.address = {1, 1, 1}}};
  memset(given.noise, 0xa5, sizeof given.noise);
  memset(given.more, 0xa5, sizeof given.more);
  uint64_t object = 0;
  CHECK(!cudaMallocArray(&given.what.of.array.array, &floats, WIDTH, HEIGHT, 0));
  CHECK(!cudaCreateTextureObject(&object, &given.what, &given.how, NULL) && object);
}

static void graphs(void) {
  void *stream, *graph, *exec, *node = &stream;
  char log[] = "log";
  int result = -1;
  CHECK(!cudaStreamCreate(&stream) && !cudaStreamBeginCapture(stream, 0));
  CHECK(!cudaLaunchKernel(&write_canvas, (dim3){1, 1, 1}, (dim3){WIDTH, HEIGHT, 1}, NULL, 0, stream));
  CHECK(!cudaStreamEndCapture(stream, &graph) && !cudaGraphInstantiate(&exec, graph, &node, log, sizeof log));
  CHECK(!node && !*log && !cudaGraphExecUpdate(exec, graph, &node, &result) && !result);
  CHECK(!cudaGraphLaunch(exec, stream) && !cudaStreamSynchronize(stream));
}

int main(int count, char **arguments) {
  int version;
  CHECK(count == 2);
  register_all(arguments[1]);
  CHECK(!cudaRuntimeGetVersion(&version) && version / 1000 == 11);
  textures();
  surfaces();
  structures();
  graphs();
  CHECK(!cudaDeviceSynchronize());
  puts("right");
  return 0;
}
