/* server.c: starts the compile server, asks it, and gives up on it if it dies. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "core.h"
#include "px_check.h"
#include "px_module.h"
#include "python.h"
#include "server.h"

enum {
  SERVER_FD = 3,
  MOST_FIELDS = 6,
  ANSWER_FIELDS = 2,
  LONGEST_VARIABLE = 256,
  MOST_TEXT = 1 << 20,
  MAGIC = 0x31534550 /* "PES1" */
};
enum { START_MS = 60000, GRACE_MS = 30000, DEFAULT_DEADLINE = 120 };

extern char **environ;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* one request at a time */
static int channel = -1;
static pid_t server, owner;
static bool greeted; /* the server has said what it is */
static bool awaited; /* px_server_prepare has asked, and nobody has taken the answer */

static char *text_of(const char *format, ...) __attribute__((format(printf, 1, 2)));
static char *text_of(const char *format, ...) {
  char *text = NULL;
  va_list arguments;
  va_start(arguments, format);
  if (vasprintf(&text, format, arguments) < 0) text = NULL;
  va_end(arguments);
  return text;
}

/* ---- messages ---- */

static int64_t now_ms(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return (int64_t)at.tv_sec * 1000 + at.tv_nsec / 1000000;
}

/* Exactly `size` bytes before the time `until`. */
static bool receive(void *out, size_t size, int64_t until) {
  for (uint8_t *at = out; size;) {
    int64_t left = until - now_ms();
    struct pollfd one = {.fd = channel, .events = POLLIN};
    int ready = poll(&one, 1, left < 0 ? 0 : (int)left);
    if (ready < 0 && errno == EINTR) continue;
    ssize_t got = ready > 0 ? recv(channel, at, size, 0) : 0;
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    size -= (size_t)got;
  }
  return true;
}

static bool send_all(const void *data, size_t size) {
  for (const uint8_t *at = data; size;) {
    ssize_t sent = send(channel, at, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    size -= (size_t)sent;
  }
  return true;
}

static bool send_message(const struct iovec *fields, uint32_t count) {
  uint32_t head[2] = {MAGIC, count};
  bool sent = send_all(head, sizeof head);
  for (uint32_t i = 0; sent && i < count; i++) {
    uint64_t length = fields[i].iov_len;
    sent = send_all(&length, sizeof length) && send_all(fields[i].iov_base, fields[i].iov_len);
  }
  return sent;
}

/* A message of `count` short fields; each is a string that the caller frees. */
static bool receive_message(char **fields, uint32_t count, int64_t until) {
  uint32_t head[2];
  uint64_t length;
  if (!receive(head, sizeof head, until) || head[0] != MAGIC || head[1] != count) return false;
  for (uint32_t i = 0; i < count; i++) {
    if (!receive(&length, sizeof length, until) || length > MOST_TEXT) return false;
    fields[i] = calloc(1, length + 1);
    if (!fields[i] || !receive(fields[i], length, until)) return false;
  }
  return true;
}

/* ---- the process ---- */

static void stop(void) {
  if (channel >= 0) close(channel);
  channel = -1;
  greeted = awaited = false;
  if (server > 0 && owner == getpid()) {
    kill(server, SIGKILL);
    while (waitpid(server, NULL, 0) < 0 && errno == EINTR) continue;
  }
  server = 0;
}

/* Whether the server gets a variable from the program: not LD_PRELOAD, which is meant for the program, nor what it is told of the device. */
static bool is_passed_on(const char *variable) {
  static const char *const others[] = {"LD_PRELOAD=", "PTXEMU_LIKE=", "PTXEMU_CHECK="};
  bool passed = true;
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) passed &= strncmp(variable, others[i], strlen(others[i])) != 0;
  return passed;
}

/* The program's environment, and with what the device is like. The strings are not copied. */
static char **environment(void) {
  static char like[LONGEST_VARIABLE], check[LONGEST_VARIABLE];
  char *none[] = {NULL}, **given = environ ? environ : none;
  size_t count = 0, kept = 0;
  while (given[count]) count++;
  char **out = calloc(count + 3, sizeof *out);
  if (!out) return NULL;
  for (size_t i = 0; i < count; i++)
    if (is_passed_on(given[i])) out[kept++] = given[i];
  snprintf(like, sizeof like, "PTXEMU_LIKE=%s", px_like());
  snprintf(check, sizeof check, "PTXEMU_CHECK=%s", px_checks_named());
  out[kept++] = like;
  out[kept] = check;
  return out;
}

/* Close what the program left open, where the C library can. */
extern int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int from) __attribute__((weak));

/* The package that this library came in is the one that is imported, wherever it lies, and what it needs may lie beside it. A Python that
 * does not find all ends in silence. */
static const char script[] =
    "import sys\n"
    "from importlib import machinery, util\n"
    "sys.path[:] = filter(None, sys.path)\n" /* without the working directory */
    "folder, *arguments = sys.argv[1:]\n"
    "spec = folder and machinery.PathFinder.find_spec('ptxemu', [folder])\n"
    "try:\n"
    "    if spec:\n"
    "        sys.path.append(folder)\n"
    "        sys.modules['ptxemu'] = util.module_from_spec(spec)\n"
    "        spec.loader.exec_module(sys.modules['ptxemu'])\n"
    "    from ptxemu.serve.__main__ import main\n"
    "except Exception:\n"
    "    sys.exit(1)\n"
    "sys.exit(main(arguments))\n";

/* `isolated`: not even what the environment says about Python is heard, as that may be meant for another one. */
static int spawn(const char *path, bool isolated, int theirs) {
  char folder[PX_PATH] = "", *arguments[] = {(char *)path, "-I", "-c", (char *)script, folder, "3", NULL};
  if (!isolated) memmove(&arguments[1], &arguments[2], sizeof arguments - 2 * sizeof *arguments);
  if (!px_package_folder(folder)) *folder = 0;
  char **variables = environment();
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t how;
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_init(&how);
  posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setpgroup(&how, 0); /* Ctrl-C is for the program; if it ends, so does the server */
  posix_spawnattr_setsigmask(&how, &none);
  posix_spawnattr_setsigdefault(&how, &all);
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", 0, 0);
  posix_spawn_file_actions_adddup2(&actions, 2, 1);
  posix_spawn_file_actions_adddup2(&actions, theirs, SERVER_FD);
  if (posix_spawn_file_actions_addclosefrom_np) posix_spawn_file_actions_addclosefrom_np(&actions, SERVER_FD + 1);
  int error = variables ? posix_spawn(&server, path, &actions, &how, arguments, variables) : ENOMEM;
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&how);
  free(variables);
  return error;
}

/* Start a process of the Python at a path, which then says whether it has ptxemu. */
static bool begin_with(const char *path, bool isolated) {
  int ends[2];
  if (access(path, X_OK) || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) return false;
  owner = getpid();
  channel = ends[0];
  int error = spawn(path, isolated, ends[1]);
  close(ends[1]);
  if (!error) return true;
  server = 0;
  stop();
  return false;
}

static bool is_greeted(void) {
  char *hello = NULL;
  if (!greeted) greeted = receive_message(&hello, 1, now_ms() + START_MS) && !strcmp(hello, "ptxemu");
  free(hello);
  if (!greeted) stop();
  return greeted;
}

static bool start_with(const char *path, bool isolated) { return begin_with(path, isolated) && is_greeted(); }

/* NULL, or what is wrong. */
static char *start(void) {
  char path[PX_PATH], *tried = text_of("%s", "");
  const char *why;
  int found = 0;
  if (channel >= 0 && owner != getpid()) stop(); /* forked: the server is the parent's */
  if (channel >= 0) (void)is_greeted();          /* it may have been started before it was needed */
  for (unsigned i = 0; channel < 0 && (found = px_python(i, path, &why)) >= 0; i++) {
    if (!found || start_with(path, true) || start_with(path, false)) continue;
    char *more = text_of("%s%s%s (%s)", tried ? tried : "", tried && *tried ? ", " : "", path, why);
    free(tried);
    tried = more;
  }
  char *problem = NULL;
  if (channel < 0)
    problem = text_of("no Python that has ptxemu was found to compile with; tried %s", tried && *tried ? tried : "nothing");
  free(tried);
  return problem;
}

/* ---- requests ---- */

static struct iovec field(const char *text) { return (struct iovec){(void *)text, strlen(text)}; }

/* Ask for something about an image; `kernel` may be NULL, then `more` is nothing. */
static bool request_of(const char *verb, const px_image *image, const char *kernel, struct iovec more) {
  char arch[16];
  snprintf(arch, sizeof arch, "%u", image->arch);
  struct iovec fields[MOST_FIELDS] = {field(verb), field(arch), {(void *)image->data, image->size}, field(image->key)};
  if (!kernel) return send_message(fields, MOST_FIELDS - 2);
  fields[4] = field(kernel);
  fields[5] = more;
  return send_message(fields, MOST_FIELDS);
}

static bool request(const px_image *image, const char *kernel, const uint32_t block[3]) {
  char shape[48];
  if (!kernel) return request_of("load", image, NULL, (struct iovec){0});
  snprintf(shape, sizeof shape, "%u,%u,%u", block[0], block[1], block[2]);
  return request_of("code", image, kernel, field(shape));
}

/* When to give up on an answer: after the server's own deadline. */
static int64_t patience(void) {
  const char *given = getenv("PTXEMU_COMPILE_TIMEOUT");
  double seconds = given ? strtod(given, NULL) : 0;
  if (!(seconds > 0 && seconds < 1e6)) seconds = DEFAULT_DEADLINE;
  return now_ms() + (int64_t)(seconds * 1000) + GRACE_MS;
}

static int status_of(const char *name) {
  static const char *const names[] = {"ok", "invalid", "unsupported"};
  for (int i = 0; i < PX_FAILED; i++)
    if (!strcmp(name, names[i])) return i;
  return PX_FAILED;
}

/* The answer to the last request; -1 if there is none. */
static int answer(char **text) {
  char *fields[ANSWER_FIELDS] = {NULL};
  bool came = receive_message(fields, ANSWER_FIELDS, patience());
  int status = came ? status_of(fields[0]) : -1;
  free(fields[0]);
  if (came)
    *text = fields[1];
  else
    free(fields[1]);
  return status;
}

void px_server_expect(void) {
  char path[PX_PATH];
  const char *why;
  if (!px_runs_in_python() || !px_compiles_lately()) return;
  pthread_mutex_lock(&lock);
  int found = channel < 0 ? px_python(0, path, &why) : -1;
  for (unsigned i = 1; !found; i++) found = px_python(i, path, &why);
  if (found > 0) (void)begin_with(path, true);
  pthread_mutex_unlock(&lock);
}

void px_server_prepare(const px_image *image) {
  pthread_mutex_lock(&lock);
  char *problem = awaited ? NULL : start();
  if (!problem && !awaited) awaited = request(image, NULL, NULL);
  free(problem); /* px_compile meets it again */
  pthread_mutex_unlock(&lock);
}

static bool drop_awaited(void) {
  char *text = NULL;
  if (!awaited) return true;
  awaited = false;
  int status = answer(&text);
  free(text);
  return status >= 0;
}

/* The end of a request, with the lock held: PX_*, and what `text` says of it. */
static int outcome(bool sent, char **text) {
  int status = sent ? answer(text) : -1;
  if (status >= 0) return status;
  stop();
  *text = text_of("the compile server died");
  return PX_FAILED;
}

int px_compile(const px_image *image, const char *kernel, const uint32_t block[3], char **text) {
  pthread_mutex_lock(&lock);
  *text = start();
  int status = *text ? PX_FAILED : outcome(drop_awaited() && request(image, kernel, block), text);
  pthread_mutex_unlock(&lock);
  return status;
}

bool px_server_placed(const char *key, const char *kernel, uint64_t section, char **text) {
  char address[24];
  snprintf(address, sizeof address, "%llu", (unsigned long long)section);
  const struct iovec fields[] = {field("placed"), field(key), field(kernel), field(address)};
  pthread_mutex_lock(&lock);
  *text = start();
  int status = PX_FAILED;
  if (!*text) status = outcome(drop_awaited() && send_message(fields, sizeof fields / sizeof *fields), text);
  pthread_mutex_unlock(&lock);
  return status == PX_COMPILED;
}

/* ---- what checkers have found ---- */

/* Begin a request that is no compilation, with the lock held; false: there is no server, which is said. */
static bool ready(void) {
  char *problem = start();
  if (problem) fprintf(stderr, "ptxemu: findings have no lines: %s\n", problem);
  free(problem);
  return channel >= 0 && drop_awaited();
}

/* The end of it: whether the answer is "ok". */
static bool settle(bool sent, char **text) {
  *text = NULL;
  int status = sent ? answer(text) : -1;
  if (status < 0) stop();
  if (status > PX_COMPILED && *text) fprintf(stderr, "ptxemu: %s\n", *text);
  return status == PX_COMPILED;
}

bool px_server_found(const px_image *image, const char *kernel, const void *findings, size_t size) {
  char *text;
  pthread_mutex_lock(&lock);
  bool taken = settle(ready() && request_of("found", image, kernel, (struct iovec){(void *)findings, size}), &text);
  pthread_mutex_unlock(&lock);
  free(text);
  return taken;
}

int px_server_report(const void *counts, size_t size, const void *findings, size_t findings_size) {
  char *text;
  const struct iovec fields[] = {field("report"), {(void *)counts, size}, {(void *)findings, findings_size}};
  pthread_mutex_lock(&lock);
  bool told = settle(ready() && send_message(fields, sizeof fields / sizeof *fields), &text);
  int count = told && text ? (int)strtol(text, NULL, 10) : -1;
  pthread_mutex_unlock(&lock);
  free(text);
  return count;
}

void px_server_stop(void) {
  pthread_mutex_lock(&lock);
  stop();
  pthread_mutex_unlock(&lock);
}
