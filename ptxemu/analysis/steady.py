"""Values that go on by the same distance in each trip of a loop: what they are made of, down to what the loop begins with.

Such is the index of a loop and what is computed from it by additions, products with what stays, and conversions to more bits.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from ptxemu.analysis.registering import registering
from ptxemu.analysis.shape import Shape
from ptxemu.analysis.trips import Makers, makers
from ptxemu.ir.dominators import Loop
from ptxemu.ir.graph import Phi
from ptxemu.ir.ops import Imm, Op, Operand, Reg
from ptxemu.ir.types import ScalarType

WIDTHS = (32, 64)
ShapeOf = Callable[[Operand], Shape | None]


class Value(Struct, eq=False):
    """An integer of so many bits, of each lane, whose shape is a pattern. Compared by identity."""

    bits: int


class Kept(Value):
    """The same in all trips: a register from outside, or a number."""

    operand: Reg | Imm


class Moved(Value):
    """A phi of the header, which the end of each trip adds some values to, or subtracts those that are marked: these are kept."""

    phi: Phi
    steps: list[tuple[Value, bool]]


class Sum(Value):
    """Of two values, or their difference."""

    a: Value
    b: Value
    minus: bool


class Product(Value):
    """With a value that is kept."""

    a: Value
    factor: Value


class Widened(Value):
    """A value of 32 bits as one of 64, by an op: exact if no lane wraps, which are as far from the base as ``spread`` says."""

    a: Value
    signed: bool
    op: Op
    spread: tuple[int, int]


class Steady:
    """The values of a loop of one header and one latch that go on by the same distance."""

    def __init__(self, loop: Loop, shape: ShapeOf) -> None:
        (self._latch,) = loop.latches
        self._shape = shape
        self._made: Makers = makers(loop.blocks)
        self._known: dict[Reg, Value | None] = {}

    def value(self, operand: Operand, bits: int) -> Value | None:
        """An operand of an op of so many bits; None if it is not of that width, no pattern, or not known to be steady."""
        if isinstance(operand, Imm):
            return Kept(bits, operand)
        if not isinstance(operand, Reg) or operand.type.bits != bits or bits not in WIDTHS or self._shape(operand) is None:
            return None
        if operand not in self._known:
            self._known[operand] = None  # what comes round to itself, but through a phi
            self._known[operand] = self._found(operand)
        return self._known[operand]

    def _found(self, reg: Reg) -> Value | None:
        maker = self._made.get(reg)
        if maker is None:
            return Kept(reg.type.bits, reg)
        if isinstance(maker, Phi):
            return self._moved(maker)
        rule = self._rule(maker, reg.type.bits)
        return None if rule is None else rule(self, maker, reg.type.bits)

    def _rule(self, op: Op, bits: int) -> Rule | None:
        """How an op makes an integer of so many bits in all lanes; None: it may do so otherwise."""
        plain = op.guard is None and not any(op.negs) and len(op.dsts) == 1 and "sat" not in op.mods
        kind = op.dst_types[0] if plain else None
        return RULES.get(op.opcode) if kind is not None and kind.kind in "usb" and kind.bits == bits else None

    def _moved(self, phi: Phi) -> Value | None:
        steps = self._steps(phi.args.get(self._latch), phi, phi.dst.type.bits)
        return None if steps is None else Moved(phi.dst.type.bits, phi, steps)

    def _steps(self, operand: Operand | None, phi: Phi, bits: int) -> list[tuple[Value, bool]] | None:
        """What makes a value of that of a phi, one after the other; None: it is not made by adding what is kept."""
        found: list[tuple[Value, bool]] = []
        while operand is not phi.dst:
            maker = self._made.get(operand) if isinstance(operand, Reg) else None
            if not isinstance(maker, Op) or len(maker.srcs) != 2 or (rule := self._rule(maker, bits)) not in (_add, _sub):
                return None
            minus, a, b = rule is _sub, maker["a"], maker["b"]
            kept, operand = self.kept(b, bits), a
            if kept is None and not minus:
                kept, operand = self.kept(a, bits), b
            if kept is None:
                return None
            found.append((kept, minus))
        return found

    def kept(self, operand: Operand, bits: int) -> Value | None:
        """The same of one that all lanes share and no op of the loop makes."""
        inside = isinstance(operand, Reg) and operand in self._made
        found = None if inside else self.value(operand, bits)
        return found if found is not None and self._is_uniform(operand) else None

    def _is_uniform(self, operand: Operand) -> bool:
        shape = self._shape(operand)
        return shape is not None and shape.uniform

    def widened(self, op: Op, operand: Operand, kind: ScalarType) -> Value | None:
        """An operand of 32 bits as 64, as an op extends it."""
        value, shape = self.value(operand, WIDTHS[0]), self._shape(operand)
        return None if value is None or shape is None else Widened(WIDTHS[1], value, kind.is_signed, op, shape.spread)


# ---------------------------------------------------------------- what ops make

Rule = Callable[[Steady, Op, int], Value | None]
RULES: dict[str, Rule] = {}


linear = registering(RULES)
"""Register how steady values go through an instruction that makes one of so many bits."""


@linear("mov")
def _move(steady: Steady, op: Op, bits: int) -> Value | None:
    return steady.value(op["a"], bits) if len(op.srcs) == 1 else None


@linear("add")
def _add(steady: Steady, op: Op, bits: int) -> Value | None:
    return _sum(steady, op, bits, minus=False)


@linear("sub")
def _sub(steady: Steady, op: Op, bits: int) -> Value | None:
    return _sum(steady, op, bits, minus=True)


def _sum(steady: Steady, op: Op, bits: int, minus: bool) -> Value | None:
    a, b = steady.value(op["a"], bits), steady.value(op["b"], bits)
    return None if a is None or b is None or len(op.srcs) > 2 else Sum(bits, a, b, minus)


@linear("mul")
def _product(steady: Steady, op: Op, bits: int) -> Value | None:
    modes, kind = op.mods.values(), op.type_of("a")
    wide = "wide" in modes and bits == WIDTHS[1]
    if kind is None or not (wide or "lo" in modes):
        return None
    for operand, factor in ((op["a"], op["b"]), (op["b"], op["a"])):
        times = steady.kept(factor, kind.bits)
        value = None if times is None else steady.widened(op, operand, kind) if wide else steady.value(operand, bits)
        if times is not None and value is not None:
            return Product(bits, value, Widened(bits, times, kind.is_signed, op, (0, 0)) if wide else times)
    return None


@linear("mad")
def _product_sum(steady: Steady, op: Op, bits: int) -> Value | None:
    product, added = _product(steady, op, bits), steady.value(op["c"], bits)
    return None if product is None or added is None else Sum(bits, product, added, False)


@linear("shl")
def _shift(steady: Steady, op: Op, bits: int) -> Value | None:
    value, amount = steady.value(op["a"], bits), op["b"]
    if value is None or not isinstance(amount, Imm) or amount.bits >= bits:
        return None
    return Product(bits, value, Kept(bits, Imm(1 << amount.bits, op.dst_types[0])))


@linear("cvt")
def _convert(steady: Steady, op: Op, bits: int) -> Value | None:
    kind = op.type_of("a")
    if kind is None or kind.kind not in "us" or kind.bits > bits:
        return None
    return steady.value(op["a"], bits) if kind.bits == bits else steady.widened(op, op["a"], kind)
