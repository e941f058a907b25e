"""What a launch that stands still looks like, as text: for every front end."""

from __future__ import annotations

from collections.abc import Iterator

from ptxemu.debugger import inspect, values
from ptxemu.debugger.engine import Debugger, Stop
from ptxemu.debugger.inspect import Frame
from ptxemu.debugger.places import Places
from ptxemu.debugger.variables import Scope
from ptxemu.dwarf.names import Tag
from ptxemu.interpreter.lane import Lane
from ptxemu.interpreter.standing import block_of, in_words, op_at, stands
from ptxemu.ir.ops import Op
from ptxemu.text.errors import InputError, printable
from ptxemu.text.listings import Listings
from ptxemu.text.symbols import plain_name

CONTEXT = 5  # lines around one that is listed


def focus_line(lane: Lane) -> str:
    """``block (0,0,0), thread (5,0,0), warp 0, lane 5``."""
    block = "({},{},{})".format(*block_of(lane.warp.block))
    return f"block {block}, thread {inspect.thread_of(lane)}, warp {lane.warp.index}, lane {lane.index}"


def at(places: Places, op: Op, listings: Listings) -> Iterator[str]:
    """The line of the source, if there is one, and the instruction."""
    for place in places.chain(op)[:1]:
        yield f"{place.line}\t{printable(listings.line(place) or f'{place} (its text cannot be read)')}"
    yield f"{printable(str(places.ptx(op)))}\t{printable(places.text(op))}"


def told(stop: Stop, debugger: Debugger, listings: Listings) -> Iterator[str]:
    """A stop."""
    lane, places = debugger.lane(), debugger.places
    assert places is not None
    op = op_at(lane) if not debugger.after or debugger.op is None else debugger.op
    where = plain_name(lane.code.function.name)
    line = places.line(op)
    reason = {"step": "", "goto": "", "fault": "fault, "}.get(stop.reason, f"{stop.text}, ")
    yield f"{reason}{printable(where)} at {printable(str(line))}, step {debugger.now}"
    if stop.reason in ("fault", "step", "goto") and stop.text:
        yield printable(stop.text)
    yield from at(places, op, listings)


def warps(debugger: Debugger) -> Iterator[str]:
    """Where every warp of the blocks that have begun is, and what it waits for."""
    if debugger.grid is None or debugger.places is None:
        yield "nothing runs"
        return
    places = debugger.places
    for stand in stands(debugger.grid):
        mark = "*" if debugger.focus in stand.lanes else " "
        yield f"{mark} {printable(in_words(stand, lambda op: f'{places.told(op)}: {places.text(op)}', debugger.arena.describe))}"


def stack(debugger: Debugger) -> Iterator[str]:
    """The functions that the thread in focus is in, the innermost first, with those that were inlined."""
    lane, places = debugger.lane(), debugger.places
    assert places is not None
    number = 0
    for frame in inspect.frames_of(lane):
        chain = places.chain(frame.op)
        for depth, line in enumerate(chain or (places.ptx(frame.op),)):
            inlined = ", inlined" if depth + 1 < len(chain) else ""
            yield f"#{number} {printable(plain_name(frame.code.function.name))} at {printable(str(line))}{inlined}"
            number += 1


def registers(frame: Frame, names: list[str]) -> Iterator[str]:
    known = inspect.registers_of(frame.code)
    for name in names or known:
        if name in known:
            yield f"{name:12} .{known[name].type}  {inspect.shown_value(frame.register(known[name]), known[name].type)}"
        else:
            yield f"there is no register {printable(name)} in this function"


def registers_shown(frame: Frame) -> Iterator[tuple[str, str]]:
    """Registers with their values."""
    for name, reg in inspect.registers_of(frame.code).items():
        yield name, inspect.shown_value(frame.register(reg), reg.type)


def parameters(lane: Lane) -> Iterator[tuple[str, str]]:
    """The kernel's parameters with their values."""
    for name, data, kind in inspect.parameters_of(lane):
        small = len(data) == kind.bits // 8
        yield name, inspect.shown_value(int.from_bytes(data, "little"), kind) if small else "0x" + data.hex()


def variables(debugger: Debugger, tag: Tag) -> Iterator[str]:
    """Variables of CUDA C++ in the frame in focus, or its parameters; without DWARF those of the PTX."""
    frame = debugger.frame()
    scope = debugger.scope(frame)
    if scope.known:
        found = [f"{printable(name)} = {printable(text)}" for name, text in declared(scope, tag)]
        yield from found or [f"no {'arguments' if tag == Tag.FORMAL_PARAMETER else 'locals'}"]
        return
    yield from (f"{name} = {found}" for name, found in parameters(frame.lane))
    if tag == Tag.VARIABLE:
        for variable in frame.code.function.variables:
            if variable.space in ("shared", "local"):
                yield f"{variable.name}: {variable.size} bytes of {variable.space} memory"
        yield "variables of CUDA C++ are not known: the PTX has no DWARF (nvcc -G); info registers shows what instructions hold"


def declared(scope: Scope, tag: Tag) -> Iterator[tuple[str, str]]:
    """Variables or parameters with what they hold."""
    for name in scope.names(tag):
        try:
            found = scope.find(name)
            yield name, "" if found is None else values.described(scope, found)
        except InputError as error:
            yield name, f"<{error}>"


def listing(debugger: Debugger, listings: Listings) -> Iterator[str]:
    """The lines around the thread in focus."""
    places = debugger.places
    assert places is not None
    here = places.line(debugger.frame().op)
    texts = listings.lines(here.file) or places.image.module.source.text.splitlines()
    first = max(1, here.line - CONTEXT)
    for number, text in enumerate(texts[first - 1 : here.line + CONTEXT], first):
        yield f"{'>' if number == here.line else ' '}{number}\t{printable(text)}"
