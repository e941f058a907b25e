"""Where instructions are, in lines of the source and of the PTX, and which instructions a line means."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile
from pathlib import PurePath

from ptxemu.debugger.variables import described
from ptxemu.interpreter.image import Image
from ptxemu.interpreter.translate import Code
from ptxemu.ir.ops import Op
from ptxemu.ir.source_lines import SourceLines
from ptxemu.text.errors import InputError, shown
from ptxemu.text.source import Location
from ptxemu.text.symbols import meant

SPOT = re.compile(r"(?:(?P<file>.+):)?(?P<line>[0-9]{1,9})")


class Places:
    """Those of a kernel and of the functions that it reaches."""

    def __init__(self, image: Image) -> None:
        self.image = image
        self._lines = SourceLines(image.module)

    def ptx(self, op: Op) -> Location:
        return self.image.module.source.location(op.pos)

    def chain(self, op: Op) -> tuple[Location, ...]:
        """The line of the source, if it is known, and those that it is inlined at."""
        return self._lines.of(op)

    def line(self, op: Op) -> Location:
        """The line that a person steps through: of the source, or else of the PTX."""
        return next(iter(self.chain(op)), None) or self.ptx(op)

    def told(self, op: Op) -> str:
        """The line, and behind that of a person's own code that of an inlined function."""
        return self._lines.told(op) or str(self.ptx(op))

    def text(self, op: Op) -> str:
        """The instruction as it is written."""
        source = self.image.module.source
        if op.end <= op.pos:  # the end of a body
            return "}"
        return " ".join(source.text[op.pos : op.end].split())

    def meant(self, spot: str, near: Op | None = None) -> list[Op]:
        """The instructions that ``line``, ``file:line`` or the name of a function means: where code of the line begins.

        A line without a file is one of that of the instruction ``near``.
        """
        found = SPOT.fullmatch(spot.strip())
        if found is None:
            return [self._body(code) for code in self._named(spot.strip())]
        line = int(found["line"])
        file = found["file"]
        if file is None:
            ops = [op for code in self.image.codes.values() for op in code.ops]
            file = self.line(near or ops[0]).file
        return [op for code in self.image.codes.values() for op in self._begins(code, Location(file, line))]

    def _named(self, name: str) -> Iterator[Code]:
        codes = {function.name: code for function, code in self.image.codes.items()}
        yield from (codes[symbol] for symbol in meant(name, codes))

    def _body(self, code: Code) -> Op:
        """Where a function begins: if its variables are known, the next line, before which it gets its arguments."""
        if not described(self.image.module, code):
            return code.ops[0]
        first = self.line(code.ops[0])
        straight = takewhile(lambda op: not op.labels, code.ops)
        return next((op for op in straight if self.line(op) != first), code.ops[0])

    def _begins(self, code: Code, wanted: Location) -> Iterator[Op]:
        """Where stretches of a function's instructions that belong to a line begin."""
        before = False
        for op in code.ops[:-1]:
            here = any(_same(wanted, place) for place in (*self.chain(op)[:1], self.ptx(op)))
            if here and not before:
                yield op
            before = here


def _same(wanted: Location, place: Location) -> bool:
    """Whether a place is the wanted one, whose file may be given by the end of its path."""
    if wanted.line != place.line:
        return False
    parts = PurePath(wanted.file).parts
    return wanted.file == place.file or PurePath(place.file).parts[-len(parts) :] == parts


def checked_spot(spot: str) -> str:
    """Where a breakpoint is to be; InputError if that can be no place of any program."""
    if not spot.strip() or len(spot) > 1000:
        raise InputError(f"{shown(spot)} is no place: LINE, FILE:LINE or the name of a function")
    return spot.strip()
