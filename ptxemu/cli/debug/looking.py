"""Commands that look: at warps, functions, variables, registers, memory and surfaces."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ptxemu.case.array_files import save_array
from ptxemu.cli import results
from ptxemu.cli.debug import words
from ptxemu.cli.debug.commands import Commands, count_of
from ptxemu.debugger import inspect, values
from ptxemu.debugger.engine import Debugger
from ptxemu.debugger.memory import evaluated, variable_in
from ptxemu.dwarf.names import Tag
from ptxemu.interpreter.lane import EXITED, Lane
from ptxemu.interpreter.standing import STATES, block_of, op_at, waits_for
from ptxemu.text.errors import InputError, printable, shown
from ptxemu.text.symbols import plain_name

if TYPE_CHECKING:
    from ptxemu.cli.debug.terminal import Terminal

SIZES = {"b": 1, "h": 2, "w": 4, "g": 8}
EXAMINE = re.compile(r"/(?P<count>[0-9]{0,5})(?P<letters>[xduf]?[bhwg]?|[bhwg][xduf])")
FORMATS = {("f", 2): "f2", ("f", 4): "f4", ("f", 8): "f8"}
IN_A_ROW = 4
COMMANDS = Commands()
command = COMMANDS.add


@command("where")
def where(t: Terminal, text: str) -> bool:
    """where: where every warp is, and what it waits for."""
    t.say(*words.warps(t.debugger))
    return False


@command("backtrace")
def backtrace(t: Terminal, text: str) -> bool:
    """backtrace: the functions that the thread in focus is in."""
    t.say(*words.stack(t.debugger))
    return False


@command("list")
def list_(t: Terminal, text: str) -> bool:
    """list: the lines around the thread in focus."""
    t.say(*words.listing(t.debugger, t.listings))
    return False


@command("print")
def print_(t: Terminal, text: str) -> bool:
    """print EXPRESSION: over registers, special registers and arrays: %r1 + 1, threadIdx.x, x[3:8], y.max(). print/x: in hex."""
    found = re.match(r"/([xd])\s+", text)
    text = text[found.end() :] if found else text
    variable = None if found else variable_in(text, t.debugger)
    if variable is not None:
        t.say(printable(values.described(*variable)))
        return False
    result = evaluated(text, t.debugger, t.resources)
    wanted = text[:1] == "&" if found is None else found[1] == "x"
    in_hex = wanted and isinstance(result, int | np.integer) and not isinstance(result, bool)
    t.say(printable(hex(result) if in_hex else str(result)))
    return False


@command("ptype", "whatis")
def ptype(t: Terminal, text: str) -> bool:
    """ptype EXPRESSION: the type of a variable, or of a part of one, with its members."""
    variable = variable_in(text, t.debugger)
    if variable is None:
        raise InputError(f"{shown(text)} is no variable of CUDA C++ here")
    t.say(*map(printable, values.type_lines(variable[1])))
    return False


@command("frame", "up", "down")
def frame(t: Terminal, text: str) -> bool:
    """frame [N], up [N], down [N]: another function that the thread is in, whose registers and variables are shown."""
    frames, current = t.debugger.frames(), t.debugger.frame()
    level, number = frames.index(current), count_of(text) if text and text != "0" else int(not text)
    if t.word == "frame":
        level = number if text and text != "0" else 0 if text else level
    else:
        level += number if t.word == "up" else -number
    chosen = t.debugger.select(level)
    assert t.debugger.places is not None
    t.say(f"#{level} {printable(plain_name(chosen.code.function.name))} at {printable(str(t.debugger.places.line(chosen.op)))}")
    t.say(*words.at(t.debugger.places, chosen.op, t.listings))
    return False


@command("x")
def examine(t: Terminal, text: str) -> bool:
    """x[/COUNT FORMAT SIZE] [SPACE] ADDRESS: memory: x/8fw shared 0, x/4xg x[0]; formats x d u f, sizes b h w g."""
    found = EXAMINE.match(text)
    letters = found["letters"] if found else ""
    count = int(found["count"] or 1) if found else 1
    kind = next((letter for letter in letters if letter in "xduf"), "x")
    size = SIZES[next((letter for letter in letters if letter in SIZES), "w")]
    spot = t.spot(text[found.end() :] if found else text, size)
    if not count or (kind == "f" and size == 1):
        raise InputError("x/COUNT FORMAT SIZE: a count of 1 or more; floats have 2, 4 or 8 bytes")
    data = inspect.read(t.debugger.arena, t.debugger.focus, spot.space, spot.address, count * size)
    values = np.frombuffer(data, FORMATS.get((kind, size), f"{'i' if kind == 'd' else 'u'}{size}"))
    for first in range(0, count, IN_A_ROW):
        row = values[first : first + IN_A_ROW].tolist()
        cells = (f"0x{one:0{2 * size}x}" if kind == "x" else str(one) for one in row)
        t.say(f"{spot.space} 0x{spot.address + first * size:x}:\t" + "\t".join(cells))
    return False


@command("surface")
def surface(t: Terminal, text: str) -> bool:
    """surface NAME [FILE.png]: show a surface, as a picture where the terminal has colours, or save it as it is now."""
    name, _, file = text.partition(" ")
    resources = t.resources
    if resources is None or name not in resources.surfaces:
        known = ", ".join(resources.surfaces) if resources is not None else ""
        raise InputError(f"no surface is named {shown(name)}" + (f"; there are {known}" if known else ""))
    array = resources.surfaces[name].copy_to_host()
    if file:
        save_array(Path(file.strip()), array, "surface")
        t.say(f"saved {printable(file.strip())}")
    else:
        t.say(results.summary(name, array), results.picture(array) or results.listing(array))
    return False


INFO: dict[str, Callable[[Terminal, str], Iterator[str]]] = {
    "warps": lambda t, text: words.warps(t.debugger),
    "registers": lambda t, text: words.registers(t.debugger.frame(), text.split()),
    "locals": lambda t, text: words.variables(t.debugger, Tag.VARIABLE),
    "args": lambda t, text: words.variables(t.debugger, Tag.FORMAL_PARAMETER),
    "threads": lambda t, text: _threads(t.debugger),
    "blocks": lambda t, text: _blocks(t.debugger),
    "breakpoints": lambda t, text: _breakpoints(t.debugger),
    "line": lambda t, text: words.stack(t.debugger),
}


@command("info")
def info(t: Terminal, text: str) -> bool:
    """info warps|threads|blocks|registers [NAME ...]|locals|args|breakpoints|line (info cuda ... is the same)."""
    what, _, rest = text.removeprefix("cuda ").strip().partition(" ")
    found = [name for name in INFO if name.startswith(what)] if what else []
    if len(found) != 1:
        raise InputError(f"info {'|'.join(INFO)}")
    t.say(*INFO[found[0]](t, rest))
    return False


def _threads(debugger: Debugger) -> Iterator[str]:
    """Threads of the warp in focus."""
    lane = debugger.lane()
    assert debugger.places is not None
    for other in lane.warp.lanes:
        waits = waits_for(other)
        state = f"waits for {waits}" if waits else STATES[other.state]
        place = "" if other.state == EXITED else f"{debugger.places.line(op_at(other))}"
        mark = "*" if other is lane else " "
        yield f"{mark} thread {inspect.thread_of(other)} lane {other.index:2} {state}  {printable(place)}"


def _blocks(debugger: Debugger) -> Iterator[str]:
    for block in debugger.resident():
        lanes = [lane for warp in block.warps for lane in warp.lanes]
        ended = sum(lane.state == EXITED for lane in lanes)
        x, y, z = block_of(block)
        yield f"block ({x},{y},{z}): {len(lanes)} threads, {ended} exited"


def _breakpoints(debugger: Debugger) -> Iterator[str]:
    for one in debugger.breakpoints.values():
        condition = f" if {one.condition}" if one.condition else ""
        yield f"{one.number} break {printable(one.spot + condition)}, hit {one.hits} times{'' if one.enabled else ', disabled'}"
    for other in debugger.watchpoints.values():
        yield f"{other.number} watch {printable(other.text)}, hit {other.hits} times{'' if other.enabled else ', disabled'}"


@command("cuda")
def cuda(t: Terminal, text: str) -> bool:
    """cuda [block X,Y,Z] [thread X,Y,Z] [warp N] [lane N]: another thread in focus."""
    current = t.debugger.lane()
    chosen = {name: _extent(numbers) for name, numbers in re.findall(r"(block|thread|warp|lane)\s+\(?([0-9, ]+)\)?", text)}
    if not chosen:
        t.say(words.focus_line(current))
        return False
    chosen.setdefault("block", block_of(current.warp.block))
    if "thread" not in chosen:
        chosen.setdefault("warp", (current.warp.index, 0, 0))

    def wanted(lane: Lane) -> bool:
        facts = {
            "block": block_of(lane.warp.block), "thread": lane.tid,
            "warp": (lane.warp.index, 0, 0), "lane": (lane.index, 0, 0),
        }  # fmt: skip
        return all(facts[name] == numbers for name, numbers in chosen.items())

    lane = t.debugger.focus_on(wanted)
    t.show_focus()
    assert t.debugger.places is not None
    if lane.state != EXITED:
        t.say(*words.at(t.debugger.places, op_at(lane), t.listings))
    return False


def _extent(text: str) -> tuple[int, int, int]:
    numbers = [int(part) for part in text.replace(",", " ").split()[:3] if len(part) < 12]
    x, y, z = [*numbers, 0, 0, 0][:3]
    return x, y, z
