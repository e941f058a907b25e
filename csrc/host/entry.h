/* entry.h: what passes from the compile side to the launch side: facts of a module, and code of a kernel, as flat bytes.
 *
 * A file is a pe_entry_head, sections, and the SHA-256 of its key, a zero byte, and all that.  Each section is an array of one kind
 * of record and begins at a multiple of 8.  Records name texts by their offset in PE_SECTION_TEXT, and ranges of other sections by
 * index and count.  The bytes may be anything: what pe_entry_open accepts has been tested, so that its users need test nothing.
 */
#ifndef PTXEMU_ENTRY_H
#define PTXEMU_ENTRY_H
#include <stdint.h>
#include "ptxemu.h"

#pragma GCC visibility push(default)
/* CDEF BEGIN */
enum { PE_ENTRY_VERSION = 10, PE_ENTRY_DIGEST = 32 };

/* Kinds of entries: facts of a module, code of a kernel, and bytes without sections that others agree on. */
enum { PE_ENTRY_MODULE = 1, PE_ENTRY_KERNEL, PE_ENTRY_BYTES };

enum {
  PE_SECTION_TEXT, /* names, each ended by a zero byte */
  PE_SECTION_MODULE,
  PE_SECTION_KERNELS,
  PE_SECTION_PARAMETERS,
  PE_SECTION_USES,
  PE_SECTION_LIMITS,
  PE_SECTION_PAIRS,
  PE_SECTION_VARIABLES,
  PE_SECTION_EXTENTS, /* uint64_t */
  PE_SECTION_HANDLES,
  PE_SECTION_FIELDS,
  PE_SECTION_RELOCATIONS,
  PE_SECTION_CONTENTS,
  PE_SECTION_BYTES,
  PE_SECTION_FILES,
  PE_SECTION_LINES, /* uint32_t: where each line starts */
  PE_SECTION_CODE,
  PE_SECTION_OBJECT, /* bytes */
  PE_SECTIONS
};

typedef struct pe_section {
  uint64_t offset, size; /* in bytes, from the head's first on */
} pe_section;

typedef struct pe_entry_head {
  char magic[8]; /* "PTXEMU\0" and the version */
  uint32_t kind;
  uint32_t sections; /* PE_SECTIONS, or 0 for PE_ENTRY_BYTES, which begin at once */
  pe_section section[PE_SECTIONS];
} pe_entry_head;

/* ---- facts of a module ---- */

/* Blocks of .global and .const variables, by PE_BLOCK_*, and the number of handles. */
enum { PE_BLOCK_GLOBAL, PE_BLOCK_CONST, PE_BLOCK_HANDLE };
typedef struct pe_module_facts {
  uint64_t size[2], align[2];
  uint64_t handles;
} pe_module_facts;

typedef struct pe_kernel_facts {
  uint32_t name, plain_name;      /* the symbol, and what C++ calls it, for messages */
  uint32_t parameter, parameters; /* the first one and the count */
  uint32_t limit, limits;
  uint32_t pair, pairs;
  uint32_t param_bytes;
  uint32_t function; /* its number among the module's: PE_FUNCTION_UNIT times one more than that is its address */
} pe_kernel_facts;

enum { PE_NO_TEXT = 0xffffffff, PE_FUNCTION_UNIT = 16 };

typedef struct pe_parameter_facts {
  uint32_t name, type; /* "u64", "surfref" ... */
  uint32_t size, align, offset;
  uint32_t is_array; /* of `elements`, a struct; else a scalar */
  uint32_t elements;
  uint32_t pointer_space, pointer_align; /* what .ptr says, or PE_NO_TEXT */
  uint32_t row_size, row_count;          /* of a register file: elements of a thread; 0: it is none */
  uint32_t use, uses;
} pe_parameter_facts;

/* What the kernel does with what a parameter stands for, so many bytes from its beginning. */
typedef struct pe_use_facts {
  uint32_t offset;
  uint32_t kind;              /* "pointer", "surface" ... */
  uint32_t element, geometry; /* "f32", "2d", or nothing */
  uint32_t reads, writes, numeric;
} pe_use_facts;

/* A performance directive: "reqntid", "maxntid" ... and up to three numbers. */
typedef struct pe_limit_facts {
  uint32_t name, count;
  uint64_t value[3];
} pe_limit_facts;

/* Surfaces, one written and one read, whose memory should not be the same. */
typedef struct pe_pair_facts {
  uint32_t written, read;
} pe_pair_facts;

typedef struct pe_variable_facts {
  uint32_t name, type;
  uint32_t block; /* PE_BLOCK_GLOBAL or _CONST */
  uint32_t vector;
  uint32_t extent, extents; /* of the array, outermost first */
  uint64_t offset, size;    /* in the block */
} pe_variable_facts;

/* A .surfref, .texref or .samplerref, or an array of them: `first` of the module's handles and the count. */
typedef struct pe_handle_facts {
  uint32_t name, type;
  uint32_t first, count;
  uint32_t field, fields;
  uint32_t initialised; /* elements that have initialisers, empty ones among them */
} pe_handle_facts;

typedef struct pe_field_facts {
  uint32_t name, element;
  int64_t value;
} pe_field_facts;

/* `size` bytes at `offset` of a block hold an address from its bit `shift` on: addend + the base of a block, or + handle `index`. */
typedef struct pe_relocation_facts {
  uint32_t block, base; /* PE_BLOCK_* */
  uint64_t offset;
  int64_t addend;
  uint32_t size, shift;
  uint32_t index;
} pe_relocation_facts;

/* Initial bytes; they come before the relocations, which may lie in them. */
typedef struct pe_contents_facts {
  uint64_t block, offset;
  uint64_t start, size; /* in PE_SECTION_BYTES */
} pe_contents_facts;

/* One text of the program: its first position and its lines. */
typedef struct pe_file_facts {
  uint32_t start;
  uint32_t line, lines; /* of PE_SECTION_LINES */
} pe_file_facts;

/* ---- code of a kernel ---- */

typedef struct pe_code_facts {
  uint32_t symbol;   /* where the object's code starts */
  uint32_t variant;  /* of block shapes, as pe_variant names it */
  uint32_t maker;    /* the version of LLVM */
  uint32_t full;     /* that is one for full warps */
  uint32_t suspends; /* its warps may wait, or give way to others before they end */
  uint32_t looped;   /* it runs all warps of a CTA when it is called for the first */
  uint32_t rows;     /* and of as many CTAs along x as it is told, */
  uint32_t abreast;  /* or those of as many CTAs as it is given the warps of */
  uint32_t spread;   /* rows of threads begin at places of their own in warps */
  uint32_t spins;    /* for memory that another block writes */
  uint32_t calls;    /* it makes real calls */
  uint32_t stacked;  /* beyond local_bytes it takes local memory as it goes */
  uint32_t brief; /* about how many instructions a warp takes if it has no loops, waits for nothing and is short, else 0 */
  uint32_t daz;   /* the processor must read subnormal numbers as zeros and make none */
  uint32_t final; /* the best tier makes no other code of this kernel */
  uint64_t static_shared;
  uint64_t local_bytes;
  uint64_t frame_bytes; /* of the host's stack, for one function */
} pe_code_facts;

/* ---- reading ---- */

typedef struct pe_entry pe_entry;

/* A checked copy of an entry, with one owner. 0, or ENOEXEC: it is damaged, foreign, of another kind or another key's; ENOMEM. */
int pe_entry_open(const void *data, uint64_t size, const char *key, uint32_t kind, pe_entry **entry);
pe_entry *pe_entry_keep(pe_entry *entry);
void pe_entry_release(pe_entry *entry);

/* The records of a section and their number. */
const void *pe_entry_section(const pe_entry *entry, uint32_t section, uint64_t *count);

/* A kernel of a module, by its name, or NULL. */
const pe_kernel_facts *pe_entry_kernel(const pe_entry *entry, const char *name);

/* What PE_ENTRY_BYTES hold. */
const void *pe_entry_bytes(const pe_entry *entry, uint64_t *size);

/* A text that a record names; "" for PE_NO_TEXT. */
const char *pe_entry_text(const pe_entry *entry, uint32_t name);

/* The SHA-256 that follows the bytes of an entry. */
void pe_entry_digest(const char *key, const void *data, uint64_t size, uint8_t *digest);
/* CDEF END */
#pragma GCC visibility pop

#endif
