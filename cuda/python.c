/* python.c: the places where a Python with ptxemu may be. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>
#include "python.h"

static int fits(int length) { return length > 0 && length < PX_PATH; }

static int of_environment(char path[PX_PATH]) {
  const char *given = getenv("PTXEMU_PYTHON");
  return given && *given && fits(snprintf(path, PX_PATH, "%s", given));
}

/* The interpreter that the program runs in; a program that embeds Python may name itself there. */
static int of_process(char path[PX_PATH]) {
  int (*running)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "Py_IsInitialized");
  const wchar_t *(*full_path)(void) = (const wchar_t *(*)(void))dlsym(RTLD_DEFAULT, "Py_GetProgramFullPath");
  const wchar_t *found = running && full_path && running() ? full_path() : NULL;
  if (!found || !fits(snprintf(path, PX_PATH, "%ls", found))) return 0;
  const char *name = strrchr(path, '/');
  return name && (!strncmp(name + 1, "python", 6) || !strncmp(name + 1, "pypy", 4));
}

int px_runs_in_python(void) {
  char path[PX_PATH];
  return of_process(path);
}

/* The folder of this library. */
static int own_folder(char path[PX_PATH]) {
  Dl_info info;
  if (!dladdr((void *)(uintptr_t)&own_folder, &info) || !info.dli_fname) return 0;
  char *real = realpath(info.dli_fname, NULL);
  int length = real ? snprintf(path, PX_PATH, "%s", real) : -1;
  free(real);
  char *name = fits(length) ? strrchr(path, '/') : NULL;
  if (name) *name = 0;
  return name != NULL;
}

int px_package_folder(char path[PX_PATH]) {
  static const char below[] = "/ptxemu/cuda/lib";
  const size_t size = sizeof below - 1, length = own_folder(path) ? strlen(path) : 0;
  if (length <= size || strcmp(path + length - size, below)) return 0;
  path[length - size] = 0;
  return 1;
}

/* PREFIX/bin/python3 of PREFIX/lib/python3.x/site-packages/ptxemu/..., where pip has put this library. */
static int of_installation(char path[PX_PATH]) {
  if (!own_folder(path)) return 0;
  char *packages = strstr(path, "/site-packages/ptxemu/");
  char *lib = NULL;
  for (char *at = path; packages && (at = strstr(at, "/lib/python")) && at < packages; at++) lib = at;
  if (!lib) return 0;
  return fits(snprintf(lib, (size_t)(path + PX_PATH - lib), "/bin/python3"));
}

/* What a build in place has written beside this library. */
static int of_build(char path[PX_PATH]) {
  char name[PX_PATH];
  if (!own_folder(path) || !fits(snprintf(name, sizeof name, "%s/python.path", path))) return 0;
  FILE *file = fopen(name, "re");
  if (!file) return 0;
  int found = fgets(path, PX_PATH, file) != NULL;
  fclose(file);
  if (found) path[strcspn(path, "\n")] = 0;
  return found;
}

static int of_path(char path[PX_PATH]) {
  const char *folders = getenv("PATH");
  for (const char *at = folders; at && *at; at += strspn(at, ":")) {
    size_t length = strcspn(at, ":");
    if (fits(snprintf(path, PX_PATH, "%.*s/python3", (int)length, at)) && *at == '/' && !access(path, X_OK)) return 1;
    at += length;
  }
  return 0;
}

int px_python(unsigned number, char path[PX_PATH], const char **why) {
  static const struct {
    int (*find)(char path[PX_PATH]);
    const char *why;
  } places[] = {{of_environment, "PTXEMU_PYTHON"},
                {of_process, "the running interpreter"},
                {of_installation, "where ptxemu is installed"},
                {of_build, "where ptxemu was built"},
                {of_path, "PATH"}};
  if (number >= sizeof places / sizeof *places) return -1;
  *why = places[number].why;
  return places[number].find(path);
}
