/* cache.c: the disk cache, as programs without Python read it; ptxemu/cache.py is what writes it. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>
#include "key.h"

#define MAX_BYTES (1ll << 31)
#define OTHERS_WRITE (S_IWGRP | S_IWOTH)

struct pe_cache {
  char path[PATH_MAX];
};

/* ---- where it is ---- */

/* Whether a group has no other member than the user: many systems give each user such a group. */
static bool is_own_group(gid_t group) {
  char user_text[4096], group_text[16384];
  struct passwd user, *found_user;
  struct group members, *found_group;
  if (getpwuid_r(geteuid(), &user, user_text, sizeof user_text, &found_user) || !found_user) return false;
  if (getgrgid_r(group, &members, group_text, sizeof group_text, &found_group) || !found_group) return false;
  for (char **name = members.gr_mem; *name; name++)
    if (strcmp(*name, user.pw_name) != 0) return false;
  return strcmp(members.gr_name, user.pw_name) == 0 && user.pw_gid == group;
}

/* Whether only the user and root can rename what lies in a directory. */
static bool is_safe_parent(const struct stat *parent) {
  if (parent->st_uid != 0 && parent->st_uid != geteuid()) return false;
  if ((parent->st_mode & S_ISVTX) || !(parent->st_mode & OTHERS_WRITE)) return true;
  return !(parent->st_mode & S_IWOTH) && is_own_group(parent->st_gid);
}

/* Whether nobody else can change what a path without symbolic links stands for. */
static bool is_private(const char *resolved) {
  char path[PATH_MAX];
  struct stat found;
  if (lstat(resolved, &found) || !S_ISDIR(found.st_mode)) return false;
  if (found.st_uid != geteuid() || (found.st_mode & OTHERS_WRITE)) return false;
  snprintf(path, sizeof path, "%s", resolved);
  for (char *end = strrchr(path, '/'); end; end = strrchr(path, '/')) {
    bool root = end == path;
    *(root ? end + 1 : end) = 0;
    if (lstat(path, &found) || !is_safe_parent(&found)) return false;
    if (root) return true;
  }
  return false;
}

static bool is_off(const char *place) {
  return strcasecmp(place, "off") == 0 || strcasecmp(place, "none") == 0 || strcmp(place, "0") == 0;
}

/* The user's directory. False: there is to be none. */
static bool user_directory(char path[PATH_MAX]) {
  const char *place = getenv("PTXEMU_CACHE"), *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  int size;
  if (place && *place) {
    if (is_off(place)) return false;
    size = snprintf(path, PATH_MAX, "%s", place);
  } else if (base && *base == '/') {
    size = snprintf(path, PATH_MAX, "%s/ptxemu", base);
  } else {
    if (!home || !*home) return false;
    size = snprintf(path, PATH_MAX, "%s/.cache/ptxemu", home);
  }
  return size < PATH_MAX;
}

pe_cache *pe_cache_open(const char *directory) {
  char place[PATH_MAX];
  if (!directory && !user_directory(place)) return NULL;
  pe_cache *cache = malloc(sizeof *cache);
  if (!cache) return NULL;
  if (realpath(directory ? directory : place, cache->path) && is_private(cache->path)) return cache;
  free(cache);
  return NULL;
}

int64_t pe_cache_changed(const pe_cache *cache) {
  struct stat found;
  return stat(cache->path, &found) ? 0 : found.st_mtime;
}

void pe_cache_close(pe_cache *cache) { free(cache); }

/* ---- reading ---- */

static bool read_all(int file, uint8_t *data, size_t size) {
  for (size_t done = 0; done < size;) {
    ssize_t got = read(file, data + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += (size_t)got;
  }
  return true;
}

static int open_entry(int file, const char *key, uint32_t kind, pe_entry **entry) {
  struct stat found;
  if (fstat(file, &found) || !S_ISREG(found.st_mode) || found.st_size > MAX_BYTES) return ENOEXEC;
  size_t size = (size_t)found.st_size;
  uint8_t *data = malloc(size + 1);
  if (!data) return ENOMEM;
  int error = read_all(file, data, size) ? pe_entry_open(data, size, key, kind, entry) : ENOEXEC;
  free(data);
  if (!error) futimens(file, NULL); /* the order of eviction is the order of use */
  return error;
}

int pe_cache_read(const pe_cache *cache, const char *key, uint32_t kind, pe_entry **entry) {
  char path[PATH_MAX + PE_KEY_BYTES + 8];
  *entry = NULL;
  if (strlen(key) != PE_KEY_BYTES - 1 || strchr(key, '/')) return ENOENT;
  snprintf(path, sizeof path, "%s/%s.entry", cache->path, key);
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return errno == ENOMEM ? ENOMEM : ENOENT;
  int error = open_entry(file, key, kind, entry);
  close(file);
  return error;
}
