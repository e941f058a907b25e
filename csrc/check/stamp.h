/* stamp.h: who has made an access of a word, when and by which instruction, in 64 bits, so that those of many words are compared
 * and stored as vectors, by compiled code, too (ptxemu/lower/core/stamps.py). */
#ifndef PTXEMU_STAMP_H
#define PTXEMU_STAMP_H
#include <stdbool.h>
#include <stdint.h>
#include "host.h"

/* CDEF BEGIN */
/* From the highest bits down: when, as a number that grows (a period of a CTA, order.h, and the clock of the warp in it), the thread
 * in the CTA, and of a read SEVERAL if more lanes of its warp have read the word at that time; ROW if the bytes of the word are those
 * of one lane after another from this one on, each of which has one, or two if there is UPDATE; which bytes of the word it is of;
 * STRONG and UPDATE, and the site.  Nobody has been where there is PE_STAMP_BLANK, and where there is 0 nothing is kept. */
typedef uint64_t pe_stamp;

enum {
  PE_STAMP_BLANK = 1,
  PE_SITE_BITS = 17,
  PE_STAMP_BYTES_AT = PE_SITE_BITS + 2,
  PE_STAMP_ROW_AT = PE_STAMP_BYTES_AT + 4,
  PE_STAMP_LANE_AT = PE_STAMP_ROW_AT + 1,
  PE_STAMP_SEVERAL_AT = PE_STAMP_LANE_AT + 5,
  PE_STAMP_WARP_AT = PE_STAMP_SEVERAL_AT + 1,
  PE_STAMP_CLOCK_AT = PE_STAMP_WARP_AT + 5,
  PE_CLOCK_BITS = 3,
  PE_STAMP_PERIOD_AT = PE_STAMP_CLOCK_AT + PE_CLOCK_BITS,
  PE_PERIOD_BITS = 63 - PE_STAMP_PERIOD_AT, /* the highest bit is clear, so that differences of stamps have signs */
  PE_PERIOD_CLOCKS = 1 << PE_CLOCK_BITS,
};

/* What compiled code knows of a warp: of accesses that find stamps that do not matter it leaves the stamps, and does not tell. */
typedef struct pe_stamping {
  pe_stamp now;     /* of its next access: period, clock and warp */
  pe_stamp floor;   /* in shared memory, lesser stamps do not matter: PE_STAMP_BLANK, if all may */
  pe_stamp span;    /* elsewhere, so many do not, ... */
  pe_stamp ancient; /* what follows changes seldom: lesser ones do not, either, there */
  pe_stamp first;   /* ... from this one on */
  pe_stamp least;   /* a read of another CTA stays if it is no less, ... */
  pe_stamp begin,
      length; /* as none is of so many from one on; PE_STAMP_STAYS tells whether it is plain and of the whole word */
  uint64_t writes, reads; /* the stamps of address `a`, its last write and last read: at 2 * a from here */
  uint64_t sites;         /* the source offset of each site, plus 1 */
  uint64_t written;       /* of warp 0: a pe_ways that compiled code leaves (quiet.h), or 0 */
} pe_stamping;

/* An access of a CTA's shared memory by a pattern of lanes (pe_pattern_site), or some off one base, which leave their stamps if another
 * one may race with them before all warps meet the next time. */
typedef struct pe_logged {
  uint64_t site, base;
  pe_stamp now;
  uint64_t lanes; /* and from PE_LOGGED_AT on, how many they are: their sites lie one after another */
} pe_logged;

/* An access that a CTA before has listed at its place in a turn (race_claims.c): its site and its warp, or 0; and its base. */
typedef struct pe_foreseen {
  uint64_t who, base;
} pe_foreseen;

/* Who has made the accesses of a line of shared memory that are listed (race_claims.c): the turn, the warp, where its family begins
 * (pe_pattern_site), whether it is one of several that read, and whether it writes. */
typedef struct pe_claim {
  uint64_t who, family;
} pe_claim;

enum {
  PE_MOST_LOGGED = 512,
  PE_LOGGED_AT = 32,
  PE_LINE_LOG2 = 7,        /* bytes of a line */
  PE_CLAIMS = 1024,        /* lines of which it is kept */
  PE_LONGEST_CLAIM = 1024, /* bytes from the first to the last of an access */
  PE_CLAIM_WARP_AT = PE_LINE_LOG2 + 11,
  PE_CLAIM_TURN_AT = PE_CLAIM_WARP_AT + 5,
  PE_FORESEEN_WARP_AT = 56,
};

/* What has been done in it: compiled code finds this behind the stampings of all warps. */
typedef struct pe_shared_log {
  pe_stamp written; /* no stamp of a plain write is greater, but for its lane and site, */
  pe_stamp strong;  /* and none of a strong one, */
  pe_stamp read;    /* and none of a read that is not listed */
  uint64_t turn;    /* grows whenever all warps have met: what was before is before all that comes */
  uint64_t exact;   /* in no later turn there are accesses that are not listed */
  uint64_t wrote;   /* the last turn in which writes are listed, and lines have claims */
  uint64_t count;
  uint64_t foreseen; /* if not 0, all that is listed is the first of so many accesses, which do not race: */
  uint64_t expected; /* pe_foreseen[] */
  pe_logged accesses[PE_MOST_LOGGED];
  pe_claim claims[PE_CLAIMS];
} pe_shared_log;
/* CDEF END */

#define PE_STAMP_UPDATE (1ull << PE_SITE_BITS)
#define PE_STAMP_STRONG (2ull << PE_SITE_BITS)
#define PE_STAMP_BYTES (0xfull << PE_STAMP_BYTES_AT)
#define PE_STAMP_STAYS(stamp) (((stamp) & (PE_STAMP_STRONG | PE_STAMP_BYTES)) == PE_STAMP_BYTES)
#define PE_STAMP_NEVER (((1ull << PE_PERIOD_BITS) - 1) << PE_STAMP_PERIOD_AT)
/* The bytes of the word have stamps of their own (race_bytes.c), which all have to be looked at. */
#define PE_STAMP_SPLIT (((1ull << PE_PERIOD_BITS) - 2) << PE_STAMP_PERIOD_AT)
/* Stamps that differ by less are of one thread, or one row, at one time. */
#define PE_STAMP_ROW (1ull << PE_STAMP_ROW_AT)
#define PE_STAMP_LANE (1ull << PE_STAMP_LANE_AT)
#define PE_STAMP_LANES (31 * PE_STAMP_LANE)
#define PE_STAMP_WARPS (31ull << PE_STAMP_WARP_AT)
#define PE_STAMP_SEVERAL (1ull << PE_STAMP_SEVERAL_AT)

static inline uint32_t pe_stamp_lane(pe_stamp s) { return s >> PE_STAMP_LANE_AT & 31; }
static inline uint32_t pe_stamp_warp(pe_stamp s) { return s >> PE_STAMP_WARP_AT & 31; }
static inline uint32_t pe_stamp_clock(pe_stamp s) { return s >> PE_STAMP_CLOCK_AT & (PE_PERIOD_CLOCKS - 1); }
static inline uint32_t pe_stamp_period(pe_stamp s) { return (uint32_t)(s >> PE_STAMP_PERIOD_AT); }
/* Of an asynchronous copy that nobody has waited for (copies.h): it comes after all others. */
static inline bool pe_stamp_is_pending(pe_stamp s) { return s >= PE_STAMP_NEVER; }
static inline uint32_t pe_stamp_site(pe_stamp s) { return s & ((1u << PE_SITE_BITS) - 1); }

/* Whether the bytes of its word may have different ones. */
static inline bool pe_stamp_has_parts(pe_stamp s) { return s == PE_STAMP_SPLIT || s & PE_STAMP_ROW; }

/* That of a row of lanes, of which one is the first, with so many bytes each: 1 or 2. */
static inline pe_stamp pe_stamp_of_row(pe_stamp first, uint64_t each) {
  return first | PE_STAMP_BYTES | PE_STAMP_ROW | (each == 2 ? PE_STAMP_UPDATE : 0);
}

/* That of a byte of a word which is not split. */
static inline pe_stamp pe_stamp_of_byte(pe_stamp s, uint32_t byte) {
  uint32_t each = s & PE_STAMP_UPDATE ? 2 : 1, lane = byte / each;
  pe_stamp first = s & ~(PE_STAMP_ROW | PE_STAMP_BYTES | PE_STAMP_UPDATE), bytes = (1ull << each) - 1;
  return s & PE_STAMP_ROW ? (first + lane * PE_STAMP_LANE) | bytes << (PE_STAMP_BYTES_AT + lane * each) : s;
}

/* What a read leaves where the stamp of another one is: it is one of several if lanes of its warp have made both at one time. */
static inline pe_stamp pe_stamp_behind(pe_stamp before, pe_stamp now) {
  pe_stamp differ = before ^ now, same = PE_STAMP_BYTES | PE_STAMP_STRONG | PE_STAMP_UPDATE;
  if (differ - PE_STAMP_ROW >= (1ull << PE_STAMP_WARP_AT) - PE_STAMP_ROW) return now; /* as it mostly is */
  return differ & same ? now : now | PE_STAMP_SEVERAL;
}

#endif
