"""Accesses of shared memory by some lanes, whose words compiled code looks at in windows with gaps (lower/core/stamps.py)."""

from __future__ import annotations

import pytest

import ptxemu
from tests.checkers.planted import checked_device, found, program

THREADS = 64
MEMORY = ".shared .align 16 .b8 s[512];"
DISTANCES = [1, 2, 4, 16]
CLEAR = "shl.b32 %r3, %r1, 3; st.shared.v2.u32 [%r3], {%r1, %r1}; bar.sync 0"

device = checked_device("race")


def low_of(thread: str, distance: int, to: str) -> str:
    """``to``: the place of the lower of two words that are so far apart, which are a thread's alone."""
    twice = f"add.u32 {to}, {thread}, {thread}"
    return f"and.b32 %r20, {thread}, {distance - 1}; {twice}; sub.u32 {to}, {to}, %r20; shl.b32 {to}, {to}, 2"


def exchange(distance: int, number: int) -> str:
    """Both words of a thread are read, and written by some."""
    place = f"%r{30 + number}"
    loads = f"ld.shared.u32 %r5, [{place}+{4 * distance}]; ld.shared.u32 %r6, [{place}]"
    stores = f"st.shared.u32 [{place}], %r5; st.shared.u32 [{place}+{4 * distance}], %r6"
    some = f"and.b32 %r7, %r1, {3 + number}; setp.ne.u32 %p1, %r7, 0; @%p1 bra BEHIND{number}; {stores}"
    return f"{low_of('%r1', distance, place)}; {loads}; {some}; BEHIND{number}: mov.u32 %r9, 0"


def races(device: ptxemu.Device, *parts: str) -> list[str]:
    return [one.message for one in found(device, program("; ".join(parts), MEMORY), 0, 0, block=THREADS)]


@pytest.mark.parametrize("first", DISTANCES)
@pytest.mark.parametrize("second", DISTANCES)
def test_exchanges(device: ptxemu.Device, first: int, second: int) -> None:
    """Those of one distance are each thread's own; between others there must be a barrier."""
    in_order = [CLEAR, exchange(first, 0), "bar.sync 0", exchange(second, 1), "bar.sync 0", exchange(first, 2)]
    assert races(device, *in_order) == []
    for missing in (2, 4):
        parts = [part for number, part in enumerate(in_order) if number != missing]
        assert bool(races(device, *parts)) == (first != second)


@pytest.mark.parametrize("distance", DISTANCES)
def test_lanes_that_write_nothing(device: ptxemu.Device, distance: int) -> None:
    """What lies between the words of others is not written."""
    high = 4 * distance
    stores = f"st.shared.u32 [%r30], %r1; st.shared.u32 [%r30+{high}], 1"
    loads = f"ld.shared.u32 %r5, [%r31]; ld.shared.u32 %r6, [%r31+{high}]"
    write = f"and.b32 %r7, %r1, 4; setp.ne.u32 %p1, %r7, 0; {low_of('%r1', distance, '%r30')}; @%p1 bra OFF; {stores}"
    read = f"xor.b32 %r8, %r1, 1; {low_of('%r8', distance, '%r31')}; {loads}"
    behind = "BEHIND: mov.u32 %r9, 0"
    assert races(device, CLEAR, f"{write}; bra BEHIND; OFF: mov.u32 %r9, 1; {read}; {behind}") == []
    assert races(device, CLEAR, f"{write}; {read}; bra BEHIND; OFF: mov.u32 %r9, 1; {behind}")


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("order", [("ld", "st"), ("st", "ld")])
def test_reads_that_are_listed(device: ptxemu.Device, distance: int, order: tuple[str, str]) -> None:
    """One warp reads what the other one writes, in either order."""
    place, other = low_of("%r1", distance, "%r30"), f"xor.b32 %r8, %r1, 32; {low_of('%r8', distance, '%r31')}"
    ways = {
        "ld": f"ld.shared.u32 %r5, [%r31]; ld.shared.u32 %r6, [%r31+{4 * distance}]",
        "st": f"ld.shared.u32 %r5, [%r30]; st.shared.u32 [%r30], 1; st.shared.u32 [%r30+{4 * distance}], 2",
    }
    low, high = (ways[way] for way in order)
    split = f"setp.ge.u32 %p1, %r1, 32; @%p1 bra HIGH; {low}; bra BEHIND; HIGH: mov.u32 %r9, 1; {high}; BEHIND: mov.u32 %r9, 0"
    assert races(device, CLEAR, place, other, split)


@pytest.mark.parametrize("apart", [1, 3, 4, 7])
@pytest.mark.parametrize("side_by_side", [1, 4, 8, 16])
def test_rows_with_gaps(device: ptxemu.Device, side_by_side: int, apart: int) -> None:
    """Of a tile whose rows are longer than what threads have of them: some lanes write, and others read that behind a barrier."""
    row = f"shr.u32 %r10, {{thread}}, {side_by_side.bit_length() - 1}"
    index = f"{row}; mad.lo.u32 {{to}}, %r10, {apart}, {{thread}}; shl.b32 {{to}}, {{to}}, 2"
    own, other = index.format(thread="%r1", to="%r11"), f"xor.b32 %r8, %r1, 33; {index.format(thread='%r8', to='%r12')}"
    write = "and.b32 %r7, %r1, 5; setp.ne.u32 %p1, %r7, 0; @%p1 bra BEHIND; st.shared.u32 [%r11], 1; BEHIND: mov.u32 %r9, 0"
    parts = [own, other, write, "bar.sync 0", "ld.shared.u32 %r5, [%r12]", "bar.sync 0", "st.shared.u32 [%r11], 2"]
    memory = f".shared .align 16 .b8 s[{4 * THREADS * (1 + apart)}];"
    assert found(device, program("; ".join(parts), memory), 0, 0, block=THREADS) == []
    for missing in (3, 5):
        rest = "; ".join(part for number, part in enumerate(parts) if number != missing)
        assert found(device, program(rest, memory), 0, 0, block=THREADS), missing
