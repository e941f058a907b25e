"""The debugger at a terminal, with the commands of cuda-gdb; or from a file or a pipe."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import click
import numpy as np

from ptxemu._runtime import lib
from ptxemu.case.array_files import save_array
from ptxemu.case.resources import Resources
from ptxemu.cli import results
from ptxemu.cli.debug import words
from ptxemu.debugger import inspect
from ptxemu.debugger.engine import Again, Debugger, Leave, Stop, key_of
from ptxemu.debugger.expressions import value
from ptxemu.debugger.inspect import Spot
from ptxemu.debugger.memory import names_in, spot_of
from ptxemu.interpreter import births
from ptxemu.interpreter.lane import EXITED, Lane
from ptxemu.interpreter.standing import STATES, block_of, op_at, waits_for
from ptxemu.text.errors import InputError, printable, shown
from ptxemu.text.listings import Listings

PROMPT = "(ptxemu) "
UNITS = ("thread", "warp", "all")
READ, WRITE = lib.PE_READ, lib.PE_WRITE
SIZES = {"b": 1, "h": 2, "w": 4, "g": 8}
EXAMINE = re.compile(r"/(?P<count>[0-9]{0,5})(?P<letters>[xduf]?[bhwg]?|[bhwg][xduf])")
FORMATS = {("f", 2): "f2", ("f", 4): "f4", ("f", 8): "f8"}
IN_A_ROW = 4
Command = Callable[["Terminal", str], bool]
COMMANDS: dict[str, Command] = {}
SHORT = {
    "b": "break", "c": "continue", "s": "step", "n": "next", "si": "stepi", "ni": "nexti", "bt": "backtrace", "p": "print",
    "r": "run", "q": "quit", "i": "info", "d": "delete", "l": "list", "h": "help", "rc": "reverse-continue",
    "rs": "reverse-step", "rsi": "reverse-stepi", "tb": "tbreak", "fin": "finish",
}  # fmt: skip


def command(*names: str) -> Callable[[Command], Command]:
    """Register a command; it returns whether the program goes on."""

    def add(function: Command) -> Command:
        COMMANDS.update(dict.fromkeys(names, function))
        return function

    return add


class Terminal:
    """Reads commands from ``lines``; ``resources`` are those of the program, once it runs."""

    def __init__(
        self,
        debugger: Debugger,
        lines: Iterator[str],
        resources: Callable[[], Resources | None],
        folder: Path,
        show: Callable[[str], object] = click.echo,
    ) -> None:
        self.debugger, self.listings, self._resources = debugger, Listings(folder), resources
        self._show = show
        self._lines = lines
        self._last = ""
        self._again: Callable[[], object] | None = None  # steps that are left of a command
        self._left = 0
        self._focus: object = None

    # ------------------------------------------------------------ what the session tells

    def stopped(self, stop: Stop) -> None:
        if stop.reason == "step" and self._left > 0 and self._again is not None:
            self._left -= 1
            self._again()
            return
        self._left = 0
        self.show_focus()
        self.say(*words.told(stop, self.debugger, self.listings))
        self._read()

    def attend(self) -> None:
        self._left = 0
        self.debugger.step_instruction("all")
        self.say("interrupted")

    def idle(self) -> None:
        self._read()

    def exited(self, text: str) -> None:
        self._focus = None
        self.say(f"{text} (step {self.debugger.now})")

    def printed(self, text: str) -> None:
        click.echo(text, nl=False)

    # ------------------------------------------------------------ reading and showing

    def say(self, *lines: str) -> None:
        for line in lines:
            self._show(line)

    def show_focus(self) -> None:
        """Say which thread is in focus, if that has changed."""
        lane = self.debugger.lane()
        if key_of(lane) != self._focus:
            self._focus = key_of(lane)
            self.say(f"[{words.focus_line(lane)}]")

    def _read(self) -> None:
        """Commands, until one lets the program go on."""
        for line in self._lines:
            with suppress(InputError):
                if self.command(line.strip()):
                    return
        raise Leave

    def command(self, line: str) -> bool:
        """Do a command. Whether the program goes on. Raises InputError, which has been said."""
        line = self._last if not line and sys.stdin.isatty() else line
        if not line or line.startswith("#"):
            return False
        self._last = line
        found = re.match(r"[a-z-]+", line)
        word = found[0] if found else line
        try:
            return _meant(word)(self, line[len(word) :].strip())
        except InputError as error:
            self.say(printable(str(error)))
            raise

    @property
    def resources(self) -> Resources | None:
        return self._resources()

    def steps(self, text: str, go: Callable[[], object]) -> bool:
        """Go on ``text`` times."""
        count = _count(text) if text else 1
        go()
        self._again, self._left = go, count - 1
        return True

    def spot(self, text: str, size: int = 4) -> Spot:
        return spot_of(text, self.debugger, self.resources, size)


def _meant(word: str) -> Command:
    """The command of a name, a short name, or the beginning of one name."""
    name = SHORT.get(word, word)
    if name in COMMANDS:
        return COMMANDS[name]
    found = {COMMANDS[name]: name for name in COMMANDS if name.startswith(word)}
    if len(found) == 1:
        return next(iter(found))
    what = f"may be {', '.join(found.values())}" if found else "is no command; help lists them"
    raise InputError(f"{shown(word)} {what}")


def _count(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,12}", text) or not int(text):
        raise InputError(f"{shown(text)} is no number of times")
    return int(text)


# ---------------------------------------------------------------- going on


@command("run")
def run(t: Terminal, text: str) -> bool:
    """run: start the program, or start it again."""
    return _begin(t, 0)


@command("start")
def start(t: Terminal, text: str) -> bool:
    """start: run up to the first instruction."""
    return _begin(t, 1)


def _begin(t: Terminal, target: int) -> bool:
    t.debugger.target = target
    if t.debugger.grid is not None:
        raise Again
    return True


@command("continue")
def continue_(t: Terminal, text: str) -> bool:
    """continue: to the next breakpoint."""
    t.debugger.lane()
    t.debugger.go()
    return True


@command("step")
def step(t: Terminal, text: str) -> bool:
    """step [N]: to another line of the thread in focus."""
    return t.steps(text, t.debugger.step_line)


@command("next")
def next_(t: Terminal, text: str) -> bool:
    """next [N]: the same, but over calls of functions."""
    return t.steps(text, lambda: t.debugger.step_line(over=True))


@command("stepi", "nexti")
def stepi(t: Terminal, text: str) -> bool:
    """stepi [N] [thread|warp|all]: one instruction of the warp in focus, or only of its thread, or of any warp."""
    count, unit = _with_unit(text)
    return t.steps(count, lambda: t.debugger.step_instruction(unit))


@command("finish")
def finish(t: Terminal, text: str) -> bool:
    """finish: until the function returns."""
    t.debugger.finish()
    return True


@command("reverse-stepi")
def reverse_stepi(t: Terminal, text: str) -> bool:
    """reverse-stepi [thread|warp|all]: to the instruction before."""
    return _back(t, _with_unit(text)[1])


@command("reverse-step")
def reverse_step(t: Terminal, text: str) -> bool:
    """reverse-step: to where the thread came to its line, or to the line before."""
    return _back(t, "line")


@command("reverse-continue")
def reverse_continue(t: Terminal, text: str) -> bool:
    """reverse-continue: to the breakpoint before."""
    return _back(t, "breakpoint")


def _back(t: Terminal, unit: str) -> NoReturn:
    t.debugger.back(unit)
    raise AssertionError


@command("goto")
def goto(t: Terminal, text: str) -> bool:
    """goto STEP: to a step, which every stop tells, forward or back."""
    t.debugger.go_to(_count(text))
    return True


def _with_unit(text: str) -> tuple[str, str]:
    """A count and a unit, either of which may be missing."""
    parts = text.split()
    units = [part for part in parts if part in UNITS]
    rest = [part for part in parts if part not in UNITS]
    if len(units) > 1 or len(rest) > 1:
        raise InputError(f"{shown(text)}: write [N] [{'|'.join(UNITS)}]")
    return "".join(rest), (units or ["warp"])[0]


# ---------------------------------------------------------------- breakpoints


@command("break")
def break_(t: Terminal, text: str) -> bool:
    """break LINE|FILE:LINE|FUNCTION [if CONDITION]: stop there, if a thread fulfils it: threadIdx.x == 5 && %r1 > 3."""
    return _break(t, text, temporary=False)


@command("tbreak")
def tbreak(t: Terminal, text: str) -> bool:
    """tbreak ...: the same, once."""
    return _break(t, text, temporary=True)


def _break(t: Terminal, text: str, temporary: bool) -> bool:
    spot, _, condition = text.partition(" if ")
    made = t.debugger.add_breakpoint(spot, condition, temporary)
    places = t.debugger.places
    if places is None:
        t.say(f"breakpoint {made.number} at {printable(made.spot)}, when the program runs")
    elif not made.ops:
        t.say(f"breakpoint {made.number} at {printable(made.spot)}: no instruction of this kernel is there")
    else:
        t.say(
            *(f"breakpoint {made.number} at {printable(str(places.line(op)))}: {printable(places.text(op))}" for op in made.ops)
        )
    return False


@command("delete")
def delete(t: Terminal, text: str) -> bool:
    """delete [N]: remove a breakpoint or watchpoint, or all."""
    for number in [_count(text)] if text else [*t.debugger.breakpoints, *t.debugger.watchpoints]:
        t.debugger.remove(number)
    return False


@command("disable", "enable")
def enable(t: Terminal, text: str) -> bool:
    """enable N, disable N: a breakpoint or watchpoint."""
    number = _count(text)
    found = t.debugger.breakpoints.get(number) or t.debugger.watchpoints.get(number)
    if found is None:
        raise InputError(f"there is no breakpoint or watchpoint {number}")
    found.enabled = not t._last.startswith("dis")
    return False


@command("watch")
def watch(t: Terminal, text: str) -> bool:
    """watch x[3] | image[x,y] | shared 16 | ADDRESS: stop after a write that changes it. rwatch: reads; awatch: both."""
    return _watch(t, text, WRITE)


@command("rwatch")
def rwatch(t: Terminal, text: str) -> bool:
    """rwatch ...: stop after reads."""
    return _watch(t, text, READ)


@command("awatch")
def awatch(t: Terminal, text: str) -> bool:
    """awatch ...: stop after reads and writes."""
    return _watch(t, text, READ | WRITE)


def _watch(t: Terminal, text: str, kinds: int) -> bool:
    made = t.debugger.add_watchpoint(text, kinds, lambda: t.spot(text))
    spot = made.spot
    t.say(f"watchpoint {made.number}: {printable(text)}, {spot.size} bytes of {spot.space} memory at 0x{spot.address:x}")
    return False


@command("catch")
def catch(t: Terminal, text: str) -> bool:
    """catch [nan|infinity|subnormal ...]: stop where one is made of operands that are none; without words, no more."""
    found = {word.lower(): [kind for kind in births.KINDS if kind.lower().startswith(word.lower())] for word in text.split()}
    for word, kinds in found.items():
        if len(kinds) != 1:
            raise InputError(f"{shown(word)} is none of {', '.join(births.KINDS)}")
    t.debugger.caught = {kind for kinds in found.values() for kind in kinds}
    return False


# ---------------------------------------------------------------- looking


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
    result = value(text, names_in(text, t.debugger, t.resources))
    in_hex = found is not None and found[1] == "x" and isinstance(result, int | np.integer)
    t.say(printable(hex(result) if in_hex else str(result)))
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
    "registers": lambda t, text: words.registers(t.debugger.lane(), text.split()),
    "locals": lambda t, text: words.variables(t.debugger.lane()),
    "threads": lambda t, text: _threads(t.debugger),
    "blocks": lambda t, text: _blocks(t.debugger),
    "breakpoints": lambda t, text: _breakpoints(t.debugger),
    "line": lambda t, text: words.stack(t.debugger),
}


@command("info")
def info(t: Terminal, text: str) -> bool:
    """info warps|threads|blocks|registers [NAME ...]|locals|breakpoints|line (info cuda ... is the same)."""
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


# ---------------------------------------------------------------- others


@command("help")
def help_(t: Terminal, text: str) -> bool:
    """help: this list."""
    for function in dict.fromkeys(COMMANDS.values()):
        t.say(function.__doc__ or "")
    return False


@command("quit")
def quit_(t: Terminal, text: str) -> bool:
    """quit: leave."""
    raise Leave
