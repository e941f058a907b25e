#include "table.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

px_file px_file_open(const char *path) {
  px_file all = {NULL, 0};
  struct stat status;
  int number = open(path, O_RDONLY | O_CLOEXEC);
  if (number < 0) return all;
  if (!fstat(number, &status) && S_ISREG(status.st_mode) && status.st_size > 0) {
    void *data = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, number, 0);
    if (data != MAP_FAILED) all = (px_file){data, (size_t)status.st_size};
  }
  close(number);
  return all;
}

void px_file_close(const px_file *file) {
  if (file->data) munmap((void *)file->data, file->size);
}

/* An array in a file, or NULL. */
static const void *array_at(const px_file *all, uint64_t offset, uint64_t count, size_t size, size_t alignment) {
  uint64_t bytes;
  bool fits = !__builtin_mul_overflow(count, size, &bytes) && offset <= all->size && bytes <= all->size - offset;
  return fits && offset % alignment == 0 ? all->data + offset : NULL;
}

const Elf64_Ehdr *px_file_head(const px_file *file) {
  const Elf64_Ehdr *head = array_at(file, 0, 1, sizeof *head, 1);
  bool ours = head && memcmp(head->e_ident, ELFMAG, SELFMAG) == 0 && head->e_ident[EI_CLASS] == ELFCLASS64;
  return ours ? head : NULL;
}

const Elf64_Phdr *px_file_segments(const px_file *file) {
  const Elf64_Ehdr *head = px_file_head(file);
  return head ? array_at(file, head->e_phoff, head->e_phnum, sizeof(Elf64_Phdr), _Alignof(Elf64_Phdr)) : NULL;
}

static bool read_table(const px_file *all, const Elf64_Shdr *sections, size_t count, const Elf64_Shdr *table,
                       px_table *out) {
  if (table->sh_link >= count) return false;
  const Elf64_Shdr *names = &sections[table->sh_link];
  out->count = table->sh_size / sizeof *out->all;
  out->address = table->sh_addr;
  out->all = array_at(all, table->sh_offset, out->count, sizeof *out->all, _Alignof(Elf64_Sym));
  out->names = array_at(all, names->sh_offset, names->sh_size, 1, 1);
  out->name_bytes = names->sh_size;
  return out->all && out->names && out->name_bytes && !out->names[out->name_bytes - 1];
}

bool px_file_table(const px_file *file, uint32_t kind, px_table *out) {
  const Elf64_Ehdr *head = px_file_head(file);
  if (!head) return false;
  const Elf64_Shdr *sections = array_at(file, head->e_shoff, head->e_shnum, sizeof *sections, _Alignof(Elf64_Shdr));
  for (size_t i = 0; sections && i < head->e_shnum; i++)
    if (sections[i].sh_type == kind) return read_table(file, sections, head->e_shnum, &sections[i], out);
  return false;
}

const char *px_table_function(const px_table *table, size_t i) {
  const Elf64_Sym *symbol = &table->all[i];
  bool fits =
      ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_shndx != SHN_UNDEF && symbol->st_name < table->name_bytes;
  return fits ? table->names + symbol->st_name : NULL;
}
