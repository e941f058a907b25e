/* symbols.c: what perf and gdb are told of kernels. gdb finds it in this process; the compile server, which can read the line table, writes
 * the map of perf. */
#include "px_symbols.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "gdb.h"
#include "server.h"
#include "start.h"

static const char separators[] = " ,\t";

/* A word of the variable; NULL: any. */
static bool is_wanted(const char *tool) {
  const char *at = getenv("PTXEMU_SYMBOLS");
  for (size_t length; at && *(at += strspn(at, separators)); at += length) {
    length = strcspn(at, separators);
    if (!tool || (strlen(tool) == length && !strncmp(at, tool, length))) return true;
  }
  return false;
}

bool px_symbols_wanted(void) { return is_wanted(NULL); }

void px_symbols_tell(const char *kernel, const char *key, const pe_code *code) {
  static _Atomic bool said;
  uint64_t size;
  char *text = NULL;
  const char *problem = is_wanted("gdb") || is_wanted("perf") ? NULL : "PTXEMU_SYMBOLS is a list of gdb and perf";
  const void *object = pe_code_object(code, &size);
  if (is_wanted("gdb") && (!object || pe_gdb_tell(object, size, pe_code_section(code)))) problem = "out of memory";
  if (is_wanted("perf") && !px_server_placed(key, kernel, pe_code_section(code), &text))
    problem = text ? text : "out of memory";
  if (problem && !__atomic_exchange_n(&said, true, __ATOMIC_RELAXED))
    fprintf(stderr, "ptxemu: kernels have no names: %s\n", problem);
  free(text);
}
