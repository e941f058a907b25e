/* handle.c: surfaces and textures in the device's tables. */
#include <pthread.h>
#include "core.h"

enum { SLOTS = 0xfffff };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void px_handles_lock(void) { pthread_mutex_lock(&lock); }

void px_handles_unlock(void) { pthread_mutex_unlock(&lock); }

uint64_t px_surface_handle(const pe_surface_desc *surface) {
  pe_surface_table *table = px_device_get()->parts.surfaces;
  px_handles_lock();
  uint64_t handle = pe_surface_table_take(table, 1);
  if (handle && pe_surface_table_set(table, handle & SLOTS, handle >> 32, surface)) {
    pe_surface_table_retire(table, handle);
    handle = 0;
  }
  px_handles_unlock();
  return handle;
}

uint64_t px_texture_handle(const pe_texture *texture) {
  pe_texture_table *table = px_device_get()->parts.textures;
  px_handles_lock();
  uint64_t handle = pe_texture_table_take(table, 1);
  if (handle && pe_texture_table_set(table, handle & SLOTS, handle >> 32, texture)) {
    pe_texture_table_retire(table, handle);
    handle = 0;
  }
  px_handles_unlock();
  return handle;
}

bool px_surface_bind(uint64_t handle, const pe_surface_desc *surface) {
  px_handles_lock();
  int error = pe_surface_table_set(px_device_get()->parts.surfaces, handle & SLOTS, handle >> 32, surface);
  px_handles_unlock();
  return !error;
}

bool px_texture_bind(uint64_t handle, const pe_texture *texture) {
  px_handles_lock();
  int error = pe_texture_table_set(px_device_get()->parts.textures, handle & SLOTS, handle >> 32, texture);
  px_handles_unlock();
  return !error;
}

bool px_surface_close(uint64_t handle) {
  pe_surface_table *table = px_device_get()->parts.surfaces;
  px_handles_lock();
  bool live = pe_surface_table_elements(table, handle) == 1;
  if (live) pe_surface_table_retire(table, handle);
  px_handles_unlock();
  return live;
}

bool px_texture_close(uint64_t handle) {
  pe_texture_table *table = px_device_get()->parts.textures;
  px_handles_lock();
  bool live = pe_texture_table_elements(table, handle) == 1;
  if (live) pe_texture_table_retire(table, handle);
  px_handles_unlock();
  return live;
}
