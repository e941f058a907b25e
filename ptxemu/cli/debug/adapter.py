"""The debugger as an adapter for editors: ``ptxemu debug --dap`` talks the Debug Adapter Protocol.

What the protocol calls a thread is a warp here; its stack and variables are those of the thread in focus.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from ptxemu.cli.debug import views
from ptxemu.cli.debug.protocol import Connection, Message
from ptxemu.cli.debug.requests import PTX_SOURCE, Handlers, Shown, number_of
from ptxemu.cli.inputs import KernelOptions
from ptxemu.cli.programs import VARIABLES
from ptxemu.cli.subject import Subject, subject_of
from ptxemu.debugger.engine import Again, Breakpoint, Debugger, Leave, Stop
from ptxemu.debugger.inspect import Frame
from ptxemu.interpreter.lane import EXITED, Lane
from ptxemu.text.errors import Error, InputError, shown
from ptxemu.text.source import Location, parts_of

CAPABILITIES = dict.fromkeys(
    (
        "supportsConfigurationDoneRequest", "supportsConditionalBreakpoints", "supportsFunctionBreakpoints", "supportsStepBack",
        "supportsSteppingGranularity", "supportsTerminateRequest", "supportsEvaluateForHovers", "supportsRestartRequest",
    ),
    True,
)  # fmt: skip
REASONS = {"fault": "exception", "goto": "step", "watchpoint": "data breakpoint", "start": "entry"}
HANDLERS = Handlers()
request = HANDLERS.add


class _GoOn(Exception):
    """The program is to run; the request is answered before."""


class Adapter:
    """One session. ``subject`` is what the command line names; else the request ``launch`` does."""

    def __init__(self, source: BinaryIO, target: BinaryIO, subject: Subject | None) -> None:
        self.debugger = Debugger()
        self.subject = subject
        self.connection = Connection(source, target, self._arrived)
        self.ready = False  # the client has told all breakpoints
        self.ended = False
        self.stop_on_entry = False
        self._lines: dict[str, list[int]] = {}  # numbers of breakpoints by file
        self._functions: list[int] = []
        self.frames: list[Frame] = []
        self.opens: list[Callable[[], Iterator[Shown]]] = []  # what the client can ask for by number, until the program goes on
        self._paused = False

    def _arrived(self) -> None:
        self.debugger.attention = True

    # ------------------------------------------------------------ what the session tells

    def idle(self) -> None:
        self._serve(lambda: self.ready and self.subject is not None and not self.ended)
        self.debugger.target = 1 if self.stop_on_entry else 0

    def stopped(self, stop: Stop) -> None:
        self._told()
        reason = "pause" if self._paused else "entry" if self._entered() else REASONS.get(stop.reason, stop.reason)
        self._paused = False
        self.frames, self.opens = [], []
        hit = {} if stop.number is None else {"hitBreakpointIds": [stop.number]}
        thread = number_of(self.debugger.lane().warp)
        self.connection.event("stopped", reason=reason, threadId=thread, allThreadsStopped=True, text=stop.text, **hit)
        self._serve(lambda: False)

    def _entered(self) -> bool:
        entered, self.stop_on_entry = self.stop_on_entry and self.debugger.now == 1, False
        return entered

    def attend(self) -> None:
        """Requests that come while the program runs."""
        while (message := self.connection.next(wait=False)) is not None:
            with suppress(_GoOn):  # it does already
                self._handle(message)
        if self.connection.gone:
            raise Leave

    def exited(self, text: str) -> None:
        self.ended = True
        self.connection.event("output", category="console", output=text + "\n")
        self.connection.event("exited", exitCode=0)
        self.connection.event("terminated")

    def printed(self, text: str) -> None:
        self.connection.event("output", category="stdout", output=text)

    # ------------------------------------------------------------ requests

    def _serve(self, done: Callable[[], bool]) -> None:
        """Answer requests until one lets the program go on."""
        while not done():
            message = self.connection.next()
            if message is None:
                raise Leave
            try:
                self._handle(message)
            except _GoOn:
                return

    def _handle(self, message: Message) -> None:
        """Answer a request; one that has the program go on, or back, is answered first."""
        arguments = message.get("arguments") or {}
        handler = (HANDLERS | views.HANDLERS).get(str(message.get("command")))
        try:
            if handler is None or not isinstance(arguments, dict):
                raise InputError(f"{shown(message.get('command'))} is not supported")
            body = handler(self, arguments)
        except Error as error:
            self.connection.answer(message, error=str(error))
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            self.connection.answer(message, error=f"arguments of the wrong kind: {type(error).__name__} {error}")
        except (_GoOn, Again, Leave):
            self.connection.answer(message, {"allThreadsContinued": True} if message.get("command") == "continue" else None)
            raise
        else:
            self.connection.answer(message, body)
            if message.get("command") == "initialize":
                self.connection.event("initialized")

    def _told(self) -> None:
        """Tell where breakpoints are, now that the program is known."""
        for number in [*self._functions, *(number for numbers in self._lines.values() for number in numbers)]:
            if (found := self.debugger.breakpoints.get(number)) is not None:
                self.connection.event("breakpoint", reason="changed", breakpoint=self.breakpoint(found))

    def breakpoint(self, one: Breakpoint) -> dict[str, Any]:
        places = self.debugger.places
        if places is None:
            return {"id": one.number, "verified": False, "message": "known when the program runs"}
        lines = [places.line(op).line for op in one.ops]
        return {"id": one.number, "verified": bool(lines), **({"line": lines[0]} if lines else {})}

    def replace(self, old: list[int], spots: list[tuple[str, str]]) -> tuple[list[int], list[dict[str, Any]]]:
        """Other breakpoints in place of old ones."""
        for number in old:
            if number in self.debugger.breakpoints:
                self.debugger.remove(number)
        made = [self.debugger.add_breakpoint(spot, condition) for spot, condition in spots]
        return [one.number for one in made], [self.breakpoint(one) for one in made]

    def focus(self, arguments: dict[str, Any]) -> Lane:
        """The thread that stands for the warp that a request names."""
        number = arguments.get("threadId")
        current = self.debugger.focus
        if current is not None and number in (None, number_of(current.warp)):
            return current
        return self.debugger.focus_on(lambda lane: number_of(lane.warp) == number and lane.state != EXITED)

    def source(self, place: Location) -> dict[str, Any]:
        """Where a client finds the text of a file: on disk, or else by asking for it."""
        path = Path(place.file)
        texts = parts_of(self.module_source) if self.debugger.places is not None else []
        number = next((index for index, text in enumerate(texts, PTX_SOURCE) if text.name == place.file), 0)
        if number and not path.exists():
            return {"name": path.name, "sourceReference": number}
        return {"name": path.name, "path": str(path.absolute())}

    def opened(self, shown: Callable[[], Iterator[Shown]]) -> int:
        """The number that the client asks for variables by."""
        self.opens.append(shown)
        return len(self.opens)

    @property
    def module_source(self) -> Any:
        if self.debugger.places is None:
            raise InputError("the program is not being run")
        return self.debugger.places.image.module.source

    def program(self, arguments: dict[str, Any]) -> Subject:
        """What the arguments of ``launch`` say: ``program``, a path or several, and the options of ``ptxemu run``."""
        if "program" not in arguments:
            if self.subject is None:
                raise InputError("launch needs a program: a path of PTX, CUDA C++ or a case")
            return self.subject
        paths = [Path(path) for path in _texts(arguments["program"])]
        options: dict[str, Any] = {name: kind(arguments[name]) for name, kind in OPTIONS.items() if name in arguments}
        return subject_of(paths, KernelOptions(**options), VARIABLES)


def _texts(given: Any) -> list[str]:
    return [str(item) for item in (given if isinstance(given, list) else [given])]


OPTIONS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("entry", "grid", "block"), str),
    **dict.fromkeys(("arg", "buffer", "surface", "texture", "sampler", "bind"), _texts),
    **dict.fromkeys(("cooperative", "strict"), bool),
    "shared": int,
}
"""Arguments of ``launch`` that are options of ``ptxemu run``, and what they are."""


# ---------------------------------------------------------------- the session


@request("initialize")
def initialize(a: Adapter, arguments: dict[str, Any]) -> Any:
    return CAPABILITIES


@request("launch")
def launch(a: Adapter, arguments: dict[str, Any]) -> None:
    seed = arguments.get("seed")
    if seed is not None:
        a.debugger.schedule.seed = int(seed)
    a.stop_on_entry = bool(arguments.get("stopOnEntry"))
    a.subject = a.program(arguments)


@request("configurationDone")
def configuration_done(a: Adapter, arguments: dict[str, Any]) -> None:
    a.ready = True


@request("restart")
def restart(a: Adapter, arguments: dict[str, Any]) -> None:
    a.ended = False
    raise Again


@request("disconnect")
def disconnect(a: Adapter, arguments: dict[str, Any]) -> None:
    raise Leave


@request("terminate")
def terminate(a: Adapter, arguments: dict[str, Any]) -> None:
    a.connection.event("terminated")
    raise Leave


# ---------------------------------------------------------------- breakpoints


@request("setBreakpoints")
def set_breakpoints(a: Adapter, arguments: dict[str, Any]) -> Any:
    source = arguments["source"]
    file = str(source.get("path") or source.get("name"))
    spots = [(f"{file}:{int(one['line'])}", str(one.get("condition") or "")) for one in arguments.get("breakpoints") or []]
    a._lines[file], told = a.replace(a._lines.get(file, []), spots)
    return {"breakpoints": told}


@request("setFunctionBreakpoints")
def set_function_breakpoints(a: Adapter, arguments: dict[str, Any]) -> Any:
    spots = [(str(one["name"]), str(one.get("condition") or "")) for one in arguments.get("breakpoints") or []]
    a._functions, told = a.replace(a._functions, spots)
    return {"breakpoints": told}


@request("setExceptionBreakpoints")
def set_exception_breakpoints(a: Adapter, arguments: dict[str, Any]) -> Any:
    """Faults always stop."""
    return {"breakpoints": []}


# ---------------------------------------------------------------- going on


@request("continue")
def continue_(a: Adapter, arguments: dict[str, Any]) -> None:
    a.debugger.go()
    raise _GoOn


@request("next")
def next_(a: Adapter, arguments: dict[str, Any]) -> None:
    _step(a, arguments, over=True)


@request("stepIn")
def step_in(a: Adapter, arguments: dict[str, Any]) -> None:
    _step(a, arguments, over=False)


def _step(a: Adapter, arguments: dict[str, Any], over: bool) -> None:
    a.debugger.focus = a.focus(arguments)
    if arguments.get("granularity") == "instruction":
        a.debugger.step_instruction()
    else:
        a.debugger.step_line(over)
    raise _GoOn


@request("stepOut")
def step_out(a: Adapter, arguments: dict[str, Any]) -> None:
    a.debugger.focus = a.focus(arguments)
    a.debugger.finish()
    raise _GoOn


@request("stepBack")
def step_back(a: Adapter, arguments: dict[str, Any]) -> None:
    a.debugger.focus = a.focus(arguments)
    a.debugger.back("warp" if arguments.get("granularity") == "instruction" else "line")


@request("reverseContinue")
def reverse_continue(a: Adapter, arguments: dict[str, Any]) -> None:
    a.debugger.back("breakpoint")


@request("pause")
def pause(a: Adapter, arguments: dict[str, Any]) -> None:
    a._paused = True
    a.debugger.step_instruction("all")
