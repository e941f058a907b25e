"""Reading one op of the IR's text: its registers, operands and types."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from ptxemu.ir.ops import Addr, Call, Function, Imm, Op, Operand, Reg, SReg, Symbol, SymRef, Variable, Vec
from ptxemu.ir.types import PRED, ScalarType
from ptxemu.irtext.cursor import NAME, Cursor, Problem
from ptxemu.irtext.declarations import extent
from ptxemu.irtext.words import INSTRUCTION, constant_of, instruction
from ptxemu.isa.instruction_types import Types, instruction_types
from ptxemu.isa.special import SPECIAL_REGISTERS

NUMBER = re.compile(r"0[fd][0-9a-f]+\([^)]*\)|-?\w+")
DEFINITION = re.compile(r' *([%"]|_(,| =))')


class Literal(Struct):
    """A constant whose type may follow from its place."""

    text: str
    kind: ScalarType | None


Raw = Operand | Literal | tuple["Raw", ...]
"""An operand as it is read, when the types of constants are not known yet."""


class Operations(Struct):
    """Reads the ops of one function. ``untyped`` are registers whose type has not been read."""

    dialect: str
    symbols: Mapping[str, Symbol]
    registers: dict[str, Reg] = {}
    untyped: set[Reg] = set()

    def op(self, cursor: Cursor, pos: int) -> Op:
        guard = self.guard(cursor) if cursor.accept("@") else None
        dsts: tuple[Reg | None, ...] = ()
        if DEFINITION.match(cursor.text, cursor.at):
            dsts = cursor.series(lambda: self.definition(cursor))
            cursor.expect("=")
        row, mods = instruction(self.dialect, cursor.match(INSTRUCTION, "an instruction")[0])
        types = self.types(cursor) if cursor.text.startswith("(", cursor.at) else None
        negs, raw = self.sources(cursor)
        types = types or instruction_types(row, mods, len(dsts), map(len_of, raw))
        if types is None:
            raise Problem(f"'{row.opcode}' needs its types in parentheses")
        src_types, dst_types = types
        sources = tuple(resolved(source, src_types[i] if i < len(src_types) else None) for i, source in enumerate(raw))
        op = Op(row, dict(mods), dsts, sources, dst_types, src_types, pos, pos, negs, guard)
        if cursor.accept("->"):
            op.labels = cursor.series(cursor.name)
        if cursor.keyword("to"):
            op.call = self.call(cursor)
        if cursor.keyword("else"):
            op.old = self.old(cursor, dsts)
        cursor.finish()
        return op

    def guard(self, cursor: Cursor) -> tuple[Reg, bool]:
        negated = cursor.accept("!")
        return self.value(cursor, PRED), negated  # type: ignore[return-value]  # or a constant, if nothing writes it

    def types(self, cursor: Cursor) -> Types:
        sources: list[ScalarType | None] = []
        results: list[ScalarType] = []
        cursor.expect("(")
        while not cursor.accept(")"):
            if cursor.accept("->"):
                results += cursor.series(cursor.type)
            else:
                cursor.accept(",")
                sources.append(None if cursor.keyword("_") else cursor.type())
        return tuple(sources), tuple(results)

    def sources(self, cursor: Cursor) -> tuple[tuple[bool, ...], list[Raw]]:
        """Which sources are negated, nothing if none is, and the sources."""
        negs: list[bool] = []
        found: list[Raw] = []
        while not (cursor.done or cursor.text[cursor.at :].startswith(("-> ", "to ", "else "))):
            if found:
                cursor.expect(",")
            negs.append(cursor.accept("!"))
            found.append(self.operand(cursor))
        return tuple(negs) if any(negs) else (), found

    def old(self, cursor: Cursor, dsts: tuple[Reg | None, ...]) -> tuple[Reg | None, ...]:
        found: list[Reg | Imm | None] = []
        for index, dst in enumerate(dsts):
            if index:
                cursor.expect(",")
            found.append(None if cursor.keyword("_") else self.value(cursor, dst.type if dst else None))
        return tuple(found)  # type: ignore[arg-type]  # constants, if nothing writes the register before

    def definition(self, cursor: Cursor) -> Reg | None:
        return None if cursor.keyword("_") else self.register(cursor)

    def register(self, cursor: Cursor) -> Reg:
        """A register, and its type if that follows."""
        name = cursor.name()
        reg = self.registers.get(name)
        if reg is None:
            reg = self.registers[name] = Reg(name, PRED)
            self.untyped.add(reg)
        if cursor.accept(":"):
            reg.type = cursor.type()
            self.untyped.discard(reg)
        return reg

    def value(self, cursor: Cursor, kind: ScalarType | None) -> Reg | Imm:
        """A register or a constant, of type ``kind`` unless it says another one."""
        found = resolved(self.operand(cursor), kind)
        if not isinstance(found, (Reg, Imm)):
            raise Problem("a register or a constant expected")
        return found

    def operand(self, cursor: Cursor) -> Raw:
        first = cursor.peek()
        if first == "@":
            symbol = find(self.symbols, cursor)
            return SymRef(symbol, cursor.integer() if cursor.accept("+ ") else 0)
        if first == "[":
            return self.address(cursor)
        if cursor.accept("{"):
            return cursor.list(lambda: self.operand(cursor), "}")
        if first in ("%", '"'):
            special = NAME.match(cursor.text, cursor.at)
            if special is not None and special[0][1:] in SPECIAL_REGISTERS:
                return SReg(cursor.name()[1:])
            return self.register(cursor)
        text = cursor.match(NUMBER, "an operand")[0]
        return Literal(text, cursor.type() if cursor.accept(":") else None)

    def address(self, cursor: Cursor) -> Addr:
        cursor.expect("[")
        base = resolved(self.operand(cursor), None)
        if not isinstance(base, (Reg, SymRef, Imm)):
            raise Problem("an address needs a register, a symbol or a constant")
        sign = 1 if cursor.accept("+") else -1 if cursor.accept("-") else 0
        offset = sign * cursor.integer() if sign else 0
        cursor.expect("]")
        return Addr(base, offset)

    # -- calls

    def call(self, cursor: Cursor) -> Call:
        call = Call(self.callee(cursor), (), (), False)
        cursor.expect("(")
        call.args = cursor.list(lambda: self.argument(cursor), ")")
        if cursor.keyword("returns"):
            cursor.expect("(")
            call.returns = cursor.list(lambda: self.returned(cursor), ")")
        call.uniform, call.exits = cursor.keyword("uniform"), cursor.keyword("exits")
        if cursor.keyword("targets"):
            cursor.expect("(")
            call.targets = cursor.list(lambda: self.function(cursor), ")")
        if cursor.keyword("prototype"):
            call.prototype = self.formals(cursor), self.formals(cursor)
        return call

    def callee(self, cursor: Cursor) -> Function | Reg:
        return self.function(cursor) if cursor.peek() == "@" else self.register(cursor)

    def function(self, cursor: Cursor) -> Function:
        symbol = find(self.symbols, cursor)
        if not isinstance(symbol, Function):
            raise Problem(f"'{symbol.name}' is not a function")
        return symbol

    @staticmethod
    def formals(cursor: Cursor) -> tuple[Variable, ...]:
        cursor.expect("(")
        return cursor.list(lambda: extent(cursor, "_", "param", 0), ")")

    def argument(self, cursor: Cursor) -> Variable | Reg | Imm | Vec:
        value = resolved(self.operand(cursor), None)
        if isinstance(value, SymRef) and isinstance(value.symbol, Variable):
            return value.symbol
        if not isinstance(value, (Reg, Imm, Vec)):
            raise Problem("an argument is a register, a constant, a vector or a variable")
        return value

    def returned(self, cursor: Cursor) -> Variable | Reg | Vec:
        value = self.argument(cursor)
        if isinstance(value, Imm):
            raise Problem("a constant is not a result")
        return value


def len_of(operand: Raw) -> int:
    """How many elements an operand has."""
    return len(operand) if isinstance(operand, tuple) else 1


def resolved(operand: Raw, kind: ScalarType | None) -> Operand:
    """An operand whose constants are of type ``kind``, unless they say another one."""
    if isinstance(operand, tuple):
        return Vec(tuple(resolved(item, kind) for item in operand))
    if not isinstance(operand, Literal):
        return operand
    chosen = operand.kind or kind
    if chosen is None:
        raise Problem(f"the constant '{operand.text}' needs a type")
    return constant_of(operand.text, chosen)


def find(symbols: Mapping[str, Symbol], cursor: Cursor) -> Symbol:
    """The symbol whose name comes next."""
    cursor.expect("@")
    name = cursor.name()
    if name not in symbols:
        raise Problem(f"there is no symbol '{name}'")
    return symbols[name]
