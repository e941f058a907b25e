"""Where the warps of a launch of compiled code stood that was stuck or stopped, and what they waited for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ptxemu._runtime import ffi, lib
from ptxemu.device.faults import Origin

if TYPE_CHECKING:
    from ptxemu._runtime import CData

BARRIERS = 16  # that instructions name
WAITS = {
    lib.PE_STANDS_AT_MBARRIER: "an mbarrier, again and again",
    lib.PE_STANDS_AT_CLUSTER: "barrier.cluster",
    lib.PE_STANDS_AT_GRID: "the barrier of the grid",
}


def standing(handle: CData, origin: Origin) -> str:
    """A line for each place of a warp, in the order of the grid; empty if it is not known."""
    stands = ffi.new("pe_stand[]", lib.PE_MOST_STANDS)
    count = lib.pe_launch_stands(handle, stands)
    kept = sorted(stands[0 : min(count, lib.PE_MOST_STANDS)], key=lambda stand: (*reversed(list(stand.ctaid)), stand.warp))
    lines = [in_words(stand.warp, tuple(stand.ctaid), stand.lanes, *_state(stand, origin)) for stand in kept]
    return listed(lines, count)


def listed(lines: Sequence[str], count: int) -> str:
    """The first of so many lines, as the rest of a message."""
    shown = lines[: lib.PE_MOST_STANDS]
    more = [f"... and {count - len(shown)} more"] if count > len(shown) else []
    return "".join(f"\n  {line}" for line in [*shown, *more])


def in_words(warp: int, block: Sequence[int], lanes: int, state: str, place: str) -> str:
    """``block (0,0,0) warp   1 lanes 0xffffffff waits for barrier 0 ...  k.ptx:8``."""
    x, y, z = block
    return f"block ({x},{y},{z}) warp {warp:3} lanes 0x{lanes:08x} {state}{f'  {place}' if place else ''}"


def at_barrier(number: int, arrived: int, expected: int) -> str:
    """``barrier 0: 32 of 64 threads have arrived``; those behind the ones that instructions name are of warpgroups."""
    name = f"barrier {number}" if number < BARRIERS else "its warpgroup"
    return f"{name}: {arrived} of {expected} threads have arrived"


def _state(stand: CData, origin: Origin) -> tuple[str, str]:
    """What the lanes do, and where."""
    place = "" if stand.pos == lib.PE_NO_POS else str(origin.locate(stand.pos))
    if stand.waits == lib.PE_STANDS_AT_BARRIER:
        return f"waits for {at_barrier(stand.number, stand.arrived, stand.expected)}", place
    if stand.waits in WAITS:
        return f"waits for {WAITS[stand.waits]}", place
    return f"can run, last seen at {place}" if place else "can run", ""
