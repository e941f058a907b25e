"""What the grammar makes of a line of textual vISA. Positions are offsets in the source."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, frozen=True)
class Name:
    """A variable, raw operand (``V40.0``), predicate, surface, label or other word."""

    text: str
    pos: int
    end: int


@dataclass(slots=True, frozen=True)
class Number:
    """An immediate, ``-1:d``; its type may be missing."""

    text: str
    type: str
    pos: int
    end: int


@dataclass(slots=True, frozen=True)
class Text:
    """``"..."``, without the quotation marks."""

    text: str
    pos: int
    end: int


@dataclass(slots=True, frozen=True)
class Region:
    """``(-)V40(row, column)<vertical; width, horizontal>``; ``strides`` are empty where no region is written.

    ``row`` is None for ``T6(0)``.
    """

    name: Name
    row: int | None
    column: int
    strides: tuple[int, ...]
    modifier: str
    pos: int
    end: int


Operand = Name | Number | Region


@dataclass(slots=True, frozen=True)
class Guard:
    """``(!P3.any)``"""

    name: Name
    inverted: bool
    pos: int


@dataclass(slots=True, frozen=True)
class Execution:
    """``(M3, 8)``; no ``mask`` is M1."""

    mask: Name | None
    size: Number


@dataclass(slots=True, frozen=True)
class Instruction:
    """``(P3) OPCODE.MODIFIERS (M1, 8) operands``; opcode and modifiers are in lower case."""

    guard: Guard | None
    name: Name
    execution: Execution | None
    operands: tuple[Operand, ...]
    pos: int
    end: int

    @property
    def opcode(self) -> str:
        return self.name.text.partition(".")[0].lower()

    @property
    def modifiers(self) -> tuple[str, ...]:
        return tuple(self.name.text.lower().split(".")[1:])


@dataclass(slots=True, frozen=True)
class Alias:
    """``alias=<V41, 32>``"""

    name: Name
    offset: Number


Word = Name | Number | Text
Value = Word | Alias


@dataclass(slots=True, frozen=True)
class Directive:
    """``.decl V40 v_type=G``: the word of the directive, plain words, and attributes."""

    name: Name
    words: tuple[Word, ...]
    attributes: tuple[tuple[Name, Value], ...]


@dataclass(slots=True, frozen=True)
class Label:
    """``name:``"""

    name: Name


Line = Label | Directive | Instruction
