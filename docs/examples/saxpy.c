/* saxpy.c: runs a kernel of a file on the CPU, by ptxemu_embed.h.   saxpy KERNEL.ptx */
#include <ptxemu_embed.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 1000, BLOCK = 128 };

static void must(ptxemu_status status) {
  if (status == PTXEMU_OK) return;
  fprintf(stderr, "saxpy: %s\n", ptxemu_problem());
  exit(1);
}

static char *contents(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  if (!file || fseek(file, 0, SEEK_END)) return NULL;
  *size = (size_t)ftell(file);
  rewind(file);
  char *text = malloc(*size);
  bool read = text && fread(text, 1, *size, file) == *size;
  fclose(file);
  return read ? text : NULL;
}

int main(int argc, char **argv) {
  size_t size;
  char *text = argc == 2 ? contents(argv[1], &size) : NULL;
  if (!text) {
    fprintf(stderr, "usage: saxpy KERNEL.ptx\n");
    return 2;
  }
  ptxemu_module *module;
  ptxemu_kernel *saxpy;
  must(ptxemu_load(text, size, &module));
  must(ptxemu_find(module, "saxpy", &saxpy));

  /* Device memory is memory of the program, too. */
  float *x = ptxemu_alloc(N * sizeof *x), *y = ptxemu_alloc(N * sizeof *y), a = 2;
  if (!x || !y) must(PTXEMU_NO_MEMORY);
  for (int i = 0; i < N; i++) x[i] = (float)i, y[i] = 1;

  /* saxpy(int n, float a, const float *x, float *y) */
  int n = N;
  const void *arguments[] = {&n, &a, &x, &y};
  must(ptxemu_launch(saxpy, &(ptxemu_shape){.grid = {(N + BLOCK - 1) / BLOCK}, .block = {BLOCK}}, arguments));
  for (int i = 0; i < N; i++) {
    if (y[i] == 2 * (float)i + 1) continue;
    printf("wrong at %d: %g\n", i, y[i]);
    return 1;
  }
  printf("right\n");
  ptxemu_free(x);
  ptxemu_free(y);
  ptxemu_unload(module);
  free(text);
  return 0;
}
