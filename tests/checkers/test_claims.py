"""Accesses of shared memory that are listed, as no others race with them (csrc/check/race_claims.c): what is told is what a model
tells that looks at each word of each thread."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from itertools import groupby

import pytest

import ptxemu
from tests.checkers.planted import checked_device, found, program

WARPS = 3
THREADS = 32 * WARPS
WORDS = 512
BLOCKS = 4
ALL_BLOCKS = 2**BLOCKS - 1
MEMORY = f".shared .align 16 .b8 s[{4 * WORDS}];"
PLACES = {
    "own": "shl.b32 {to}, %r1, 2",
    "twice": "shl.b32 {to}, %r1, 3",
    "apart": "and.b32 %r20, %r1, 3; add.u32 {to}, %r1, %r1; sub.u32 {to}, {to}, %r20; shl.b32 {to}, {to}, 2",
    "far": "and.b32 %r20, %r1, 63; add.u32 {to}, %r1, %r1; sub.u32 {to}, {to}, %r20; shl.b32 {to}, {to}, 2",
    "crossed": "xor.b32 {to}, %r1, 1; shl.b32 {to}, {to}, 2",
    "pairs": "shr.u32 {to}, %r1, 1; shl.b32 {to}, {to}, 2",
    "lanes": "and.b32 {to}, %r1, 31; shl.b32 {to}, {to}, 2",
    "rows": "shr.u32 {to}, %r1, 4; mul.lo.u32 {to}, {to}, 80; and.b32 %r20, %r1, 15; mad.lo.u32 {to}, %r20, 4, {to}",
    "one": "mov.u32 {to}, 0",
}
INDEXES = {
    "own": lambda t: t,
    "twice": lambda t: 2 * t,
    "apart": lambda t: 2 * t - t % 4,
    "far": lambda t: 2 * t - t % 64,
    "crossed": lambda t: t ^ 1,
    "pairs": lambda t: t // 2,
    "lanes": lambda t: t % 32,
    "rows": lambda t: t // 16 * 20 + t % 16,
    "one": lambda t: 0,
    "fixed": lambda t: 0,
}

device = checked_device("race", workers=1)


@dataclass(frozen=True)
class Step:
    """An access by the threads from one to another of some blocks, as bits, or a barrier, which has no place."""

    place: str = ""
    offset: int = 0
    writes: bool = False
    first: int = 0
    end: int = THREADS
    blocks: int = ALL_BLOCKS


def steps_of(seed: int) -> list[Step]:
    """Mostly accesses that do not race: in an interval, threads keep to their own words more often than not, and blocks do the
    same; or some do something else in its place."""
    chosen, steps = random.Random(seed), []
    for _ in range(4):
        own = chosen.choice(["own", "twice", "apart", "far", "rows"])
        offset = chosen.choice([0, 0, 1, 5, 32])
        for _ in range(chosen.randrange(1, 6)):
            strange = chosen.random() < 0.12
            place = chosen.choice([*INDEXES]) if strange else own
            offsets = [offset + more for more in {"apart": (0, 4), "far": (0, 64), "twice": (0, 1)}.get(place, (0,))]
            first, end = chosen.choice([(0, THREADS), (0, THREADS), (0, THREADS), (5, THREADS), (32, 64), (0, 17), (40, 41)])
            step = Step(place, chosen.choice(offsets), chosen.random() < 0.5, first, end)
            some = chosen.randrange(ALL_BLOCKS) if chosen.random() < 0.2 else 0
            steps.append(replace(step, blocks=ALL_BLOCKS - some))
            if place in ("apart", "fixed") and chosen.random() < 0.4:  # both are one access, or one test covers both
                steps.append(replace(steps[-1], offset=2 * offset + 4 - step.offset))
            if some:
                steps.append(replace(step, place=chosen.choice([*PLACES]), blocks=some))
        steps.append(Step())
    return steps


def text_of(steps: list[Step]) -> tuple[str, dict[int, int]]:
    """The body of the kernel, and the number of the step at each line."""
    lines = [PLACES[place].format(to=f"%r{30 + number}") for number, place in enumerate(PLACES)]
    lines = ["mov.u32 %r24, %ctaid.x", *(part for line in lines for part in line.split("; "))]
    at = {}
    for blocks, run in groupby(enumerate(steps), lambda numbered: numbered[1].blocks):
        label = f"BEHIND{len(lines)}"
        if blocks != ALL_BLOCKS:
            lines += [f"shr.b32 %r21, {blocks}, %r24", "and.b32 %r21, %r21, 1", "setp.eq.b32 %p2, %r21, 0", f"@%p2 bra {label}"]
        for number, step in run:
            lines += _text_of_step(number, step)
            at[len(lines) - 1] = number
        if blocks != ALL_BLOCKS:
            lines.append(f"{label}: mov.u32 %r21, 0")
    return "; ".join(lines), at


def _text_of_step(number: int, step: Step) -> list[str]:
    """The access is the last."""
    if not step.place:
        return ["bar.sync 0"]
    lines, guard = [], ""
    if (step.first, step.end) != (0, THREADS):
        lines += [f"sub.u32 %r21, %r1, {step.first}", f"setp.lt.u32 %p1, %r21, {step.end - step.first}"]
        guard = "@%p1 "
    start = f"%r{30 + [*PLACES].index(step.place)}" if step.place in PLACES else "s"
    place = f"[{start}+{4 * step.offset}]"
    if step.writes:
        return [*lines, f"mad.lo.u32 %r22, %r1, 64, {number}", f"{guard}st.shared.u32 {place}, %r22"]
    return [*lines, f"{guard}ld.shared.u32 %r23, {place}"]


def expected(steps: list[Step]) -> set[tuple[int, int]]:
    """Of accesses that race, the number of the later one, and that of the earlier one."""
    return set().union(*(_expected_in(block, steps) for block in range(BLOCKS)))


def _expected_in(block: int, steps: list[Step]) -> set[tuple[int, int]]:
    """Those of a block, as far as the last write and read of each word tell: warps run one after another."""
    told: set[tuple[int, int]] = set()
    interval: list[int] = []
    for number, step in enumerate(steps):
        if step.place:
            interval.append(number)
            continue
        last: tuple[dict[int, tuple[int, int]], ...] = ({}, {})  # thread and step of reads and writes, by word
        for warp in range(WARPS):
            for each in [each for each in interval if steps[each].blocks >> block & 1]:
                told |= _step(steps[each], each, warp, last)
        interval = []
    return told


def _step(step: Step, number: int, warp: int, last: tuple[dict[int, tuple[int, int]], ...]) -> set[tuple[int, int]]:
    told = set()
    for thread in range(max(32 * warp, step.first), min(32 * warp + 32, step.end)):
        word = INDEXES[step.place](thread) + step.offset
        for before in last if step.writes else last[1:]:
            other, earlier = before.get(word, (thread, number))
            if other != thread:
                told.add((number, earlier))
        if step.writes or last[0].get(word, (thread, number))[0] // 32 == warp:  # a read of another warp stays
            last[step.writes][word] = thread, number
    return told


def apart(races: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """Without those of a step that races with itself, too: which of its lanes comes first is not told."""
    return {(later, earlier) for later, earlier in races if later == earlier or (later, later) not in races}


def truly_race(steps: list[Step], one: int, other: int) -> bool:
    """Whether two threads of a block come to one word without a barrier between, and one writes."""
    between = [step.place for step in steps[min(one, other) : max(one, other)]]
    if "" in between or not (steps[one].writes or steps[other].writes) or not steps[one].blocks & steps[other].blocks:
        return False
    words = [
        {(INDEXES[step.place](t) + step.offset, t) for t in range(step.first, step.end)} for step in (steps[one], steps[other])
    ]
    return any(word == place and thread != beside for word, thread in words[0] for place, beside in words[1])


@pytest.mark.sampled(12)
@pytest.mark.parametrize("seed", range(96))
def test_what_is_told(device: ptxemu.Device, seed: int) -> None:
    steps = steps_of(seed)
    body, at = text_of(steps)
    text = program(body, MEMORY)
    start = text.splitlines().index(body.split("; ")[0] + ";") + 1
    seen = found(device, text, 0, 0, grid=BLOCKS, block=THREADS)
    places = {
        (at[one.lines[-1].location.line - start], at[one.other.lines[-1].location.line - start]) for one in seen if one.other
    }
    assert apart(places) == apart(expected(steps))
    assert all(truly_race(steps, *pair) for pair in places)


# What the second of two blocks of two warps does in place of the first.
OTHER_BASE = """sub.u32 %r22, 1, %r24; mul.lo.u32 %r22, %r21, %r22; mad.lo.u32 %r22, %r22, 128, %r20
st.shared.u32 [%r22], %r1; st.shared.u32 [%r22+1024], %r1"""
OTHER_SITE = """mad.lo.u32 %r22, %r21, 128, %r20; add.u32 %r23, %r22, %r20; st.shared.u32 [%r22+1024], %r1
setp.eq.u32 %p1, %r24, 1; @%p1 bra OTHER; st.shared.u32 [%r22], %r1; bra DONE
OTHER: st.shared.u32 [%r23], %r1; DONE: mov.u32 %r20, %r1"""


@pytest.mark.parametrize("body", [OTHER_BASE, OTHER_SITE])
def test_a_block_does_not_do_what_one_before_it_did(device: ptxemu.Device, body: str) -> None:
    """It makes as many accesses, but its second warp has words of the first."""
    start = "mov.u32 %r24, %ctaid.x; shr.u32 %r21, %r1, 5; and.b32 %r20, %r1, 31; shl.b32 %r20, %r20, 2\n"
    seen = found(device, program(f"{start}{body}\nbar.sync 0".replace("\n", ";"), MEMORY), 0, 0, grid=2, block=64)
    assert {one.block for one in seen} == {(1, 0, 0)}


@pytest.mark.parametrize(("reader", "writer"), [(48, 40), (63, 33), (33, 63)])
def test_a_warp_without_lanes_hides_no_race(reader: int, writer: int) -> None:
    """Where it would write, words are claimed by another warp; the next one reads words, and writes one of another lane. Nothing
    has been told of the instructions before."""
    read = "shl.b32 %r20, %r1, 2; ld.shared.u32 %r22, [%r20+640];"
    place = f"%r21+{640 + 4 * reader - 8 * writer}"
    write = f"setp.eq.u32 %p1, %r1, {writer}; shl.b32 %r21, %r1, 3; @%p1 st.shared.u32 [{place}], %r1;"
    with ptxemu.Device(memory="64 MiB", check="race", workers=1) as fresh:
        seen = found(fresh, program(f"{read} {write} bar.sync 0", MEMORY), 0, 0, block=96)
    assert [(one.thread[0], one.other.thread[0]) for one in seen if one.other] == [(writer, reader)]
