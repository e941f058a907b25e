"""Bit counting, searching and fields (PTX ISA 9.7.1)."""

from __future__ import annotations

from ptxemu.ir.ops import Op
from ptxemu.lower.core.emit import Emitter, elementwise
from ptxemu.lower.core.float_bits import constant, low_mask, wide_shift, width


def to_u32(e: Emitter, t: str, x: str) -> str:
    return e.cast("trunc", t, x, "i32")


@elementwise("popc")
def population_count(e: Emitter, op: Op, a: str) -> str:
    t = op.type().llvm
    return to_u32(e, t, e.intrinsic("ctpop", t, a))


@elementwise("clz")
def count_leading_zeros(e: Emitter, op: Op, a: str) -> str:
    t = op.type().llvm
    return to_u32(e, t, e.intrinsic("ctlz", t, a, extra="i1 false"))


@elementwise("brev")
def bit_reverse(e: Emitter, op: Op, a: str) -> str:
    return e.intrinsic("bitreverse", op.type().llvm, a)


@elementwise("bfind")
def find_leading(e: Emitter, op: Op, a: str) -> str:
    """The most significant non-sign bit, -1 if none; ``.shiftamt``: how far it is from the top."""
    kind = op.type()
    t = kind.llvm
    if kind.is_signed:
        a = e.bin("xor", t, a, e.bin("ashr", t, a, constant(e, t, kind.bits - 1)))
    zeros = to_u32(e, t, e.intrinsic("ctlz", t, a, extra="i1 false"))
    if "shiftamt" not in op.mods:
        return e.bin("sub", "i32", e.int(32, kind.bits - 1), zeros)
    none = e.icmp("eq", t, a, constant(e, t, 0))
    return e.select(none, "i32", e.int(32, -1), zeros)


@elementwise("bfe", size=12)
def bit_field_extract(e: Emitter, op: Op, a: str, position: str, length: str) -> str:
    """A field past the top reads the sign (``.s``) or zeros."""
    kind = op.type()
    t = kind.llvm
    position, length = (_place(e, t, x) for x in (position, length))
    if not kind.is_signed:
        return e.bin("and", t, wide_shift(e, "lshr", t, a, position), low_mask(e, t, length))
    field = wide_shift(e, "ashr", t, a, position)
    width = constant(e, t, kind.bits)
    unused = e.bin("sub", t, width, e.intrinsic("umin", t, length, width))
    empty = e.icmp("eq", t, length, constant(e, t, 0))
    safe = e.select(empty, t, constant(e, t, 0), unused)
    extended = e.bin("ashr", t, e.bin("shl", t, field, safe), safe)
    return e.select(empty, t, constant(e, t, 0), extended)


@elementwise("bfi", size=12)
def bit_field_insert(e: Emitter, op: Op, a: str, b: str, position: str, length: str) -> str:
    t = op.type().llvm
    position, length = (_place(e, t, x) for x in (position, length))
    mask = wide_shift(e, "shl", t, low_mask(e, t, length), position)
    field = e.bin("and", t, wide_shift(e, "shl", t, a, position), mask)
    kept = e.bin("and", t, b, e.bin("xor", t, mask, constant(e, t, -1)))
    return e.bin("or", t, kept, field)


def _place(e: Emitter, t: str, x: str) -> str:
    """A position or a length: the low 8 bits, as the manual says.

    In 64 bits, hardware takes all 32: what ptxas makes of these instructions shifts by the whole operand.
    """
    if width(t) == 64:
        return e.cast("zext", "i32", x, t)
    return e.bin("and", "i32", x, e.int(32, 255))


def _amount(e: Emitter, op: Op, x: str) -> str:
    """A bit count: at most 32 (``clamp``) or modulo 32 (``wrap``)."""
    if op.mods["mode"] == "clamp":
        return e.intrinsic("umin", "i32", x, e.int(32, 32))
    return e.bin("and", "i32", x, e.int(32, 31))


@elementwise("szext")
def sign_or_zero_extend(e: Emitter, op: Op, a: str, b: str) -> str:
    """The low ``b`` bits of ``a``, extended; 0 for no bits."""
    count = _amount(e, op, b)
    if not op.type().is_signed:
        return e.bin("and", "i32", a, low_mask(e, "i32", count))
    unused = e.bin("sub", "i32", e.int(32, 32), count)
    return wide_shift(e, "ashr", "i32", wide_shift(e, "shl", "i32", a, unused), unused)


@elementwise("bmsk")
def bit_mask(e: Emitter, op: Op, a: str, b: str) -> str:
    """``b`` ones from bit ``a`` on."""
    start, count = _amount(e, op, a), _amount(e, op, b)
    return wide_shift(e, "shl", "i32", low_mask(e, "i32", count), start)


@elementwise("fns", size=60)
def find_nth_set(e: Emitter, op: Op, mask: str, base: str, offset: str) -> str:
    """The |offset|-th set bit from ``base`` on, upwards or (offset < 0) downwards; for 0 bit ``base`` itself; -1 if none.

    Downwards is upwards in the reversed word.  A base above 31, which the manual leaves undefined, finds nothing.  The least
    offset, whose magnitude is negative again, gives 0, as in the sequence that NVIDIA's assembler makes.
    """
    down = e.icmp("slt", "i32", offset, e.int(32, 0))
    word = e.select(down, "i32", e.intrinsic("bitreverse", "i32", mask), mask)
    start = e.select(down, "i32", e.bin("sub", "i32", e.int(32, 31), base), base)
    word = e.bin("and", "i32", word, wide_shift(e, "shl", "i32", e.int(32, -1), start))
    at_base = e.bin("and", "i32", word, wide_shift(e, "shl", "i32", e.int(32, 1), start))
    here = e.icmp("eq", "i32", offset, e.int(32, 0))
    word = e.select(here, "i32", at_base, word)
    rank = e.intrinsic("abs", "i32", offset, extra="i1 false")
    rank = e.intrinsic("umax", "i32", rank, e.int(32, 1))
    missing = e.icmp("sgt", "i32", rank, e.intrinsic("ctpop", "i32", word))
    position = _select_bit(e, word, rank)
    position = e.select(down, "i32", e.bin("sub", "i32", e.int(32, 31), position), position)
    return e.select(missing, "i32", e.int(32, -1), position)


def _select_bit(e: Emitter, word: str, rank: str) -> str:
    """The position of the ``rank``-th set bit (from 1) by bisection."""
    position = e.int(32, 0)
    for half in (16, 8, 4, 2, 1):
        low = e.bin("and", "i32", word, e.int(32, (1 << half) - 1))
        count = e.intrinsic("ctpop", "i32", low)
        above = e.icmp("ugt", "i32", rank, count)
        skipped = e.select(above, "i32", e.int(32, half), e.int(32, 0))
        rank = e.bin("sub", "i32", rank, e.select(above, "i32", count, e.int(32, 0)))
        word = e.bin("lshr", "i32", word, skipped)
        position = e.bin("add", "i32", position, skipped)
    return position
