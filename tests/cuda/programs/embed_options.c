/* What ptxemu_embed.h does with options: a device with the host's memory, a slack, little memory and a function that prints. */
#include <ptxemu_embed.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char printed[256];

static void print(void *context, const char *text, size_t bytes) {
  size_t *used = context;
  if (*used + bytes < sizeof printed) memcpy(printed + *used, text, bytes);
  *used += bytes;
}

static ptxemu_kernel *kernel(ptxemu_module *module, const char *name) {
  ptxemu_kernel *found;
  if (ptxemu_find(module, name, &found)) puts(ptxemu_problem());
  return found;
}

static void store(ptxemu_module *module, void *at) {
  const ptxemu_shape one = {.grid = {1}};
  printf("%d\n", (int)ptxemu_launch(kernel(module, "store"), &one, (const void *const[]){&at}));
}

int main(int argc, char **argv) {
  static char text[1 << 20];
  size_t used = 0;
  if (argc != 2) return 2;
  FILE *file = fopen(argv[1], "rb");
  size_t size = file ? fread(text, 1, sizeof text, file) : 0;
  ptxemu_options options = {
    .size = 1, .memory = 16 << 20, .workers = 1, .host_memory = 1, .cuda_guard = 1, .print = print, .context = &used};
  printf("%d %s\n", (int)ptxemu_open(&options), ptxemu_problem());
  options.size = sizeof options;
  options.arch = 20;
  printf("%d %s\n", (int)ptxemu_open(&options), ptxemu_problem());
  options.arch = 75;
  printf("%d\n", (int)ptxemu_open(&options));
  printf("%d %s\n", (int)ptxemu_open(&options), ptxemu_problem());

  ptxemu_module *module;
  if (ptxemu_load(text, size, &module)) puts(ptxemu_problem());
  int *memory = ptxemu_alloc(512), *hosts = calloc(1, sizeof *hosts);
  store(module, memory + 128); /* behind its end */
  store(module, hosts);
  store(module, (void *)0x1000);
  printf("%d %d %s\n", memory[128], *hosts, ptxemu_alloc(32 << 20) ? "too much" : ptxemu_problem());
  int three = 3;
  printf("%d\n", (int)ptxemu_launch(kernel(module, "hello"), &(ptxemu_shape){.block = {3}}, (const void *const[]){&three}));
  printf("%.*s", (int)used, printed);
  ptxemu_unload(module);
  return 0;
}
