"""Operands: from syntax to what they name.

Each operand becomes a *value* and a *kind*.  The kind is a short string that holds everything row matching looks at
(``u32`` for a register, ``[b64]``, ``{f32,int}`` ...), so that instructions of equal kinds are matched once.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ptxemu.check.names import UNKNOWN, Names, VectorName
from ptxemu.ir.ops import Addr, Imm, Reg, SReg, SymRef, Variable
from ptxemu.ir.types import U64
from ptxemu.isa.traits import traits_of
from ptxemu.syntax import ast
from ptxemu.text.errors import Diagnostics
from ptxemu.text.suggestions import closest


class Rejected(Exception):
    """The instruction is wrong and has been reported."""


class TooManyErrors(Exception):
    """The limit of :data:`ptxemu.text.errors.MAX_ERRORS` is reached."""


class Computed(Reg, eq=False, gc=False):
    """A register that only the checker names: a source, not a destination."""


class Both(tuple[Any, Any]):
    """``%p|%q``: two destinations; braces give a plain tuple."""

    __slots__ = ()


class Negated:
    """``!%p`` as a source."""

    __slots__ = ("reg",)

    def __init__(self, reg: Reg) -> None:
        self.reg = reg


class Selected:
    """``r.b0`` or ``-r`` or ``-r.b0``: a register with a selector, negated, or both."""

    __slots__ = ("negative", "reg", "selector")

    def __init__(self, reg: Reg, selector: str, negative: bool) -> None:
        self.reg = reg
        self.selector = selector
        self.negative = negative

    @property
    def kind(self) -> str:
        return f"{'-' if self.negative else ''}{self.reg.type.name}{'.' if self.selector else ''}{self.selector}"


SPACES = frozenset({"global", "shared", "local", "const", "param"})
FindElement = Callable[[ast.Index, Variable], SymRef | Reg]
MakeSum = Callable[[Reg, int], Reg]
COMPUTED = "+"  # in the kind of a register that only the checker names
BLANKS = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)+", re.ASCII | re.DOTALL)
SELECTED = re.compile(r"(.+)\.([bh][0-7]{1,4})")
Value = Any  # Reg | SReg | SymRef | Addr | Negated | Selected | ast.Int | ast.Float | None (``_``) | tuple of values


class Resolver:
    """Resolves operands by the names of one function."""

    def __init__(
        self, names: Names, diagnostics: Diagnostics, roles: dict[Variable, str], element: FindElement, sum: MakeSum
    ) -> None:
        self.names = names
        self.diagnostics = diagnostics
        self.roles = roles  # of parameters: input or output
        self.element = element
        self.sum = sum
        self.instruction: ast.Instruction | None = None  # the one being checked
        self.in_braces = False  # where a name that is not known is reported where it stands

    def resolve(self, operand: ast.Operand) -> tuple[str, Value]:
        """The kind and value of an operand; reports what cannot be resolved and raises Rejected."""
        return METHODS[operand.__class__](self, operand)

    def name(self, name: ast.Name) -> Any:
        """The entity that a name stands for."""
        entity = self.names.lookup(name.text)
        if entity is None:
            self.names.forget(name.text)
            if name.text in self.names.code:
                raise self.error(f"'{name.text}' is a label, which only branches take", name)
            if self.diagnostics.damage.hides(name.text) or self.diagnostics.damage.holds(name.pos):
                raise Rejected
            hint = self.names.range_hint(name.text) or closest(name.text, self.names.visible(), 0.6)
            raise self.error(f"unknown name '{name.text}'{hint}", name)
        if entity is UNKNOWN:
            raise Rejected
        if isinstance(entity, SymRef) and self.names.is_later(name.text, entity, name.pos):
            raise self.error(f"'{name.text}' must be declared before it is used", name)
        return entity

    def error(self, message: str, node: Any) -> Rejected:
        """Report at ``node``, or at its instruction if that starts on an earlier line."""
        pos, end = node.pos, node.end
        notes: tuple[str, ...] = ()
        ins, source = self.instruction, self.diagnostics.source
        if ins is not None and not self.in_braces and "\n" in source.text[ins.opcode_pos : pos]:
            line, column = source.line_column(pos)
            pos, end = self.place(ins)
            if source.line(pos) != line:
                notes = (f"the operand is on line {line}, column {column}",)
        self.diagnostics.error(message, pos, end, notes)
        return Rejected()

    def place(self, ins: ast.Instruction) -> tuple[int, int]:
        """Where to report what is wrong with a whole instruction: its opcode, or what follows that on a later line.

        So does ptxas, which has read one token more when it knows the opcode, unless there is a guard.
        """
        text, name_end = self.diagnostics.source.text, ins.opcode_pos + len(ins.opcode)
        following = BLANKS.match(text, name_end)
        if following is None or "\n" not in following[0] or ins.guard is not None:
            return ins.opcode_pos, ins.opcode_end
        return following.end(), following.end() + 1

    # ------------------------------------------------------------ one method for each kind of node

    def _takes_no_special(self) -> bool:
        return self.instruction is not None and "specials" not in traits_of(self.instruction.opcode)

    def _name(self, operand: ast.Name) -> tuple[str, Value]:
        selected = SELECTED.fullmatch(operand.text) if "." in operand.text else None
        if selected:
            return self.selected(ast.Name(selected[1], operand.pos, operand.end), selected[2], negative=False)
        entity = self.name(operand)
        if isinstance(entity, ast.Int) and operand.text[0] == "%" and self._takes_no_special():
            assert self.instruction is not None
            raise self.error(f"a special register cannot be an operand of '{self.instruction.opcode}'; copy it with mov", operand)
        if isinstance(entity, VectorName):
            parts = [_entity_kind(item) for item in entity.items]
            return "{" + ",".join(parts) + "}", entity.items
        if isinstance(entity, SymRef):
            return self.symbol_kind(entity), entity
        return _entity_kind(entity), entity

    def _int(self, operand: ast.Int) -> tuple[str, Value]:
        return "int", operand

    def _float(self, operand: ast.Float) -> tuple[str, Value]:
        return ("float32" if operand.width == 32 else "float64"), operand

    def _offset(self, operand: ast.Offset) -> tuple[str, Value]:
        entity = self.name(operand.base)
        if isinstance(entity, Reg) and entity.type.kind in "usb" and entity.type.bits in (16, 32, 64):
            return entity.type.name + COMPUTED, self.sum(entity, operand.offset)
        if isinstance(entity, Reg) and entity.type.kind != "pred":
            return entity.type.name + COMPUTED, Computed(entity.name, entity.type)
        if not isinstance(entity, SymRef):
            raise self.error(f"'{operand.base.text}' takes no offset: it is neither a variable nor a register of data", operand)
        if not isinstance(entity.symbol, Variable):
            raise self.error(f"the function '{operand.base.text}' takes no offset", operand)
        return self.symbol_kind(entity), SymRef(entity.symbol, operand.offset)

    def _index(self, operand: ast.Index) -> tuple[str, Value]:
        entity = self.name(operand.base)
        symbol = entity.symbol if isinstance(entity, SymRef) else None
        if not isinstance(symbol, Variable) or not symbol.dims:
            raise self.error(f"'{operand.base.text}' is not an array", operand)
        place = self.element(operand, symbol)
        kind = "b64" + COMPUTED if isinstance(place, Reg) else self.symbol_kind(place)
        if self.instruction is not None and "element" in traits_of(self.instruction.opcode):
            self._same_space(operand, symbol, self.instruction)
            return f"[{kind}]", Addr(place, 0)
        return kind, place

    def _same_space(self, operand: ast.Index, symbol: Variable, ins: ast.Instruction) -> None:
        given = {word.partition("::")[0] for word in ins.modifiers} & SPACES
        if given and symbol.space not in given:
            raise self.error(f"'{operand.base.text}' is in .{symbol.space} space, not .{given.pop()}", operand)

    def _not(self, operand: ast.Not) -> tuple[str, Value]:
        entity = self.name(operand.operand)
        if not isinstance(entity, Reg) or entity.type.kind != "pred":
            raise self.error(f"'!' needs a predicate register, not '{operand.operand.text}'", operand)
        return "!pred", Negated(entity)

    def _neg(self, operand: ast.Neg) -> tuple[str, Value]:
        name = operand.operand
        if not isinstance(name, ast.Name):
            raise self.error("only a register can be negated", operand)
        selected = SELECTED.fullmatch(name.text)
        base = ast.Name(selected[1], name.pos, name.end) if selected else name
        return self.selected(base, selected[2] if selected else "", negative=True)

    def selected(self, base: ast.Name, selector: str, *, negative: bool) -> tuple[str, Value]:
        entity = self.name(base)
        if not isinstance(entity, Reg):
            raise self.error(f"'{base.text}' is not a register: it cannot be {'negated' if negative else 'selected from'}", base)
        value = Selected(entity, selector, negative)
        return value.kind, value

    def _pair(self, operand: ast.Pair) -> tuple[str, Value]:
        first, second = self.resolve(operand.first), self.resolve(operand.second)
        return f"{first[0]}|{second[0]}", Both((first[1], second[1]))

    def _vector(self, operand: ast.Vector) -> tuple[str, Value]:
        self.in_braces = True
        try:
            parts = [self.resolve(item) for item in operand.items]
        finally:
            self.in_braces = False
        return "{" + ",".join([kind for kind, _ in parts]) + "}", tuple([value for _, value in parts])

    def _group(self, operand: ast.Group) -> tuple[str, Value]:
        parts = [self.resolve(item) for item in operand.items]
        return f"({{{','.join([kind for kind, _ in parts])}}})", tuple([value for _, value in parts])

    def _sink(self, operand: ast.Sink) -> tuple[str, Value]:
        return "_", None

    def _address(self, operand: ast.Address) -> tuple[str, Value]:
        kind, address = self._base(operand)
        if not operand.rest:
            return f"[{kind}]", address
        rest = [self.resolve(item) for item in operand.rest]
        return f"[{kind},{','.join([k for k, _ in rest])}]", (address, *(value for _, value in rest))

    def _base(self, operand: ast.Address) -> tuple[str, Addr]:
        base = operand.base
        if isinstance(base, ast.Int):
            return "int", Addr(Imm(base.value & 0xFFFFFFFFFFFFFFFF, U64), operand.offset)
        entity = self.name(base)
        sign = "+" if operand.offset else ""
        if isinstance(entity, SymRef):
            return self.symbol_kind(entity) + sign, Addr(SymRef(entity.symbol, operand.offset), 0)
        if isinstance(entity, Reg):
            return entity.type.name + sign, Addr(entity, operand.offset)
        raise self.error(f"'{base.text}' cannot be an address", base)

    def symbol_kind(self, entity: SymRef) -> str:
        """``&global``, ``&surfref[]``, ``&func``, ``&input`` for parameters that may not be written ..."""
        symbol = entity.symbol
        if not isinstance(symbol, Variable):
            return "&func"
        space = self.roles.get(symbol, symbol.space)
        opaque = f".{symbol.type.name}" if symbol.type.kind == "opaque" else ""
        return f"&{space}{opaque}{'[]' if opaque and symbol.dims else ''}"


METHODS: dict[type, Callable[[Resolver, Any], tuple[str, Value]]] = {
    ast.Name: Resolver._name,
    ast.Int: Resolver._int,
    ast.Float: Resolver._float,
    ast.Offset: Resolver._offset,
    ast.Index: Resolver._index,
    ast.Not: Resolver._not,
    ast.Neg: Resolver._neg,
    ast.Pair: Resolver._pair,
    ast.Vector: Resolver._vector,
    ast.Group: Resolver._group,
    ast.Sink: Resolver._sink,
    ast.Address: Resolver._address,
}


def _entity_kind(entity: Any) -> str:
    if isinstance(entity, Reg):
        return entity.type.name
    if isinstance(entity, SReg):
        return "%" + entity.name
    return "int"
