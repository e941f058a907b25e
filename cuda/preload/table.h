/* table.h: the tables of symbols in an ELF file. Nothing in the file is trusted to fit. */
#ifndef PX_PRELOAD_TABLE_H
#define PX_PRELOAD_TABLE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file in memory. */
typedef struct px_file {
  const uint8_t *data; /* NULL: there is none */
  size_t size;
} px_file;

typedef struct px_table {
  const Elf64_Sym *all;
  size_t count;
  uint64_t address;  /* where it lies in the object, if it is loaded */
  const char *names; /* the last byte is zero */
  size_t name_bytes;
} px_table;

px_file px_file_open(const char *path);

void px_file_close(const px_file *file);

/* The head of a file for this kind of machine, or NULL. */
const Elf64_Ehdr *px_file_head(const px_file *file);

/* Its segments, whose number the head says; or NULL. */
const Elf64_Phdr *px_file_segments(const px_file *file);

/* The first table of a kind: SHT_SYMTAB, which linkers leave unless they strip, or SHT_DYNSYM, the names that are exported. */
bool px_file_table(const px_file *file, uint32_t kind, px_table *out);

/* The name of a function that the file defines, or NULL for anything else. */
const char *px_table_function(const px_table *table, size_t i);

#endif
