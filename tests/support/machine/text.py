"""What nvdisasm prints: functions, their instructions and labels."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

SECTION = re.compile(r"^\.text\.(\w+):$", re.MULTILINE)
LABEL = re.compile(r"^([.$\w]+):$")
INSTRUCTION = re.compile(r"^\s+/\*(?P<at>[0-9a-f]{4,})\*/\s+(?:@(?P<guard>!?U?P\w+)\s+)?(?P<opcode>[A-Z][\w.]*)(?P<rest>[^;]*);")
TARGET = re.compile(r"`\((.+)\)")


@dataclass(frozen=True)
class Instruction:
    """``FADD.FTZ R0, -R0, -RZ`` has the name FADD and one modifier."""

    guard: str
    name: str
    mods: tuple[str, ...]
    operands: tuple[str, ...]

    @property
    def opcode(self) -> str:
        return ".".join((self.name, *self.mods))

    def __contains__(self, modifier: str) -> bool:
        return modifier in self.mods

    def first(self, known: tuple[str, ...], otherwise: str) -> str:
        """The first modifier that is one of these."""
        return next((mod for mod in self.mods if mod in known), otherwise)


@dataclass
class Function:
    code: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The same for functions that do the same."""
        return repr((self.code, sorted(self.labels.items())))


def functions(listing: str) -> Iterator[tuple[str, Function]]:
    """The functions of a listing, by name."""
    pieces = SECTION.split(listing)
    for name, body in zip(pieces[1::2], pieces[2::2], strict=True):
        yield name, _function(name, body)


def _function(name: str, body: str) -> Function:
    function = Function(labels={name: 0})
    for line in body.splitlines():
        if label := LABEL.match(line):
            function.labels[label[1]] = len(function.code)
        elif found := INSTRUCTION.match(line):
            assert int(found["at"], 16) == 16 * len(function.code), line
            opcode, *mods = found["opcode"].split(".")
            function.code.append(Instruction(found["guard"] or "", opcode, tuple(mods), _operands(found["rest"])))
    return function


def _operands(text: str) -> tuple[str, ...]:
    parts = (part.strip().replace(".reuse", "") for part in text.replace(" `(", ", `(").split(","))
    return tuple(target[1] if (target := TARGET.fullmatch(part)) else part for part in parts if part)
