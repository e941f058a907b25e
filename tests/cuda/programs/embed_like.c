/* ptxemu_embed.h: a device that is like what is named, or for a program that was built before devices could be; the word that a kernel
 * stores. */
#include <ptxemu_embed.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
  static char text[1 << 16];
  if (argc != 3) return 2;
  FILE *file = fopen(argv[1], "rb");
  size_t size = file ? fread(text, 1, sizeof text, file) : 0;
  ptxemu_options options = {.size = sizeof options, .memory = 16 << 20, .like = "sm_8x"};
  printf("%d %s\n", (int)ptxemu_open(&options), ptxemu_problem());
  options.like = argv[2];
  if (strchr(argv[2], ' ')) options = (ptxemu_options){.size = offsetof(ptxemu_options, like), .memory = 16 << 20, .arch = 89};
  printf("%d\n", (int)ptxemu_open(&options));
  ptxemu_module *module;
  ptxemu_kernel *kernel;
  unsigned *word = ptxemu_alloc(sizeof *word);
  if (ptxemu_load(text, size, &module) || ptxemu_find(module, "k", &kernel)) return puts(ptxemu_problem());
  if (ptxemu_launch(kernel, &(ptxemu_shape){.grid = {1}}, (const void *const[]){&word})) return puts(ptxemu_problem());
  printf("0x%08x\n", *word);
  return 0;
}
