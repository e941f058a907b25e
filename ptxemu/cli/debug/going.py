"""Commands that have the program go on, or back."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from ptxemu.cli.debug.commands import Commands, count_of
from ptxemu.debugger.engine import Again
from ptxemu.text.errors import InputError, shown

if TYPE_CHECKING:
    from ptxemu.cli.debug.terminal import Terminal

UNITS = ("thread", "warp", "all")
COMMANDS = Commands()
command = COMMANDS.add


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
    t.debugger.go_to(count_of(text))
    return True


def _with_unit(text: str) -> tuple[str, str]:
    """A count and a unit, either of which may be missing."""
    parts = text.split()
    units = [part for part in parts if part in UNITS]
    rest = [part for part in parts if part not in UNITS]
    if len(units) > 1 or len(rest) > 1:
        raise InputError(f"{shown(text)}: write [N] [{'|'.join(UNITS)}]")
    return "".join(rest), (units or ["warp"])[0]
