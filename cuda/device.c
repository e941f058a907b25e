/* device.c: the one device, and what programs ask about it. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core.h"
#include "properties.h"
#include "px_check.h"
#include "px_stream.h"
#include "registry.h"
#include "server.h"

enum {
  OLDEST_ARCH = 75,
  NEWEST_ARCH = 121,
  DEFAULT_ARCH = 80,
  DEFAULT_STACK = 16 << 10,
  HOST_STACK_RATIO = 8,
  LONGEST_LIKE = 15
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static px_device device;
static px_device *ready; /* the device once it has started; written under the lock, and read without */
static bool forked;      /* the memory and the threads are the parent's */

static void after_fork(void) { forked = ready != NULL; }

static unsigned processors(void) {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) ? 1 : (unsigned)CPU_COUNT(&set);
}

/* ---- what the device is to be ---- */

bool px_is_arch(long arch) { return arch >= OLDEST_ARCH && arch <= NEWEST_ARCH; }

static char started_like[LONGEST_LIKE + 1];

const char *px_like(void) {
  const char *given = getenv("PTXEMU_LIKE");
  return started_like[0] ? started_like : given ? given : "";
}

bool px_is_like(const char *like) {
  size_t size = strlen(like);
  if (strcmp(like, "exact") == 0) return true;
  if (size > LONGEST_LIKE || strncmp(like, "sm_", 3)) return false;
  size_t digits = strspn(like + 3, "0123456789");
  return digits >= 2 && digits <= 3 && digits == strcspn(like + 3, "af") && size - 3 - digits <= 1;
}

unsigned px_arch_of(const char *like) {
  long arch = strncmp(like, "sm_", 3) ? 0 : strtol(like + 3, NULL, 10);
  return px_is_arch(arch) ? (unsigned)arch : 0;
}

/* PTXEMU_ARCH: 75 to 121; or the architecture that PTXEMU_LIKE names, such as sm_89. */
static unsigned arch_of_environment(void) {
  const char *given = getenv("PTXEMU_ARCH");
  long arch = given ? strtol(given, NULL, 10) : px_arch_of(px_like());
  return px_is_arch(arch) ? (unsigned)arch : DEFAULT_ARCH;
}

static bool environment_says(const char *name, const char *value) {
  const char *given = getenv(name);
  return given && strcmp(given, value) == 0;
}

/* false: they say what cannot be. */
static bool settings_of_environment(px_settings *out) {
  *out = (px_settings){.arch = arch_of_environment(),
                       .slack = environment_says("PTXEMU_GUARD", "strict") ? 0 : PE_CUDA_SLACK,
                       .host_memory = environment_says("PTXEMU_HOST_MEMORY", "1"),
                       .blocking = environment_says("CUDA_LAUNCH_BLOCKING", "1")};
  return px_checks_wanted(out->host_memory, &out->checks);
}

/* Half of the machine's memory. */
static uint64_t default_capacity(void) { return (uint64_t)sysconf(_SC_PHYS_PAGES) / 2 * (uint64_t)sysconf(_SC_PAGESIZE); }

static void start(const px_settings *settings) {
  device.capacity = settings->capacity ? settings->capacity : default_capacity();
  device.arch = settings->arch ? settings->arch : DEFAULT_ARCH;
  device.processors = processors();
  device.quiet = settings->quiet;
  device.blocking = settings->blocking;
  if (settings->like) strncpy(started_like, settings->like, LONGEST_LIKE);
  pe_device *parts = &device.parts;
  *parts = (pe_device){.surfaces = pe_surface_table_new(),
                       .textures = pe_texture_table_new(),
                       .stack = DEFAULT_STACK,
                       .host_stack = DEFAULT_STACK * HOST_STACK_RATIO,
                       .workers = settings->workers,
                       .host_memory = settings->host_memory};
  parts->arena = parts->surfaces && parts->textures ? pe_arena_create(device.capacity) : NULL;
  if (!parts->arena) return;
  pe_arena_set_slack(parts->arena, settings->slack);
  if (!px_check_begin(parts->arena, settings->checks)) return;
  __atomic_store_n(&ready, &device, __ATOMIC_RELEASE);
}

bool px_device_start(const px_settings *settings) {
  static bool watched;
  pthread_mutex_lock(&lock);
  if (!watched) watched = !pthread_atfork(NULL, NULL, after_fork);
  bool first = !ready;
  if (first) start(settings);
  first = first && ready;
  pthread_mutex_unlock(&lock);
  return first;
}

px_device *px_device_get(void) {
  if (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE)) {
    px_settings settings;
    if (settings_of_environment(&settings) && px_device_start(&settings)) {
      px_registry_prepare();
      px_server_expect();
    }
  }
  return forked ? NULL : __atomic_load_n(&ready, __ATOMIC_ACQUIRE);
}

void px_set_stack(uint64_t bytes) {
  device.parts.stack = bytes;
  device.parts.host_stack = (bytes > DEFAULT_STACK ? bytes : DEFAULT_STACK) * HOST_STACK_RATIO;
}

/* ---- attributes ---- */

int px_attribute(int attribute) {
  switch (attribute) {
    case 1: /* threads of a block */
    case 2: /* extents of a block */
    case 3: return PE_MAX_BLOCK_XY;
    case 4: return PE_MAX_BLOCK_Z;
    case 5: return PE_MAX_GRID_X; /* extents of a grid */
    case 6:
    case 7: return PE_MAX_GRID_YZ;
    case 8: return 48 << 10;    /* shared memory of a block */
    case 9: return 64 << 10;    /* constant memory */
    case 10: return 32;         /* threads of a warp */
    case 11: return 0x7fffffff; /* pitch of a copy */
    case 12:
    case 82: return 65536; /* registers */
    case 13:
    case 36: return 1000000; /* clocks in kHz */
    case 14: return 512;     /* alignment of textures */
    case 15: return 1;       /* copies beside kernels */
    case 16: return (int)device.processors;
    case 17: return 0; /* no time limit */
    case 18: return 1; /* memory is the host's */
    case 19: return 1;
    case 20: return 0; /* any number of contexts */
    case 21:
    case 52:
    case 53:
    case 77: return 32768; /* extents of textures */
    case 22:
    case 23:
    case 27:
    case 28:
    case 45:
    case 46:
    case 73:
    case 74: return 32768;
    case 24:
    case 25:
    case 26:
    case 47:
    case 48:
    case 49: return 16384;
    case 29:
    case 43:
    case 54: return 2046;
    case 30: return 512;
    case 31: return 1; /* kernels of several streams run side by side */
    case 32:
    case 33:
    case 34:
    case 35:
    case 50: return 0;
    case 37: return 64;      /* bits of the memory bus */
    case 38: return 1 << 20; /* bytes of the second-level cache */
    case 39: return 1024;    /* threads of a multiprocessor */
    case 40: return 1;       /* copy engines */
    case 41: return 1;       /* one address space with the host */
    case 42: return 32768;
    case 51: return 32; /* alignment of rows of textures */
    case 55:
    case 56:
    case 57:
    case 61:
    case 63:
    case 64:
    case 66:
    case 67: return 32768; /* extents of surfaces */
    case 58:
    case 59:
    case 60: return 16384;
    case 62:
    case 65:
    case 68: return 2046;
    case 69: return 1 << 28; /* texels of linear memory */
    case 70:
    case 71: return 65000;
    case 72: return 1 << 21;
    case 75: return (int)device.arch / 10;
    case 76: return (int)device.arch % 10;
    case 44: /* gathers of texels */
    case 78:
    case 79:
    case 80: return 1;
    case 81: return 228 << 10; /* shared memory of a multiprocessor */
    case 83: return 1;         /* managed memory */
    case 84:
    case 85: return 0;
    case 86: return 1; /* atomic operations on the host's memory */
    case 87: return 2;
    case 88: return (int)device.parts.host_memory; /* kernels can touch memory that CUDA has not given */
    case 89: return 1; /* the host may touch managed memory at any time: no kernel runs beside it */
    case 90:
    case 91:
    case 92: /* operations of streams on memory */
    case 93:
    case 94:
    case 96: return 0;         /* cooperative launches on several devices */
    case 95: return 1;         /* cooperative launches */
    case 97: return 227 << 10; /* most shared memory of a block */
    case 99: return 1;         /* memory of the host can be registered */
    case 98:
    case 100: return 0;
    case 101: return 1;
    case 102: /* memory at addresses that the program reserves, which other processes can have as files */
    case 103: return 1;
    case 104:
    case 105:
    case 107: return 0;
    case 106: return 1; /* blocks of a multiprocessor */
    case 108:
    case 109:
    case 110: return 0;
    case 111: return 1 << 10;
    case 112:
    case 113:
    case 114:
    case 116:
    case 117:
    case 118: return 0;
    case 115: return 1;                 /* memory pools */
    case 119: return 1;                 /* which other processes can have as files */
    case 120: return device.arch >= 90; /* clusters */
    case 121:
    case 122:
    case 123:
    case 124: return 0;
    case 125: return 1; /* events of other processes */
    case 126: return 1;
    case 127: /* tensor maps */
    case 128:
    case 129:
    case 130:
    case 132: /* multicast */
    case 133:
    case 135:
    case 136:
    case 137:
    case 138:
    case 139:
    case 140:
    case 141: return 0;
    case 131:
    case 134: return 0;
    case 142:
    case 143:
    case 144:
    case 145:
    case 146:
    case 147: return 0;
    default: return -1;
  }
}

PX_API cudaError_t cudaDeviceGetAttribute(int *value, int attribute, int number) {
  PX_ENTER();
  PX_REQUIRE(number == 0, cudaErrorInvalidDevice);
  int found = px_attribute(attribute);
  PX_REQUIRE(value && found >= 0, cudaErrorInvalidValue);
  *value = found;
  return px_report(cudaSuccess);
}

/* ---- properties: what an attribute says, and a few more ---- */

#define FIELD(type, name, count, number) type name count;
#define NO_FIELD(type, name, count, number)
typedef struct px_properties_12 {
  PX_PROPERTIES(FIELD, FIELD, NO_FIELD)
} px_properties_12;
typedef struct px_properties_13 {
  PX_PROPERTIES(FIELD, NO_FIELD, FIELD)
} px_properties_13;

/* Elements after the first have the attributes that follow. */
#define FILL(type, name, count, number)                                    \
  for (size_t i = 0; number && i < sizeof out->name / sizeof(type); i++) { \
    type value = (type)px_attribute(number + (int)i);                      \
    memcpy((char *)&out->name + i * sizeof value, &value, sizeof value);   \
  }
#define NO_FILL(type, name, count, number)

#define REST()                             \
  do {                                     \
    strcpy(out->name, "ptxemu CPU");       \
    memcpy(out->uuid, "ptxemu CPU 0", 12); \
    out->totalGlobalMem = device.capacity; \
  } while (0)

PX_API cudaError_t cudaGetDeviceProperties_v2(px_properties_12 *out, int number) {
  PX_ENTER();
  PX_REQUIRE(out, cudaErrorInvalidValue);
  PX_REQUIRE(number == 0, cudaErrorInvalidDevice);
  memset(out, 0, sizeof *out);
  PX_PROPERTIES(FILL, FILL, NO_FILL)
  REST();
  return px_report(cudaSuccess);
}

/* CUDA 11 has the first of these. */
PX_API cudaError_t px_properties_of_11(void *out, int number) {
  px_properties_12 all;
  PX_REQUIRE(out, cudaErrorInvalidValue);
  cudaError_t error = cudaGetDeviceProperties_v2(&all, number);
  if (!error) memcpy(out, &all, offsetof(px_properties_12, hostRegisterSupported));
  return error;
}

PX_API cudaError_t px_properties_of_13(px_properties_13 *out, int number) {
  PX_ENTER();
  PX_REQUIRE(out, cudaErrorInvalidValue);
  PX_REQUIRE(number == 0, cudaErrorInvalidDevice);
  memset(out, 0, sizeof *out);
  PX_PROPERTIES(FILL, NO_FILL, FILL)
  REST();
  return px_report(cudaSuccess);
}

/* ---- reset ---- */

enum { MOST_HOOKS = 8 };
static void (*hooks[MOST_HOOKS])(void);

void px_at_reset(void (*function)(void)) {
  pthread_mutex_lock(&lock);
  for (unsigned i = 0; i < MOST_HOOKS; i++) {
    if (hooks[i] && hooks[i] != function) continue;
    hooks[i] = function;
    break;
  }
  pthread_mutex_unlock(&lock);
}

cudaError_t px_device_reset(void) {
  if (!forked && !px_may_wait()) return cudaErrorNotPermitted;
  if (!forked) px_stop_all();
  px_registry_unload();
  for (unsigned i = 0; i < MOST_HOOKS && hooks[i]; i++) hooks[i]();
  if (!forked) px_end_all();
  pthread_mutex_lock(&lock);
  if (ready && !forked) {
    __atomic_store_n(&ready, NULL, __ATOMIC_RELEASE);
    px_check_end();
    pe_arena_destroy(device.parts.arena);
    pe_surface_table_free(device.parts.surfaces);
    pe_texture_table_free(device.parts.textures);
    device.parts = (pe_device){0};
  }
  pthread_mutex_unlock(&lock);
  px_forget_errors();
  return cudaSuccess;
}
