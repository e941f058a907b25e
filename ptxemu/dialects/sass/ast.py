"""What the grammar makes of a line of SASS. Positions are offsets in the source."""

from __future__ import annotations

from msgspec import Struct

from ptxemu.syntax.ast import Int, Name, Not


class Negative(Struct, frozen=True, gc=False):
    """``-R0``."""

    name: Name
    pos: int
    end: int


class Address(Struct, frozen=True, gc=False):
    """``[Ra + imm]``; ``base`` is None for a bare literal."""

    base: Name | None
    offset: int
    pos: int
    end: int


class Constant(Struct, frozen=True, gc=False):
    """``c[bank][offset]``."""

    bank: int
    offset: int
    pos: int
    end: int


Operand = Name | Not | Negative | Address | Constant | Int


class Instruction(Struct, frozen=True, gc=False):
    """``@!P0 OPCODE.MODIFIERS operands``; the mnemonic lies at ``name.pos``."""

    guard: tuple[Name, bool] | None
    name: Name
    operands: tuple[Operand, ...]
    pos: int
    end: int

    @property
    def opcode(self) -> str:
        return self.name.text.partition(".")[0]

    @property
    def modifiers(self) -> tuple[str, ...]:
        return tuple(self.name.text.split(".")[1:])


class Directive(Struct, frozen=True, gc=False):
    """``.word arguments``."""

    name: Name
    arguments: tuple[Operand, ...]


class Line(Struct, frozen=True, gc=False):
    """One line: a label, an instruction after it, or a directive."""

    label: Name | None
    statement: Instruction | Directive | None
