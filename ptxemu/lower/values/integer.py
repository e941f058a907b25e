"""Integer arithmetic (PTX ISA 9.7.1) and extended precision (9.7.2)."""

from __future__ import annotations

from ptxemu.ir.ops import Op
from ptxemu.ir.types import ScalarType
from ptxemu.lower.core.emit import Emitter, elementwise
from ptxemu.lower.core.float_bits import constant, packed
from ptxemu.lower.core.products import byte_products, fields, high_products, sum_of_products
from ptxemu.lower.values.division import quotient, remainder


def extend(e: Emitter, kind: ScalarType, x: str, target: str) -> str:
    """Widen an integer of PTX type ``kind`` to LLVM type ``target`` by its own signedness."""
    return e.cast("sext" if kind.is_signed else "zext", kind.llvm, x, target)


# ---------------------------------------------------------------- sums and products


@elementwise("add.int", "sub.int")
def add(e: Emitter, op: Op, a: str, b: str) -> str:
    t = op.type().llvm
    return _sum(e, op, t, op.type().is_signed, a, b)


def _sum(e: Emitter, op: Op, t: str, signed: bool, a: str, b: str) -> str:
    if "sat" in op.mods:
        return e.intrinsic(f"{'s' if signed else 'u'}{op.opcode}.sat", t, a, b)
    return e.bin(op.opcode, t, a, b)


def _element(op: Op) -> tuple[str, bool]:
    """Of a packed type: the LLVM type of one element, and whether it is signed."""
    name = op.mods["type"]
    return "i" + name[1:].partition("x")[0], name[0] == "s"


@elementwise("add.packed", "sub.packed")
def add_packed(e: Emitter, op: Op, a: str, b: str) -> str:
    t, signed = _element(op)
    return packed(e, "i32", t, lambda x, y: _sum(e, op, t, signed, x, y), a, b)


def _cross_products(e: Emitter, a: str, b: str) -> str:
    """The upper half of the unsigned 128-bit product from four 32-bit ones: vectors of i128 would become scalar code."""
    mask, shift = e.int(64, 0xFFFFFFFF), e.int(64, 32)
    a0, b0 = e.bin("and", "i64", a, mask), e.bin("and", "i64", b, mask)
    a1, b1 = e.bin("lshr", "i64", a, shift), e.bin("lshr", "i64", b, shift)
    middle = e.bin("add", "i64", e.bin("mul", "i64", a1, b0), e.bin("lshr", "i64", e.bin("mul", "i64", a0, b0), shift))
    other = e.bin("add", "i64", e.bin("mul", "i64", a0, b1), e.bin("and", "i64", middle, mask))
    high = e.bin("add", "i64", e.bin("mul", "i64", a1, b1), e.bin("lshr", "i64", middle, shift))
    return e.bin("add", "i64", high, e.bin("lshr", "i64", other, shift))


def high_product(e: Emitter, kind: ScalarType, a: str, b: str) -> str:
    """The upper half of the double-width product."""
    if kind.bits == 64 and e.lanes:
        high = _cross_products(e, a, b)
        if not kind.is_signed:
            return high
        for x, y in ((a, b), (b, a)):
            correction = e.bin("and", "i64", e.bin("ashr", "i64", x, e.int(64, 63)), y)
            high = e.bin("sub", "i64", high, correction)
        return high
    if kind.bits == 32 and e.lanes and e.target.avx2:
        return high_products(e, a, b, kind.is_signed)
    wide = f"i{2 * kind.bits}"
    product = e.bin("mul", wide, extend(e, kind, a, wide), extend(e, kind, b, wide))
    return e.cast("trunc", wide, e.bin("lshr", wide, product, e.splat(wide, str(kind.bits))), kind.llvm)


def product(e: Emitter, kind: ScalarType, mode: str, a: str, b: str) -> str:
    if mode == "lo":
        return e.bin("mul", kind.llvm, a, b)
    if mode == "hi":
        return high_product(e, kind, a, b)
    wide = f"i{2 * kind.bits}"
    return e.bin("mul", wide, extend(e, kind, a, wide), extend(e, kind, b, wide))


@elementwise("mul.int")
def mul(e: Emitter, op: Op, a: str, b: str) -> str:
    return product(e, op.type(), op.mods["mode"], a, b)


@elementwise("mad.int")
def mad(e: Emitter, op: Op, a: str, b: str, c: str) -> str:
    t = op.dst_types[0].llvm
    p = product(e, op.type(), op.mods["mode"], a, b)
    return e.intrinsic("sadd.sat", t, p, c) if "sat" in op.mods else e.bin("add", t, p, c)


def product24(e: Emitter, op: Op, a: str, b: str) -> str:
    """Bits 0 to 31 (``lo``) or 16 to 47 (``hi``) of the product of the low 24 bits."""
    signed = op.type().is_signed
    eight = e.int(32, 8)
    a, b = (e.bin("ashr" if signed else "lshr", "i32", e.bin("shl", "i32", x, eight), eight) for x in (a, b))
    if op.mods["mode"] == "lo":
        return e.bin("mul", "i32", a, b)
    wide = e.bin("mul", "i64", extend(e, op.type(), a, "i64"), extend(e, op.type(), b, "i64"))
    return e.cast("trunc", "i64", e.bin("lshr", "i64", wide, e.int(64, 16)), "i32")


@elementwise("mul24")
def mul24(e: Emitter, op: Op, a: str, b: str) -> str:
    return product24(e, op, a, b)


@elementwise("mad24")
def mad24(e: Emitter, op: Op, a: str, b: str, c: str) -> str:
    p = product24(e, op, a, b)
    return e.intrinsic("sadd.sat", "i32", p, c) if "sat" in op.mods else e.bin("add", "i32", p, c)


@elementwise("sad")
def sum_of_absolute_difference(e: Emitter, op: Op, a: str, b: str, c: str) -> str:
    t, s = op.type().llvm, "s" if op.type().is_signed else "u"
    difference = e.bin("sub", t, e.intrinsic(s + "max", t, a, b), e.intrinsic(s + "min", t, a, b))
    return e.bin("add", t, c, difference)


@elementwise("div.int", size=160)
def div(e: Emitter, op: Op, a: str, b: str) -> str:
    return quotient(e, op.type(), a, b)


@elementwise("rem", size=160)
def rem(e: Emitter, op: Op, a: str, b: str) -> str:
    return remainder(e, op.type(), a, b)


@elementwise("abs.int")
def absolute(e: Emitter, op: Op, a: str) -> str:
    return e.intrinsic("abs", op.type().llvm, a, extra="i1 false")


@elementwise("neg.int")
def negate(e: Emitter, op: Op, a: str) -> str:
    t = op.type().llvm
    return e.bin("sub", t, constant(e, t, 0), a)


@elementwise("neg.packed")
def negate_packed(e: Emitter, op: Op, a: str) -> str:
    t, _ = _element(op)
    return packed(e, "i32", t, lambda x: e.bin("sub", t, constant(e, t, 0), x), a)


def _extreme(e: Emitter, op: Op, t: str, signed: bool, a: str, b: str) -> str:
    result = e.intrinsic(("s" if signed else "u") + op.opcode, t, a, b)
    return e.intrinsic("smax", t, result, constant(e, t, 0)) if "relu" in op.mods else result


@elementwise("min.int", "max.int")
def extreme(e: Emitter, op: Op, a: str, b: str) -> str:
    return _extreme(e, op, op.type().llvm, op.type().is_signed, a, b)


@elementwise("min.packed", "max.packed")
def extreme_packed(e: Emitter, op: Op, a: str, b: str) -> str:
    t, signed = _element(op)
    return packed(e, "i32", t, lambda x, y: _extreme(e, op, t, signed, x, y), a, b)


# ---------------------------------------------------------------- products without carries

EVERY_FOURTH = 0x1111111111111111


def _carryless(e: Emitter, a: str, b: str) -> str:
    """The lower 64 bits of the product of two polynomials over GF(2).

    Of operands that have only every fourth bit, a plain product adds up at most 15 ones in each place but the last, whose
    carry is lost: the others stay in the three bits between.
    """
    masks = [e.int(64, EVERY_FOURTH << i) for i in range(4)]
    xs, ys = ([e.bin("and", "i64", value, mask) for mask in masks] for value in (a, b))
    total = e.int(64, 0)
    for i, mask in enumerate(masks):
        column = e.int(64, 0)
        for j in range(4):
            column = e.bin("xor", "i64", column, e.bin("mul", "i64", xs[j], ys[(i - j) % 4]))
        total = e.bin("or", "i64", total, e.bin("and", "i64", column, mask))
    return total


@elementwise("clmad", size=200)
def carryless_product(e: Emitter, op: Op, a: str, b: str, c: str) -> str:
    """The upper half is the lower one of the operands in reverse, but for a bit."""
    high = op.mods["mode"] == "hi"
    if high:
        a, b = (e.intrinsic("bitreverse", "i64", x) for x in (a, b))
    half = e.outlined("carryless", _carryless, "i64", "i64", a, b)
    if high:
        half = e.bin("lshr", "i64", e.intrinsic("bitreverse", "i64", half), e.int(64, 1))
    return e.bin("xor", "i64", half, c)


# ---------------------------------------------------------------- dot products


@elementwise("dp4a", size=20)
def dot4(e: Emitter, op: Op, a: str, b: str, c: str) -> str:
    return byte_products(e, a, b, (op.type("atype").is_signed, op.type("btype").is_signed), c)


@elementwise("dp2a", size=20)
def dot2(e: Emitter, op: Op, a: str, b: str, c: str) -> str:
    """Products of the halves of ``a`` and two bytes of ``b``."""
    halves = fields(e, a, op.type("atype").is_signed, 16, range(2))
    bytes = fields(e, b, op.type("btype").is_signed, 8, range(2) if op.mods["mode"] == "lo" else range(2, 4))
    return sum_of_products(e, halves, bytes, c)


# ---------------------------------------------------------------- extended precision


def _carry_result(op: Op, value: str, flag: str) -> str | tuple[str, str]:
    return (value, flag) if op.row.implicit.writes else value


def _add_carry(e: Emitter, op: Op, a: str, b: str, carry: str) -> str | tuple[str, str]:
    t = op.type().llvm
    total = e.bin("add", t, a, b)
    flag = e.icmp("ult", t, total, a)
    if carry:
        base, total = total, e.bin("add", t, total, e.cast("zext", "i1", carry, t))
        flag = e.bin("or", "i1", flag, e.icmp("ult", t, total, base))
    return _carry_result(op, total, flag)


@elementwise("add.carry")
def add_carry(e: Emitter, op: Op, a: str, b: str, carry: str = "") -> str | tuple[str, str]:
    """``add.cc``, ``addc``, ``addc.cc``: the carry comes in as the last source and leaves as the last result."""
    return _add_carry(e, op, a, b, carry)


@elementwise("sub.carry")
def sub_carry(e: Emitter, op: Op, a: str, b: str, carry: str = "") -> str | tuple[str, str]:
    """``sub.cc``, ``subc``, ``subc.cc``: d = a + ~b + CC.CF (1 without a carry-in); a borrow leaves CC.CF clear.

    The manual calls CC.CF a borrow here, but ptxas makes it the adder's carry, and nvcc's 128-bit division needs that: it
    reads the outcome of a ``subc.cc`` with ``addc``.
    """
    t = op.type().llvm
    difference = e.bin("sub", t, a, b)
    flag = e.icmp("uge", t, a, b)
    if carry:
        borrow = e.cast("zext", "i1", e.bin("xor", "i1", carry, e.int(1, 1)), t)
        base, difference = difference, e.bin("sub", t, difference, borrow)
        flag = e.bin("and", "i1", flag, e.icmp("ule", t, difference, base))
    return _carry_result(op, difference, flag)


@elementwise("mad.carry")
def mad_carry(e: Emitter, op: Op, a: str, b: str, c: str, carry: str = "") -> str | tuple[str, str]:
    """``mad.cc``, ``madc``, ``madc.cc``: the carry-out is that of the addition."""
    return _add_carry(e, op, product(e, op.type(), op.mods["mode"], a, b), c, carry)
