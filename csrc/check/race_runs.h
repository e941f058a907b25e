/* race_runs.h: the checker `race` (race.c) at many words at once: words side by side, of lanes side by side, the stamps of
 * which are compared and stored as vectors. */
#ifndef PTXEMU_RACE_RUNS_H
#define PTXEMU_RACE_RUNS_H
#include "race_access.h"

/* Words side by side in one chunk: 2^`each` of one lane after another; or PE_ALL_OF_ONE. `several` read them: these lanes are the last
 * of them. */
typedef struct pe_race_run {
  uint64_t word;
  uint32_t count, lane, each;
  bool several;
} pe_race_run;

enum { PE_STAMPS = 8 }; /* that are compared at once */
typedef uint64_t pe_stamps __attribute__((vector_size(8 * PE_STAMPS), aligned(8)));
typedef int64_t pe_signed_stamps __attribute__((vector_size(8 * PE_STAMPS), aligned(8)));

/* Ones where one number is less than another, if the highest bits of both are clear: before AVX-512 there are no other comparisons. */
PE_INLINE pe_stamps pe_are_less(pe_stamps a, pe_stamps b) { return (pe_stamps)((pe_signed_stamps)a < (pe_signed_stamps)b); }

/* One number everywhere. */
PE_INLINE pe_stamps pe_all_are(pe_stamp s) { return s - (pe_stamps){0}; }

typedef struct pe_lane_numbers {
  _Alignas(64) uint64_t of[PE_STAMPS];
} pe_lane_numbers;

/* Of the first words of a run, by its `each`. */
static const pe_lane_numbers pe_lanes_of_words[] = {
  {{0, 1, 2, 3, 4, 5, 6, 7}}, {{0, 0, 1, 1, 2, 2, 3, 3}}, {{0, 0, 0, 0, 1, 1, 1, 1}}, {{0}}};
enum { PE_ALL_OF_ONE = sizeof pe_lanes_of_words / sizeof *pe_lanes_of_words - 1 };

/* What a run leaves at its words: stamps of the first of them, and the distance to those of the next. */
typedef struct pe_trail {
  pe_stamps first;
  uint64_t step;
} pe_trail;

/* The stamp of its first word. */
PE_INLINE pe_stamp pe_stamp_of_run(pe_stamp of_lane_0, const pe_race_run *r) {
  return (of_lane_0 + r->lane * PE_STAMP_LANE) | PE_STAMP_BYTES | (r->several ? PE_STAMP_SEVERAL : 0);
}

PE_INLINE pe_trail pe_trail_of(pe_stamp of_lane_0, const pe_race_run *r) {
  pe_stamps lanes = *(const pe_stamps *)pe_lanes_of_words[r->each].of;
  return (pe_trail){pe_stamp_of_run(of_lane_0, r) + (lanes << PE_STAMP_LANE_AT),
                    r->each == PE_ALL_OF_ONE ? 0 : ((uint64_t)PE_STAMPS >> r->each) * PE_STAMP_LANE};
}

PE_INLINE bool pe_all_harmless(const pe_harmless *h, pe_trail t, uint32_t count, const pe_stamp *stamps) {
  pe_stamps bad = {0}, now = t.first;
  uint32_t i = 0;
  for (; i + PE_STAMPS <= count; i += PE_STAMPS, now += t.step) {
    pe_stamps before = *(const pe_stamps *)(stamps + i);
    bad |= ~(pe_are_less(before, pe_all_are(h->floor)) | pe_are_less(before ^ now, pe_all_are(PE_STAMP_ROW)) |
             (pe_stamps)(before - h->first < h->span));
  }
  uint64_t any = 0;
  for (uint32_t j = 0; j < PE_STAMPS; j++) any |= bad[j];
  for (uint32_t j = 0; i + j < count; j++) any |= !pe_is_harmless(h, stamps[i + j], now[j]);
  return !any;
}

PE_INLINE bool pe_all_stay(const pe_stamping *s, uint32_t count, const pe_stamp *stamps) {
  bool all = true;
  for (uint32_t i = 0; i < count; i++) all &= pe_stays(s, stamps[i]);
  return all;
}

PE_INLINE void pe_leave_stamps(pe_trail t, uint32_t count, pe_stamp *stamps) {
  pe_stamps now = t.first;
  uint32_t i = 0;
  for (; i + PE_STAMPS <= count; i += PE_STAMPS, now += t.step) *(pe_stamps *)(stamps + i) = now;
  for (uint32_t j = 0; i + j < count; j++) stamps[i + j] = now[j];
}

/* The same of reads, behind others (pe_read_left). */
PE_INLINE void pe_leave_reads(pe_trail t, uint32_t count, pe_stamp *stamps, pe_stamp floor) {
  pe_stamps now = t.first;
  uint32_t i = 0;
  for (; i + PE_STAMPS <= count; i += PE_STAMPS, now += t.step) {
    pe_stamps before = *(const pe_stamps *)(stamps + i), differ = before ^ now,
              lanes = differ & (PE_STAMP_ROW | PE_STAMP_LANES | PE_STAMP_SEVERAL);
    pe_stamps rest = (differ ^ lanes) & ~(PE_STAMP_UPDATE - 1);
    pe_stamps left = now | (PE_STAMP_SEVERAL & (pe_stamps)(rest == 0) & (pe_stamps)(lanes != 0));
    pe_stamps since = ~pe_are_less(before, pe_all_are(floor)) & pe_are_less(before, pe_all_are(PE_STAMP_SPLIT)) &
                      (pe_stamps)((before & (PE_STAMP_ROW | PE_STAMP_STRONG | PE_STAMP_BYTES)) == PE_STAMP_BYTES);
    pe_stamps stays = since & (pe_stamps)((differ & PE_STAMP_WARPS) != 0);
    *(pe_stamps *)(stamps + i) = (before & stays) | (left & ~stays);
  }
  for (uint32_t j = 0; i + j < count; j++) stamps[i + j] = pe_read_left(floor, stamps[i + j], now[j]);
}

/* Whether nothing is wrong with accesses of words whose stamps are these; theirs are there, then. */
PE_INLINE bool pe_race_passes_together(const pe_race_use *u, const pe_race_run *r, pe_stamp *own, const pe_stamp *others) {
  pe_trail t = pe_trail_of(u->stamp, r);
  if (u->writes && !pe_all_harmless(&u->harmless, t, r->count, own)) return false;
  if (others && !pe_all_harmless(&u->harmless, t, r->count, others)) return false;
  if (u->writes)
    pe_leave_stamps(t, r->count, own);
  else if (u->shared || !pe_all_stay(u->code, r->count, own))
    pe_leave_reads(t, r->count, own, pe_race_floor(u));
  return true;
}

/* The same of one word. */
PE_INLINE bool pe_race_passes_alone(const pe_race_use *u, const pe_race_run *r, pe_stamp *own, const pe_stamp *others) {
  pe_stamp now = pe_stamp_of_run(u->stamp, r);
  if (u->writes && !pe_is_harmless(&u->harmless, *own, now)) return false;
  if (others && !pe_is_harmless(&u->harmless, *others, now)) return false;
  if (u->writes)
    *own = now;
  else if (u->shared || !pe_stays(u->code, *own))
    *own = pe_read_left(pe_race_floor(u), *own, now);
  return true;
}

PE_INLINE bool pe_race_passes(const pe_race_use *u, const pe_race_run *r) {
  pe_stamp *own = pe_race_own_stamps(u, r->word);
  if (!own) return true;
  const pe_stamp *others = pe_race_other_stamps(u, r->word);
  return r->count == 1 ? pe_race_passes_alone(u, r, own, others) : pe_race_passes_together(u, r, own, others);
}

#endif
