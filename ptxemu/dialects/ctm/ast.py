"""What the grammar makes of a line of CTM text. Positions are offsets in the source."""

from __future__ import annotations

from dataclasses import dataclass

from ptxemu.syntax.ast import Int


@dataclass(slots=True, frozen=True)
class Name:
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


@dataclass(slots=True, frozen=True)
class Number:
    """A literal with the bits of the float that it stands for."""

    bits: int
    pos: int
    end: int


@dataclass(slots=True, frozen=True)
class Source:
    """``-|r0.rgb|``"""

    value: Name | Number
    negated: bool
    absolute: bool
    pos: int
    end: int


@dataclass(slots=True, frozen=True)
class Pair:
    """``r0.rgb|pred.rg`` or one of both: what an instruction writes."""

    names: tuple[Name, ...]
    pos: int
    end: int


Operand = Pair | Source


@dataclass(slots=True, frozen=True)
class Part:
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


@dataclass(slots=True, frozen=True)
class Instruction:
    """``ALU`` or ``OUTPUT`` and the parts of its units."""

    kind: Name | None
    parts: tuple[Part, ...]
    pos: int
    end: int


@dataclass(slots=True, frozen=True)
class Directive:
    """``.word arguments``"""

    name: Name
    arguments: tuple[Name | Int | Number, ...]


Line = Instruction | Directive
