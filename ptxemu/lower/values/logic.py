"""Logic, shift and byte permutation (PTX ISA 9.7.8, and ``prmt`` of 9.7.9)."""

from __future__ import annotations

from ptxemu.ir.ops import Imm, Op
from ptxemu.lower.core.emit import Emitter, elementwise
from ptxemu.lower.core.float_bits import constant, wide_shift


@elementwise("and", "or", "xor")
def bitwise(e: Emitter, op: Op, a: str, b: str) -> str:
    return e.bin(op.opcode, op.type().llvm, a, b)


@elementwise("not")
def complement(e: Emitter, op: Op, a: str) -> str:
    t = op.type().llvm
    return e.bin("xor", t, a, constant(e, t, -1))


@elementwise("cnot")
def c_not(e: Emitter, op: Op, a: str) -> str:
    t = op.type().llvm
    return e.cast("zext", "i1", e.icmp("eq", t, a, constant(e, t, 0)), t)


@elementwise("shl", "shr")
def shift(e: Emitter, op: Op, a: str, amount: str) -> str:
    """Amounts of the width or more shift everything out: 0, or the sign for ``shr.s``."""
    kind = op.type()
    t = kind.llvm
    if kind.bits == 16:  # the amount is 32 bits wide: clamp it before it is cut
        amount = e.cast("trunc", "i32", e.intrinsic("umin", "i32", amount, e.int(32, 16)), "i16")
    elif kind.bits == 64:
        amount = e.cast("zext", "i32", amount, "i64")
    name = "shl" if op.opcode == "shl" else "ashr" if kind.is_signed else "lshr"
    return wide_shift(e, name, t, a, amount)


@elementwise("shf")
def funnel_shift(e: Emitter, op: Op, a: str, b: str, c: str) -> str:
    """The 64-bit value b:a shifted; ``l`` gives its upper half, ``r`` the lower.  ``clamp``: by 32 at most."""
    left = op.mods["dir"] == "l"
    shifted = e.intrinsic("fshl" if left else "fshr", "i32", b, a, c)
    if op.mods["mode"] == "wrap":
        return shifted
    beyond = e.icmp("ugt", "i32", c, e.int(32, 31))
    return e.select(beyond, "i32", a if left else b, shifted)


def truth_table(e: Emitter, inputs: tuple[str, ...], table: int) -> str:
    """The function of ``inputs`` (the last one is the lowest index bit) with the given table, as and/xor.

    f = f(v=0) ^ (v & (f(v=0) ^ f(v=1))), one variable after the other, with constants folded on the way.
    """
    size = 1 << len(inputs)
    full = (1 << size) - 1
    if table in (0, full):
        return e.int(32, -1 if table else 0)
    variable, rest = inputs[0], inputs[1:]
    low, high = table & ((1 << size // 2) - 1), table >> size // 2
    base, change = low, low ^ high
    whole = (1 << size // 2) - 1
    if change == 0:
        return truth_table(e, rest, base)
    term = variable if change == whole else e.bin("and", "i32", variable, truth_table(e, rest, change))
    return term if base == 0 else e.bin("xor", "i32", truth_table(e, rest, base), term)


@elementwise("lop3")
def lop3(e: Emitter, op: Op, a: str, b: str, c: str, _lut: str, q: str = "") -> str | tuple[str, str]:
    """A bit of the result is bit 4a + 2b + c of the table; with a Boolean op also p = (d != 0) op q."""
    lut = op["immLut"]
    assert isinstance(lut, Imm)
    d = truth_table(e, (a, b, c), lut.bits & 0xFF)
    if not q:
        return d
    return d, e.bin(op.mods["bool"], "i1", e.icmp("ne", "i32", d, e.int(32, 0)), q)


def permuted_byte(e: Emitter, mode: str, k: str, i: int) -> str:
    """The byte of b:a that goes to result byte ``i`` in a special mode; ``k``: the two low bits of the selector."""
    position = e.int(32, i)
    if mode == "f4e":
        return e.bin("add", "i32", k, position)
    if mode == "b4e":
        return e.bin("and", "i32", e.bin("sub", "i32", k, position), e.int(32, 7))
    if mode == "rc8":
        return k
    if mode == "rc16":
        half = e.bin("and", "i32", e.bin("shl", "i32", k, e.int(32, 1)), e.int(32, 2))
        return e.bin("or", "i32", half, e.int(32, i & 1))
    return e.intrinsic("umax" if mode == "ecl" else "umin", "i32", k, position)


@elementwise("prmt", size=20)
def permute(e: Emitter, op: Op, a: str, b: str, c: str) -> str:
    """Each result byte is a byte of b:a, or its sign bit eight times where bit 3 of the selector nibble is set."""
    mode = op.mods.get("mode")
    low, high = e.cast("zext", "i32", a, "i64"), e.cast("zext", "i32", b, "i64")
    pool = e.bin("or", "i64", low, e.bin("shl", "i64", high, e.int(64, 32)))
    k = e.bin("and", "i32", c, e.int(32, 3))
    result = e.int(32, 0)
    for i in range(4):
        selector = permuted_byte(e, mode, k, i) if mode else e.bin("lshr", "i32", c, e.int(32, 4 * i))
        byte = _byte(e, pool, e.bin("and", "i32", selector, e.int(32, 7)))
        if not mode:
            replicate = e.bin("and", "i32", selector, e.int(32, 8))
            sign = e.cast("sext", "i1", e.icmp("slt", "i8", byte, e.int(8, 0)), "i8")
            byte = e.select(e.icmp("ne", "i32", replicate, e.int(32, 0)), "i8", sign, byte)
        placed = e.bin("shl", "i32", e.cast("zext", "i8", byte, "i32"), e.int(32, 8 * i))
        result = e.bin("or", "i32", result, placed)
    return result


def _byte(e: Emitter, pool: str, index: str) -> str:
    amount = e.cast("zext", "i32", e.bin("shl", "i32", index, e.int(32, 3)), "i64")
    return e.cast("trunc", "i64", e.bin("lshr", "i64", pool, amount), "i8")
