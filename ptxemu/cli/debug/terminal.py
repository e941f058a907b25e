"""The debugger at a terminal, with the commands of cuda-gdb; or from a file or a pipe."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import click

from ptxemu.case.resources import Resources
from ptxemu.cli.debug import going, looking, stops, words
from ptxemu.cli.debug.commands import Command, Commands, count_of
from ptxemu.debugger.engine import Debugger, Leave, Stop, key_of
from ptxemu.debugger.inspect import Spot
from ptxemu.debugger.memory import spot_of
from ptxemu.text.errors import InputError, printable, shown
from ptxemu.text.listings import Listings

PROMPT = "(ptxemu) "
COMMANDS = Commands({**going.COMMANDS, **stops.COMMANDS, **looking.COMMANDS})
command = COMMANDS.add
SHORT = {
    "b": "break", "c": "continue", "s": "step", "n": "next", "si": "stepi", "ni": "nexti", "bt": "backtrace", "p": "print",
    "r": "run", "q": "quit", "i": "info", "d": "delete", "l": "list", "h": "help", "rc": "reverse-continue",
    "rs": "reverse-step", "rsi": "reverse-stepi", "tb": "tbreak", "fin": "finish", "f": "frame",
}  # fmt: skip


class Terminal:
    """Reads commands from ``lines``; ``resources`` are those of the program, once it runs."""

    debugger: Debugger

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
        self.word = ""  # the command that is being done
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
            self.word, meant = _meant(word)
            return meant(self, line[len(word) :].strip())
        except InputError as error:
            self.say(printable(str(error)))
            raise

    @property
    def resources(self) -> Resources | None:
        return self._resources()

    def steps(self, text: str, go: Callable[[], object]) -> bool:
        """Go on ``text`` times."""
        count = count_of(text) if text else 1
        go()
        self._again, self._left = go, count - 1
        return True

    def spot(self, text: str, size: int = 4) -> Spot:
        return spot_of(text, self.debugger, self.resources, size)


def _meant(word: str) -> tuple[str, Command]:
    """The command of a name, a short name, or the beginning of one name."""
    name = SHORT.get(word, word)
    if name in COMMANDS:
        return name, COMMANDS[name]
    found = {COMMANDS[name]: name for name in COMMANDS if name.startswith(word)}
    if len(found) == 1:
        return next((name, command) for command, name in found.items())
    what = f"may be {', '.join(found.values())}" if found else "is no command; help lists them"
    raise InputError(f"{shown(word)} {what}")


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
