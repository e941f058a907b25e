"""Between which numbers the values of integer registers lie: those of bytes, of what is computed from them, and of what masks and
bounds leave.

A range holds numbers, not bits: a register of n bits has them modulo 2**n.  They are known as numbers of one kind, signed or
unsigned; where neither holds them all, as after a wrap, nothing is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from ptxemu.analysis.linear import Structure
from ptxemu.analysis.registering import registering
from ptxemu.ir.graph import Block
from ptxemu.ir.ops import Imm, Op, Operand, Reg
from ptxemu.ir.types import ScalarType

WIDEST = 32  # bits of registers that are looked at


class Range(Struct, frozen=True):
    """The least and the greatest number."""

    low: int
    high: int

    def within(self, other: Range) -> bool:
        return other.low <= self.low and self.high <= other.high


def of_kind(signed: bool, bits: int) -> Range:
    """All numbers of a type."""
    return Range(-(1 << bits - 1), (1 << bits - 1) - 1) if signed else Range(0, (1 << bits) - 1)


def ranges(structure: Structure) -> Ranges:
    """Those of registers of which something is known, from one look at each op in linear order: nothing of what comes round a
    loop."""
    known = Ranges()
    for block in structure.order:
        known.look_at(block)
    return known


class Ranges:
    """``found``: those of registers."""

    def __init__(self) -> None:
        self.found: dict[Reg, Range] = {}

    def look_at(self, block: Block) -> None:
        for dst, args in block.phis.rows():
            if dst.type.bits <= WIDEST:
                self._note(dst, _union(map(self.of, args)))
        for op in block.ops:
            rule = RULES.get(op.row.lower) if op.guard is None and not any(op.negs) else None
            if rule is not None:
                for reg, kind in zip(op.dsts, op.dst_types):
                    if reg is not None and kind.kind in "usb" and kind.bits <= reg.type.bits <= WIDEST:
                        self._note(reg, _written(rule(self, op), kind))

    def _note(self, reg: Reg, found: Range | None) -> None:
        if found is not None and any(found.within(of_kind(signed, reg.type.bits)) for signed in (False, True)):
            self.found[reg] = found

    def of(self, operand: Operand) -> Range | None:
        """That of an operand, a number being the one of the smaller size."""
        if isinstance(operand, Imm):
            bits, number = operand.type.bits, operand.bits
            return Range(*[number - (1 << bits) if number >> (bits - 1) else number] * 2)
        return self.found.get(operand) if isinstance(operand, Reg) else None

    def read(self, op: Op, name: str) -> Range:
        """That of an operand as the type of the instruction reads it: all numbers of that type where nothing else is known."""
        operand, kind = op[name], op.type_of(name)
        assert kind is not None
        every = of_kind(kind.is_signed, kind.bits)
        found = self.of(operand)
        if isinstance(operand, Imm) and found is not None and not kind.is_signed:
            return Range(operand.bits, operand.bits)
        return found if found is not None and found.within(every) else every

    def exact(self, op: Op, name: str) -> Range | None:
        """That of an operand whose bits are all read, for instructions that make the same of signed and of unsigned numbers."""
        operand, kind = op[name], op.type_of(name)
        whole = not isinstance(operand, Reg) or (kind is not None and operand.type.bits == kind.bits)
        return self.of(operand) if whole else None


def _written(found: Range | None, kind: ScalarType) -> Range | None:
    """What a register has of a result that an instruction writes as some type: it extends what is smaller."""
    every = of_kind(kind.is_signed, kind.bits)
    if kind.bits < WIDEST and (found is None or not found.within(every)):
        return every
    return found


def _union(found: Iterable[Range | None]) -> Range | None:
    known: list[Range] = []
    for one in found:
        if one is None:
            return None
        known.append(one)
    return Range(min(one.low for one in known), max(one.high for one in known)) if known else None


def _corners(a: Range | None, b: Range | None, of: Callable[[int, int], int]) -> Range | None:
    """Of what grows or falls with each operand."""
    if a is None or b is None:
        return None
    numbers = [of(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    return Range(min(numbers), max(numbers))


# ---------------------------------------------------------------- what ops make

Rule = Callable[[Ranges, Op], Range | None]
RULES: dict[str, Rule] = {}


ranged = registering(RULES)
"""Register the range of an instruction's results, by its lowering; that of the type they are written as holds in any case."""


@ranged("ld")
def _ld(known: Ranges, op: Op) -> Range | None:
    return None


@ranged("mov")
def _mov(known: Ranges, op: Op) -> Range | None:
    return known.exact(op, "a")


@ranged("cvt.int")
def _cvt(known: Ranges, op: Op) -> Range | None:
    kind = op.type_of("a")
    return known.read(op, "a") if kind is not None and kind.bits <= WIDEST else None


@ranged("add.int")
def _add(known: Ranges, op: Op) -> Range | None:
    return _corners(known.exact(op, "a"), known.exact(op, "b"), int.__add__) if "sat" not in op.mods else None


@ranged("sub.int")
def _sub(known: Ranges, op: Op) -> Range | None:
    return _corners(known.exact(op, "a"), known.exact(op, "b"), int.__sub__) if "sat" not in op.mods else None


@ranged("mul.int")
def _mul(known: Ranges, op: Op) -> Range | None:
    modes = op.mods.values()
    if "wide" in modes:
        return _corners(known.read(op, "a"), known.read(op, "b"), int.__mul__)
    return _corners(known.exact(op, "a"), known.exact(op, "b"), int.__mul__) if "lo" in modes else None


@ranged("mad.int")
def _mad(known: Ranges, op: Op) -> Range | None:
    return _corners(_mul(known, op), known.exact(op, "c"), int.__add__) if "sat" not in op.mods else None


@ranged("neg.int")
def _neg(known: Ranges, op: Op) -> Range | None:
    a = known.exact(op, "a")
    return None if a is None else Range(-a.high, -a.low)


@ranged("abs.int")
def _abs(known: Ranges, op: Op) -> Range | None:
    """The least number stays as it is."""
    a = known.read(op, "a")
    return None if a.low == of_kind(True, op.type().bits).low else Range(max(0, a.low, -a.high), max(a.high, -a.low))


@ranged("min.int")
def _min(known: Ranges, op: Op) -> Range | None:
    return _bounded(known, op, min)


@ranged("max.int")
def _max(known: Ranges, op: Op) -> Range | None:
    return _bounded(known, op, max)


def _bounded(known: Ranges, op: Op, of: Callable[[int, int], int]) -> Range | None:
    a, b = known.read(op, "a"), known.read(op, "b")
    return None if "relu" in op.mods else Range(of(a.low, b.low), of(a.high, b.high))


@ranged("shl")
def _shl(known: Ranges, op: Op) -> Range | None:
    a, amount = known.exact(op, "a"), op["b"]
    small = isinstance(amount, Imm) and amount.bits < WIDEST
    return _corners(a, Range(amount.bits, amount.bits), int.__lshift__) if small else None


@ranged("shr")
def _shr(known: Ranges, op: Op) -> Range | None:
    kind, amount = op.type_of("a"), op["b"]
    small = kind is not None and kind.bits <= WIDEST and isinstance(amount, Imm) and amount.bits < kind.bits
    return _corners(known.read(op, "a"), Range(amount.bits, amount.bits), int.__rshift__) if small else None


@ranged("and")
def _and(known: Ranges, op: Op) -> Range | None:
    """No more than the lesser of the numbers that are not negative."""
    highs = [found.high for name in "ab" if (found := known.exact(op, name)) is not None and found.low >= 0]
    return Range(0, min(highs)) if highs else None


@ranged("or", "xor")
def _or(known: Ranges, op: Op) -> Range | None:
    """No more bits than the longer of two numbers that are not negative."""
    a, b = known.exact(op, "a"), known.exact(op, "b")
    if a is None or b is None or min(a.low, b.low) < 0:
        return None
    return Range(0, (1 << max(a.high, b.high).bit_length()) - 1)


@ranged("selp")
def _selp(known: Ranges, op: Op) -> Range | None:
    return _union((known.exact(op, "a"), known.exact(op, "b")))
