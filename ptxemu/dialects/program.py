"""What the front ends of all dialects do with the lines of a file: directives by name, kernels one after the other."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ptxemu.dialects.text import TextError
from ptxemu.ir.ops import Module
from ptxemu.text.errors import Diagnostics
from ptxemu.text.suggestions import nearest, proposing

KERNEL = "kernel"
USAGE = re.compile(r"``(\.[^`]+)``")


def first_value(given: set[str], register: str, name: Any, started: bool) -> None:
    """A directive gives ``register``, at ``name``, its first value: before the first instruction, and once."""
    if started:
        raise TextError("register files are read before the first instruction", name.pos, name.end)
    if register in given:
        raise TextError(f"'{register}' has a first value already", name.pos, name.end)
    given.add(register)


class Outside(TextError):
    """A line that belongs to a kernel stands before the first one."""

    def __init__(self, place: Any, message: str = "this must follow a .kernel directive") -> None:
        super().__init__(message, place.pos, place.end)


class ProgramFront(ABC):
    """Lines to a module; an error costs one line. ``directives`` gives the handler of each ``.name``, whose docstring
    begins with how it is written; ``words`` is what messages call the kinds of their arguments."""

    directives: Mapping[str, Callable[[Any], None]]

    def __init__(self, module: Module, diagnostics: Diagnostics, words: Mapping[Any, str] = MappingProxyType({})) -> None:
        self.words = words
        self.module = module
        self.diagnostics = diagnostics

    def run(self, lines: Sequence[Any]) -> Module:
        for line in lines:
            if self.diagnostics.full:
                break
            self._read(line)
        self.finish_kernel()
        if not self.module.functions and not self.diagnostics.errors:
            self.diagnostics.error("the file has no .kernel", 0)
        self.diagnostics.sort()
        return self.module

    def _read(self, line: Any) -> None:
        try:
            self.line(line)
        except Outside as error:
            if not any(f".{KERNEL}" in record.text for record in self.diagnostics.records):
                self._report(error)
            self.nameless_kernel(error.pos)
            self._read(line)
        except TextError as error:
            self._report(error)

    @abstractmethod
    def line(self, line: Any) -> None:
        """One line of the file."""

    @abstractmethod
    def last_errors(self) -> Iterable[TextError]:
        """Complete the kernel that is being read, if there is one; what only shows at its end."""

    @abstractmethod
    def nameless_kernel(self, pos: int) -> None:
        """A kernel for lines behind a ``.kernel`` that is wrong or missing: they are checked, and not blamed for it."""

    def finish_kernel(self) -> None:
        for error in self.last_errors():
            self._report(error)

    def directive(self, item: Any) -> None:
        """Serve a directive, whose ``name`` is ``.word``."""
        word = item.name.text[1:]
        handler = self.directives.get(word)
        meant = word if handler else nearest(word, self.directives)
        try:
            if handler is None:
                raise TextError(f"unknown directive '.{word}'{proposing(meant and f'.{meant}')}", item.name.pos, item.name.end)
            handler(item)
        except TextError:
            if meant == KERNEL:
                self.finish_kernel()
                self.nameless_kernel(item.name.pos)
            raise

    def arguments(self, item: Any, kinds: Sequence[Any], least: int | None = None) -> list[Any]:
        """The arguments of a directive, of the ``kinds`` (keys of ``words``) that it takes, ``least`` of them or all."""
        given = list(item.arguments)
        if not (len(kinds) if least is None else least) <= len(given) <= len(kinds):
            raise TextError(self.usage(item), item.name.pos, item.name.end)
        for kind, argument in zip(kinds, given):
            if not isinstance(argument, kind):
                raise TextError(f"expected {self.words[kind]}", argument.pos, argument.end)
        return given

    def usage(self, item: Any) -> str:
        """How a directive is written."""
        found = USAGE.search(self.directives[item.name.text[1:]].__doc__ or "")
        assert found is not None
        return f"expected {found[1]}"

    def _report(self, error: TextError) -> None:
        self.diagnostics.error(error.message, error.pos, error.end)
