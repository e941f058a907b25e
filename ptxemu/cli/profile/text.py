"""Profiles as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ptxemu.cli.profile.columns import COLUMNS, number
from ptxemu.cli.profile.facts import NOTE, sample_note
from ptxemu.profiler.metrics import INSTRUCTIONS
from ptxemu.profiler.profile import Line, Profile
from ptxemu.text.errors import printable
from ptxemu.text.listings import Listings

MOST_LINES = 12  # of CUDA C++ and of PTX, those with the most instructions
MOST_OPCODES = 10
LONGEST_TEXT = 70  # characters of a line of the program


def render(title: str, profiles: Sequence[Profile], listings: Listings) -> Iterator[str]:
    """The lines of a report."""
    yield f"{printable(title)}: {NOTE}"
    for profile in profiles:
        yield ""
        yield from _launch(profile, listings)


def _launch(profile: Profile, listings: Listings) -> Iterator[str]:
    extent = "x".join
    grid, block = (extent(map(str, extents)) for extents in (profile.shape.grid, profile.shape.block))
    ended = ", up to where it was stopped" if profile.stopped else ""
    yield f"{printable(profile.kernel)}, grid {grid}, block {block}{ended}"
    if note := sample_note(profile):
        yield f"  {note}"
    yield from _mix(profile)
    yield from _metrics(profile)
    yield from _occupancy(profile)
    yield from _roofline(profile)
    if profile.counts.hottest:
        yield "  most updated by atomics"
        yield from (f"    {times:>12,} times {printable(place)}" for place, times in profile.counts.hottest)
    yield from _births(profile, listings)
    cuda = profile.cuda_lines(listings)
    yield from _lines("lines of the source (.loc)", cuda)
    if not cuda:
        yield "  no lines of CUDA C++: the PTX has no .loc (nvcc -lineinfo)"
    yield from _lines("lines of the PTX", profile.ptx_lines())


def _mix(profile: Profile) -> Iterator[str]:
    count = profile.sums[INSTRUCTIONS] or 1
    yield "  instructions"
    yield from (f"    {times / count:7.1%} {name}" for name, times in profile.classes.items())
    opcodes = list(profile.opcodes.items())[:MOST_OPCODES]
    yield "    " + ", ".join(f"{name} {times / count:.1%}" for name, times in opcodes)


def _metrics(profile: Profile) -> Iterator[str]:
    yield "  metrics"
    for name, value in profile.metrics.items():
        if not name.startswith("launch__"):
            yield f"    {name:<75} {number(value):>16}"


def _occupancy(profile: Profile) -> Iterator[str]:
    found, device = profile.occupancy, profile.multiprocessor
    how = "estimated from the PTX; ptxas -v knows: --registers" if profile.estimated else "as given"
    yield f"  occupancy of sm_{device.sm}"
    yield f"    {profile.registers} registers a thread ({how}), {profile.counts.shared:,} bytes of shared memory a block"
    if not found.blocks:
        yield f"    no block fits: {' and '.join(found.limited_by)}"
        return
    limited = " and ".join(found.limited_by)
    yield f"    {found.blocks} blocks, {found.warps} of {found.most} warps ({found.percent:.0f} %), limited by {limited}"


def _roofline(profile: Profile) -> Iterator[str]:
    work, device = profile.work, profile.multiprocessor
    kinds = {**work.operations, "matrix": work.matrix}
    told = ", ".join(f"{count:,} {name}" for name, count in kinds.items() if count) or "none on floats"
    yield "  roofline"
    yield f"    operations: {told}; bytes: {work.touched:,} touched at least once, {work.moved:,} moved in sectors"
    if work.touched and work.flops:
        intensity, balance = work.flops / work.touched, device.flops / device.bandwidth
        bound = "memory" if intensity < balance else "arithmetic"
        yield f"    {intensity:.3g} operations a byte: bound by {bound} on {device.gpu}, whose balance is {balance:.3g} (fp32)"


def _births(profile: Profile, listings: Listings) -> Iterator[str]:
    found = profile.births(listings)
    if found:
        yield "  made of operands that are none, by the order of the first"
    for kind, place, text, first in found:
        block, thread = ("({},{},{})".format(*extent) for extent in (first.block, first.thread))
        operands = ", ".join(f"0x{bits:x}" for bits in first.operands)
        yield f"    {kind} {first.times:,} times at {printable(str(place))}: {printable(text)}"
        yield f"      first in block {block}, thread {thread}: 0x{first.result:x} of {operands or 'no floats'}"


def _lines(title: str, lines: Sequence[Line]) -> Iterator[str]:
    if not lines:
        return
    hottest = sorted(lines, key=lambda line: -line.sums[INSTRUCTIONS])[:MOST_LINES]
    shown = [line for line in lines if any(line is hot for hot in hottest)]
    total = sum(line.sums[INSTRUCTIONS] for line in lines) or 1
    yield f"  {title}" + (f", {len(shown)} of {len(lines)}" if len(shown) < len(lines) else "")
    yield "    " + " ".join(f"{column.title:>9}" for column in COLUMNS)
    for line in shown:
        cells = " ".join(f"{number(column.value(line.sums)):>9}" for column in COLUMNS)
        text = printable((line.text or "").strip())[:LONGEST_TEXT]
        yield f"    {cells} {line.sums[INSTRUCTIONS] / total:6.1%} {printable(str(line.place))}  {text}".rstrip()
