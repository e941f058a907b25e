"""Commands for breakpoints, watchpoints, and what is caught."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxemu._runtime import lib
from ptxemu.cli.debug.commands import Commands, count_of
from ptxemu.interpreter import births
from ptxemu.text.errors import InputError, printable, shown

if TYPE_CHECKING:
    from ptxemu.cli.debug.terminal import Terminal

READ, WRITE = lib.PE_READ, lib.PE_WRITE
COMMANDS = Commands()
command = COMMANDS.add


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
    for number in [count_of(text)] if text else [*t.debugger.breakpoints, *t.debugger.watchpoints]:
        t.debugger.remove(number)
    return False


@command("disable", "enable")
def enable(t: Terminal, text: str) -> bool:
    """enable N, disable N: a breakpoint or watchpoint."""
    number = count_of(text)
    found = t.debugger.breakpoints.get(number) or t.debugger.watchpoints.get(number)
    if found is None:
        raise InputError(f"there is no breakpoint or watchpoint {number}")
    found.enabled = t.word == "enable"
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
