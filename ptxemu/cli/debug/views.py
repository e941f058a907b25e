"""Requests of editors that look: at threads, stacks, sources and variables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptxemu.cli.debug.requests import PTX_SOURCE, Handlers, Shown, number_of
from ptxemu.cli.debug.terminal import Terminal
from ptxemu.cli.debug.words import parameters, registers_shown
from ptxemu.debugger import inspect, values
from ptxemu.debugger.inspect import Frame
from ptxemu.debugger.memory import evaluated, variable_in
from ptxemu.debugger.variables import Scope, Value
from ptxemu.dwarf.names import Tag
from ptxemu.interpreter.lane import Lane
from ptxemu.interpreter.machine import Warp
from ptxemu.interpreter.standing import block_of, stands_of
from ptxemu.text.errors import InputError
from ptxemu.text.source import Location, parts_of
from ptxemu.text.symbols import plain_name

if TYPE_CHECKING:
    from ptxemu.cli.debug.adapter import Adapter

HANDLERS = Handlers()
request = HANDLERS.add


@request("threads")
def threads(a: Adapter, arguments: dict[str, Any]) -> Any:
    warps = [warp for block in a.debugger.resident() for warp in block.warps if warp.live]
    return {"threads": [{"id": number_of(warp), "name": _name(warp)} for warp in warps]}


def _name(warp: Warp) -> str:
    waits = {stand.waits for stand in stands_of(warp) if stand.waits}
    block = "({},{},{})".format(*block_of(warp.block))
    return f"block {block} warp {warp.index}" + (f", waits for {', '.join(sorted(waits))}" if waits else "")


@request("stackTrace")
def stack_trace(a: Adapter, arguments: dict[str, Any]) -> Any:
    found = [_frame(a, *frame) for frame in _frames(a, a.focus(arguments))]
    first = int(arguments.get("startFrame") or 0)
    levels = int(arguments.get("levels") or len(found))
    return {"stackFrames": found[first : first + levels], "totalFrames": len(found)}


def _frames(a: Adapter, lane: Lane) -> Iterator[tuple[Frame, Location, str]]:
    """Functions and those inlined into them, the innermost first."""
    places = a.debugger.places
    assert places is not None
    for frame in inspect.frames_of(lane):
        for place in places.chain(frame.op) or (places.ptx(frame.op),):
            yield frame, place, plain_name(frame.code.function.name)


def _frame(a: Adapter, frame: Frame, place: Location, name: str) -> dict[str, Any]:
    a.frames.append(frame)
    return {"id": len(a.frames), "name": name, "line": place.line, "column": 1, "source": a.source(place)}


@request("source")
def source(a: Adapter, arguments: dict[str, Any]) -> Any:
    texts = parts_of(a.module_source)
    number = int(arguments.get("sourceReference") or 0) - PTX_SOURCE
    if not 0 <= number < len(texts):
        raise InputError("there is no such source")
    return {"content": texts[number].text}


SCOPES: tuple[tuple[str, Callable[[Adapter, Frame], Iterator[Shown]]], ...] = (
    ("Locals", lambda a, frame: _declared(a, frame, Tag.VARIABLE)),
    ("Arguments", lambda a, frame: _declared(a, frame, Tag.FORMAL_PARAMETER)),
    ("Registers", lambda a, frame: ((name, text, None) for name, text in registers_shown(frame))),
    ("Thread", lambda a, frame: ((name, str(found), None) for name, found in inspect.special_names(frame.lane).items())),
    ("Parameters", lambda a, frame: ((name, text, None) for name, text in parameters(frame.lane))),
)
OF_SOURCE = 2  # of them are there with DWARF only


def _declared(a: Adapter, frame: Frame, tag: Tag) -> Iterator[Shown]:
    """Variables of CUDA C++."""
    scope = a.debugger.scope(frame)
    for name in scope.names(tag):
        try:
            found = scope.find(name)
        except InputError as error:
            yield name, f"<{error}>", None
        else:
            if found is not None:
                yield name, values.shown(scope, found), (scope, found)


@request("scopes")
def scopes(a: Adapter, arguments: dict[str, Any]) -> Any:
    number = int(arguments["frameId"])
    if not 1 <= number <= len(a.frames):
        raise InputError("there is no such frame")
    frame = a.frames[number - 1]
    there = SCOPES if a.debugger.scope(frame).known else SCOPES[OF_SOURCE:]
    return {
        "scopes": [
            {"name": name, "variablesReference": a.opened(partial(shown, a, frame)), "expensive": False} for name, shown in there
        ]
    }


@request("variables")
def variables(a: Adapter, arguments: dict[str, Any]) -> Any:
    number = int(arguments["variablesReference"])
    if not 1 <= number <= len(a.opens):
        raise InputError("there are no such variables")
    return {"variables": [_variable(a, *shown) for shown in a.opens[number - 1]()]}


def _variable(a: Adapter, name: str, text: str, found: tuple[Scope, Value] | None) -> dict[str, Any]:
    told: dict[str, Any] = {"name": name, "value": text, "variablesReference": 0}
    if found is not None:
        told["type"] = str(found[1].type)
        if values.has_parts(found[1]):
            told["variablesReference"] = a.opened(partial(_parts, *found))
    return told


def _parts(scope: Scope, value: Value) -> Iterator[Shown]:
    return ((name, values.shown(scope, one), (scope, one)) for name, one in values.parts(scope, value))


@request("evaluate")
def evaluate(a: Adapter, arguments: dict[str, Any]) -> Any:
    """Expressions; in the console also the commands of the terminal that only look."""
    text = str(arguments["expression"])
    resources = None if a.subject is None else a.subject.resources
    if arguments.get("context") == "repl" and text.split(" ")[0] in LOOKING:
        said: list[str] = []
        terminal = Terminal(a.debugger, iter(()), lambda: resources, Path(), said.append)
        terminal.command(text)
        return {"result": "\n".join(said), "variablesReference": 0}
    number = arguments.get("frameId")
    if isinstance(number, int) and 1 <= number <= len(a.frames) and a.frames[number - 1].lane is a.debugger.focus:
        a.debugger.select(a.debugger.frames().index(a.frames[number - 1]))
    variable = variable_in(text, a.debugger)
    if variable is None:
        return {"result": str(evaluated(text, a.debugger, resources)), "variablesReference": 0}
    told = _variable(a, text, values.described(*variable), variable)
    return {"result": told.pop("value"), **told}


LOOKING = {"where", "info", "x", "surface", "list", "backtrace", "bt", "help", "cuda", "watch", "rwatch", "awatch", "delete"}
