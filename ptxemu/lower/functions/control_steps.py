"""The steps of threaded code that decide which lanes run next, and where (:mod:`ptxemu.lower.functions.steps`).

Each is a routine as others are, written in LLVM IR.  Masks of lanes are 32-bit numbers at places in the frame; the lanes that
run are at CURRENT.  A way is the distance in bytes from the step to the one that it leads to.
"""

from __future__ import annotations

from ptxemu.ir.block_shape import LANES

NOWHERE = 8  # a place for masks that nobody reads
CURRENT = 16
TAKEN, OTHER = 20, 24  # the lanes that part ways at a branch
MOVED = 28  # not 0 if lanes have run since somebody looked
RELEASED = 32  # lanes whose bar.warp.sync is complete

RUN = """define internal i32 @run(ptr %w, ptr %frame, ptr %first) noinline nounwind {
entry:
  %current = getelementptr i8, ptr %frame, i64 16
  br label %loop
loop:
  %step = phi ptr [ %first, %entry ], [ %next, %loop ]
  %mask = load i32, ptr %current, align 4
  %number = load i32, ptr %step, align 4
  %routine.at = getelementptr ptr, ptr @routines, i32 %number
  %routine = load ptr, ptr %routine.at, align 8
  %next = call ptr %routine(ptr %w, ptr %frame, i32 %mask, ptr %step)
  %more = icmp ne ptr %next, null
  br i1 %more, label %loop, label %done
done:
  %reason.at = getelementptr i8, ptr %step, i64 4
  %reason = load i32, ptr %reason.at, align 4
  ret i32 %reason
}"""
"""Executes steps until one says why it is the last."""


def _word(index: int, name: str) -> str:
    """A word of the step."""
    return f"  %{name}.at = getelementptr i8, ptr %step, i64 {4 * index}\n  %{name} = load i32, ptr %{name}.at, align 4\n"


def _place(index: int, name: str) -> str:
    """The place in the frame that a word of the step names, and the mask there."""
    place = f"  %{name}.place = getelementptr i8, ptr %frame, i32 %{name}\n"
    return _word(index, name) + place + f"  %{name}.mask = load i32, ptr %{name}.place, align 4\n"


def _way(index: int, name: str) -> str:
    """The step that a word leads to."""
    return _word(index, f"{name}.way") + f"  %{name} = getelementptr i8, ptr %step, i32 %{name}.way\n"


def _store(mask: str, place: int) -> str:
    return f"  %to.{place} = getelementptr i8, ptr %frame, i64 {place}\n  store i32 {mask}, ptr %to.{place}, align 4\n"


def _next(words: int) -> str:
    return f"  %next = getelementptr i8, ptr %step, i64 {4 * words}\n  ret ptr %next\n"


_ENTER = f"""{_place(1, "waiting")}{_place(2, "running")}  %some = icmp ne i32 %waiting.mask, 0
  br i1 %some, label %run, label %pass
run:
{_store("%waiting.mask", CURRENT)}{_store("1", MOVED)}  store i32 %waiting.mask, ptr %running.place, align 4
  store i32 0, ptr %waiting.place, align 4
{_next(4)}pass:
{_way(3, "behind")}  ret ptr %behind
"""

_ADMIT = f"""{_place(1, "lanes")}  %some = icmp ne i32 %lanes.mask, 0
  br i1 %some, label %run, label %pass
run:
{_store("%lanes.mask", CURRENT)}{_store("1", MOVED)}{_next(3)}pass:
{_way(2, "behind")}  ret ptr %behind
"""

_TEST = f"""{_place(1, "lanes")}{_way(2, "behind")}  %after = getelementptr i8, ptr %step, i64 12
  %some = icmp ne i32 %lanes.mask, 0
  %next = select i1 %some, ptr %after, ptr %behind
  ret ptr %next
"""

_SPLIT = f"""{_place(1, "condition")}  %yes = and i32 %mask, %condition.mask
  %no = xor i32 %mask, %yes
{_store("%yes", TAKEN)}{_store("%no", OTHER)}{_next(2)}"""

_BRANCH = f"""{_word(1, "condition")}  %condition.place = getelementptr i8, ptr %frame, i32 %condition
  %yes = load i1, ptr %condition.place, align 4
  br i1 %yes, label %taken, label %not
taken:
{_next(3)}not:
{_way(2, "other")}  ret ptr %other
"""

_SELECT = f"""{_place(1, "index")}{_word(2, "last")}  %outside = icmp ugt i32 %index.mask, %last
  %entry.number = select i1 %outside, i32 %last, i32 %index.mask
  %table = getelementptr i8, ptr %step, i64 12
  %way.at = getelementptr i32, ptr %table, i32 %entry.number
  %way = load i32, ptr %way.at, align 4
  %target = getelementptr i8, ptr %step, i32 %way
  ret ptr %target
"""

_PLACES = f"""{_word(1, "count")}  %first = getelementptr i8, ptr %step, i64 8
  %end = getelementptr [2 x i32], ptr %first, i32 %count
  br label %loop
loop:
  %pair = phi ptr [ %first, %entry ], [ %next, %loop ]
  %from = load i32, ptr %pair, align 4
  %to.at = getelementptr i8, ptr %pair, i64 4
  %to = load i32, ptr %to.at, align 4
  %source = getelementptr i8, ptr %frame, i32 %from
  %target = getelementptr i8, ptr %frame, i32 %to
  %value = load <16 x i32>, ptr %source, align 64
  store <16 x i32> %value, ptr %target, align 64
  %next = getelementptr i8, ptr %pair, i64 8
  %more = icmp ne ptr %next, %end
  br i1 %more, label %loop, label %done
done:
  ret ptr %end
"""

# Returns the step after the edge if all lanes took the same one.
_SCATTER = f"""{_word(1, "last")}{_word(2, "indices")}{_way(3, "edges")}  %table = getelementptr i8, ptr %step, i64 20
  %vector = getelementptr i8, ptr %frame, i32 %indices
  %values = load <{LANES} x i32>, ptr %vector, align 64
  %current = getelementptr i8, ptr %frame, i64 {CURRENT}
  br label %loop
loop:
  %left = phi i32 [ %mask, %entry ], [ %rest, %sent ]
  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 true)
  %index = extractelement <{LANES} x i32> %values, i32 %lane
  %one = insertelement <{LANES} x i32> poison, i32 %index, i64 0
  %all = shufflevector <{LANES} x i32> %one, <{LANES} x i32> poison, <{LANES} x i32> zeroinitializer
  %equal = icmp eq <{LANES} x i32> %values, %all
  %bits = bitcast <{LANES} x i1> %equal to i{LANES}
  %same = and i32 %bits, %left
  %rest = xor i32 %left, %same
  %outside = icmp ugt i32 %index, %last
  %entry.number = select i1 %outside, i32 %last, i32 %index
  %edge.at = getelementptr i32, ptr %table, i32 %entry.number
  %number = load i32, ptr %edge.at, align 4
  %edge = getelementptr [3 x i32], ptr %edges, i32 %number
  %way = load i32, ptr %edge, align 4
  %some = icmp ne i32 %way, 0
  br i1 %some, label %hand, label %sent
hand:
  store i32 %same, ptr %current, align 4
  %begin = getelementptr i8, ptr %step, i32 %way
  call i32 @run(ptr %w, ptr %frame, ptr %begin)
  br label %sent
sent:
  %place.at = getelementptr i32, ptr %edge, i32 1
  %place = load i32, ptr %place.at, align 4
  %slot = getelementptr i8, ptr %frame, i32 %place
  %waiting = load i32, ptr %slot, align 4
  %more = or i32 %waiting, %same
  store i32 %more, ptr %slot, align 4
  %again = icmp ne i32 %rest, 0
  br i1 %again, label %loop, label %done
done:
  %together = icmp eq i32 %same, %mask
  %after.at = getelementptr i32, ptr %edge, i32 2
  %after = load i32, ptr %after.at, align 4
{_word(4, "apart")}  %onwards = select i1 %together, i32 %after, i32 %apart
  %next = getelementptr i8, ptr %step, i32 %onwards
  ret ptr %next
"""

BODIES = {
    "enter": _ENTER,
    "admit": _ADMIT,
    "test": _TEST,
    "resume": _place(1, "lanes") + _store("%lanes.mask", CURRENT) + _next(2),
    "split": _SPLIT,
    "send": _place(1, "lanes") + _place(2, "waiting") + "  store i32 %lanes.mask, ptr %waiting.place, align 4\n"
    + _way(3, "onwards") + "  ret ptr %onwards\n",
    "join": _place(1, "lanes") + _place(2, "waiting") + "  %all = or i32 %waiting.mask, %lanes.mask\n"
    "  store i32 %all, ptr %waiting.place, align 4\n" + _way(3, "onwards") + "  ret ptr %onwards\n",
    "go": _way(1, "target") + "  ret ptr %target\n",
    "branch": _BRANCH,
    "select": _SELECT,
    "scatter": _SCATTER,
    "places": _PLACES,
    "stop": "  ret ptr null\n",
}  # fmt: skip
"""What the routines do, with the words of their steps, which begin with the number of the routine:

========= ===========================================================================================================
enter     waiting, running, way: the lanes at ``waiting`` run, or if there are none, another step is next
admit     lanes, way: they run, or if there are none, another step is next
test      lanes, way: the way is taken if there are none
resume    lanes: they run
split     condition: the lanes that run become those at TAKEN and those at OTHER
send      lanes, waiting, way: they are the lanes that wait there
join      lanes, waiting, way: they wait there with others
go        way
branch    condition, way: of a scalar; the way is taken where it is false
select    index, last, ways: by a scalar
scatter   last, indices, edges, apart, table, and where the way ``edges`` leads, three words for each edge: the way to steps
          that end with a stop, or 0, the place of the lanes that wait at its end, and the way on if all lanes take it
places    count, pairs: from the place in the first to that in the second
stop      reason
========= ===========================================================================================================
"""


def routine(name: str) -> str:
    """The text of a routine."""
    head = f"define internal ptr @{name}(ptr noalias %w, ptr noalias %frame, i32 %mask, ptr noalias %step) nounwind {{\nentry:\n"
    return head + BODIES[name] + "}"
