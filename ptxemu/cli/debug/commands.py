"""Tables of commands of the terminal."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from ptxemu.text.errors import InputError, shown

if TYPE_CHECKING:
    from ptxemu.cli.debug.terminal import Terminal

Command = Callable[["Terminal", str], bool]
"""It is given the words behind its name, and returns whether the program goes on."""


class Commands(dict[str, Command]):
    """By name."""

    def add(self, *names: str) -> Callable[[Command], Command]:
        """Register a command."""

        def add(function: Command) -> Command:
            self.update(dict.fromkeys(names, function))
            return function

        return add


def count_of(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,12}", text) or not int(text):
        raise InputError(f"{shown(text)} is no number of times")
    return int(text)
