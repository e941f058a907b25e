/* linked.c: images that hold several others. */
#include "linked.h"
#include <stdlib.h>
#include <string.h>

enum { MAGIC = 8, UNIT = 8, MOST_INPUTS = 1024, LARGEST = 1 << 30 };
static const char magic[MAGIC + 1] = "PXLINKED";

/* The head, then for each input its size, and its bytes with zeros up to a multiple of UNIT. Sizes are little-endian. */
typedef struct image_head {
  char magic[MAGIC];
  uint64_t bytes; /* of all */
  uint64_t inputs;
} image_head;

size_t px_linked_size(const void *image) {
  image_head head;
  if (strncmp(image, magic, MAGIC) != 0) return 0;
  memcpy(&head, image, sizeof head);
  return head.bytes;
}

static bool has_room(px_linked *linked, size_t end) {
  if (end <= linked->room) return true;
  size_t room = end * 2;
  uint8_t *grown = realloc(linked->image, room);
  if (!grown) return false;
  linked->image = grown;
  linked->room = room;
  return true;
}

bool px_linked_add(px_linked *linked, const void *data, size_t size) {
  const uint64_t bytes = size;
  size_t at = linked->inputs ? linked->bytes : sizeof(image_head);
  if (linked->inputs == MOST_INPUTS || size > LARGEST) return false;
  size_t end = at + sizeof bytes + (size + UNIT - 1) / UNIT * UNIT;
  if (end > LARGEST || !has_room(linked, end)) return false;
  memcpy(linked->image + at, &bytes, sizeof bytes);
  at += sizeof bytes;
  memcpy(linked->image + at, data, size);
  memset(linked->image + at + size, 0, end - at - size);
  linked->bytes = end;
  linked->inputs++;
  return true;
}

void px_linked_end(px_linked *linked) {
  image_head head = {.bytes = linked->bytes, .inputs = linked->inputs};
  memcpy(head.magic, magic, MAGIC);
  memcpy(linked->image, &head, sizeof head);
}

void px_linked_free(px_linked *linked) {
  free(linked->image);
  *linked = (px_linked){0};
}
