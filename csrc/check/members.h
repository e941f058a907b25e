/* members.h: instructions with a membermask at which lanes have been whose others are still to come. */
#ifndef PTXEMU_MEMBERS_H
#define PTXEMU_MEMBERS_H
#include <pthread.h>
#include "host.h"
#include "internal.h"

enum { PE_MOST_MEETINGS = 8 }; /* of a warp: of more, the oldest is forgotten */

/* Lanes that `members` names, of which some have come. */
typedef struct pe_warp_meeting {
  uint32_t members, came, pos;
} pe_warp_meeting;

typedef struct pe_warp_meetings {
  const pe_warp *warp;
  uint64_t launch;
  uint32_t ctaid[3], count;
  pe_warp_meeting of[PE_MOST_MEETINGS]; /* the oldest first */
} pe_warp_meetings;

typedef struct pe_members {
  pthread_mutex_t mutex;
  pe_warp_meetings *warps;
  size_t count, room;
  _Atomic size_t any; /* `count`, for those without the mutex */
} pe_members;

#endif
