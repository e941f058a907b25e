"""What the grammar makes of a line of CTM text. Positions are offsets in the source."""

from __future__ import annotations

from msgspec import Struct

from ptxemu.syntax.ast import Int


class Name(Struct, frozen=True, gc=False):
    """A word: a register with its channels (``r0.rgb``), an instruction with its modifiers, a name."""

    text: str
    pos: int
    end: int

    @property
    def stem(self) -> str:
        return self.text.partition(".")[0]

    @property
    def suffix(self) -> str:
        """What follows the first dot."""
        return self.text.partition(".")[2]


class Number(Struct, frozen=True, gc=False):
    """A literal with the bits of the float that it stands for."""

    bits: int
    pos: int
    end: int


class Source(Struct, frozen=True, gc=False):
    """``-|r0.rgb|``"""

    value: Name | Number
    negated: bool
    absolute: bool
    pos: int
    end: int


class Pair(Struct, frozen=True, gc=False):
    """``r0.rgb|pred.rg`` or one of both: what an instruction writes."""

    names: tuple[Name, ...]
    pos: int
    end: int


Operand = Pair | Source


class Part(Struct, frozen=True, gc=False):
    """What one unit does, or both do: ``RGB MAD.OMOD_U2 r0.rgb, r1, r2, r3``; ``unit`` is None for both."""

    unit: Name | None
    name: Name
    operands: tuple[Operand, ...]
    pos: int
    end: int

    @property
    def opcode(self) -> str:
        return self.name.stem

    @property
    def modifiers(self) -> tuple[str, ...]:
        return tuple(self.name.suffix.split(".")) if self.name.suffix else ()


class Instruction(Struct, frozen=True, gc=False):
    """``ALU`` or ``OUTPUT`` and the parts of its units."""

    kind: Name | None
    parts: tuple[Part, ...]
    pos: int
    end: int


class Directive(Struct, frozen=True, gc=False):
    """``.word arguments``"""

    name: Name
    arguments: tuple[Name | Int | Number, ...]


Line = Instruction | Directive
