"""What the grammar makes of a line of textual vISA. Positions are offsets in the source."""

from __future__ import annotations

from msgspec import Struct

from ptxemu.syntax.ast import Name


class Number(Struct, frozen=True, gc=False):
    """An immediate, ``-1:d``; its type may be missing."""

    text: str
    type: str
    pos: int
    end: int


class Text(Struct, frozen=True, gc=False):
    """``"..."``, without the quotation marks."""

    text: str
    pos: int
    end: int


class Region(Struct, frozen=True, gc=False):
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


class Guard(Struct, frozen=True, gc=False):
    """``(!P3.any)``"""

    name: Name
    inverted: bool
    pos: int


class Execution(Struct, frozen=True, gc=False):
    """``(M3, 8)``; no ``mask`` is M1."""

    mask: Name | None
    size: Number


class Instruction(Struct, frozen=True, gc=False):
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


class Alias(Struct, frozen=True, gc=False):
    """``alias=<V41, 32>``"""

    name: Name
    offset: Number


Word = Name | Number | Text
Value = Word | Alias


class Directive(Struct, frozen=True, gc=False):
    """``.decl V40 v_type=G``: the word of the directive, plain words, and attributes."""

    name: Name
    words: tuple[Word, ...]
    attributes: tuple[tuple[Name, Value], ...]


class Label(Struct, frozen=True, gc=False):
    """``name:``"""

    name: Name


Line = Label | Directive | Instruction
