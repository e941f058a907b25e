"""Running a program again and again under a debugger, from the start each time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from ptxemu.debugger.engine import Again, Debugger, Front, Leave
from ptxemu.device.device import Device
from ptxemu.interpreter.observer import observing
from ptxemu.text.errors import Error

Printf = Callable[[str], None]
Run = Callable[[Device, Printf], object]


class Person(Front, Protocol):
    """A front end of a whole session."""

    def idle(self) -> None:
        """The program does not run. Returns when it is to; raises Leave."""

    def exited(self, text: str) -> None:
        """It has come to its end, or could not begin."""

    def printed(self, text: str) -> None:
        """What kernels print."""


def hold(debugger: Debugger, person: Person, run: Run, make_device: Callable[[], Device]) -> None:
    """A session, until the person leaves. ``run`` does the program's launches on a device that is made for it."""
    debugger.front = person
    try:
        _idle(person)
        while True:
            _once(debugger, person, run, make_device)
    except Leave:
        return


def _idle(person: Person) -> None:
    with suppress(Again):
        person.idle()


def _once(debugger: Debugger, person: Person, run: Run, make_device: Callable[[], Device]) -> None:
    """Until it is to run again: because somebody goes back, or once more when it has ended and its results have been seen."""
    debugger.start()
    seen = debugger.target > 0  # what it prints up to there

    def printed(text: str) -> None:
        if not (seen and debugger.target):
            person.printed(text)

    with make_device() as device:
        debugger.arena = device.arena
        try:
            with observing(debugger):
                run(device, printed)
            text = "the program has come to its end"
        except Again:
            return
        except Error as error:
            text = str(error)
        if not debugger.ended():
            debugger.target = 0
            person.exited(text)
            _idle(person)
