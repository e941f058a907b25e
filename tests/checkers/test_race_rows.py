"""Rows of bytes, halves and words under the checker ``race`` (csrc/check/race_bytes.c): what is told is what a model knows that
looks at each byte of each thread."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

import ptxemu
from tests.checkers.planted import checked_device, found, program

WARPS = 2
THREADS = 32 * WARPS
BYTES = 512
SPACES = {"shared": "s", "global": "%rd1"}
BLOCKS = {"shared": 3, "global": 1}  # each has shared memory of its own

device = checked_device("race", workers=1)


@dataclass(frozen=True)
class Step:
    """An access of so many bytes by the threads from one to another, or a barrier, which has no size: thread t has those from
    ``offset + stride * (t ^ turned)`` on."""

    size: int = 0
    stride: int = 0
    offset: int = 0
    turned: int = 0
    writes: bool = False
    first: int = 0
    end: int = THREADS

    def bytes_of(self, thread: int) -> range:
        start = self.offset + self.stride * (thread ^ self.turned)
        return range(start, start + self.size)


def steps_of(seed: int) -> list[Step]:
    """Mostly threads keep to their own bytes."""
    chosen, steps = random.Random(seed), []
    for _ in range(3):
        size, offset = chosen.choice([1, 1, 2, 4]), 4 * chosen.randrange(4)
        for _ in range(chosen.randrange(2, 5)):
            other = chosen.choice([1, 2, 4]) if chosen.random() < 0.3 else size
            shift = chosen.choice([0, 0, 0, 1, 2, 3, 5]) * other
            turned = chosen.choice([0, 0, 0, 0, 1, 3, 31])
            first, end = chosen.choice([(0, THREADS), (0, THREADS), (1, THREADS), (0, 31), (3, 40), (32, THREADS), (40, 41)])
            steps.append(Step(other, other, offset + shift, turned, chosen.random() < 0.5, first, end))
            if size < 4 and chosen.random() < 0.4:  # the first of the threads that have a word has all of it
                first = chosen.randrange(THREADS // 4) * 4 // size
                stride, place = chosen.choice([(size, offset), (0, offset + size * first)])
                steps.append(Step(4, stride, place, 0, chosen.random() < 0.5, first, first + 1))
        steps.append(Step())
    return steps


def text_of(steps: list[Step], space: str) -> tuple[str, dict[int, int]]:
    """The body of the kernel, and the number of the step at each line."""
    lines, at = [], {}
    for number, step in enumerate(steps):
        if not step.size:
            lines.append("bar.sync 0")
            continue
        lines += [f"sub.u32 %r3, %r1, {step.first}", f"setp.lt.u32 %p1, %r3, {step.end - step.first}"]
        lines += [f"xor.b32 %r3, %r1, {step.turned}", f"mul.lo.u32 %r3, %r3, {step.stride}", f"mov.u32 %r4, {number}"]
        lines += [f"mov.u64 %rd5, {SPACES[space]}", "cvt.u64.u32 %rd6, %r3", "add.u64 %rd5, %rd5, %rd6"]
        kind, place = f"{space}.u{8 * step.size}", f"[%rd5+{step.offset}]"
        lines.append(f"@%p1 st.{kind} {place}, %r4" if step.writes else f"@%p1 ld.{kind} %r5, {place}")
        at[len(lines) - 1] = number
    return "; ".join(lines), at


def accesses(steps: list[Step]) -> Iterator[list[tuple[int, int, int, bool]]]:
    """Those of each interval between barriers, as they happen: step, thread, byte and whether it is written."""
    interval: list[int] = []
    for number, step in enumerate(steps):
        if step.size:
            interval.append(number)
            continue
        yield [
            (each, thread, byte, steps[each].writes)
            for warp in range(WARPS)
            for each in interval
            for thread in range(max(32 * warp, steps[each].first), min(32 * warp + 32, steps[each].end))
            for byte in steps[each].bytes_of(thread)
        ]
        interval = []


def races(steps: list[Step], *, last: bool) -> set[tuple[int, int]]:
    """Of accesses that race, the number of the later one, and that of the earlier one; or those alone of which the earlier one is
    the last write of a byte, or the last read."""
    told = set()
    for interval in accesses(steps):
        before: dict[tuple[int, bool], list[tuple[int, int]]] = defaultdict(list)
        for number, thread, byte, writes in interval:
            for others in [before[byte, True], *([before[byte, False]] if writes else [])]:
                told |= {(number, each) for each, other in (others[-1:] if last else others) if other != thread}
            before[byte, writes].append((number, thread))
    return told


@pytest.mark.sampled(12)
@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("seed", range(96))
def test_what_is_told(device: ptxemu.Device, seed: int, space: str) -> None:
    steps = steps_of(seed)
    body, at = text_of(steps, space)
    text = program(body, f".shared .align 16 .b8 s[{BYTES}];")
    start = text.splitlines().index(body.split("; ")[0] + ";") + 1
    seen = found(device, text, device.empty(BYTES, "u8"), 0, grid=BLOCKS[space], block=THREADS)
    told = {(at[one.lines[-1].location.line - start], at[one.other.lines[-1].location.line - start]) for one in seen if one.other}
    assert races(steps, last=True) <= told <= races(steps, last=False)


@pytest.mark.parametrize("access", ["ld.shared.u32 %r5, [s+4]", "st.shared.u32 [s+4], %r1"])
def test_one_of_a_row_has_all_of_the_word(device: ptxemu.Device, access: str) -> None:
    """Three others have bytes of it, in each of three blocks, the later of which find that the instruction has its number."""
    body = f"mov.u32 %r3, s; add.u32 %r3, %r3, %r1; st.shared.u8 [%r3], %r1; setp.eq.u32 %p1, %r1, 4; @%p1 {access}"
    (race,) = found(device, program(body, ".shared .align 16 .b8 s[64];"), 0, 0, grid=3)
    assert (race.count, race.thread, race.other and race.other.thread) == (9, (4, 0, 0), (5, 0, 0))
