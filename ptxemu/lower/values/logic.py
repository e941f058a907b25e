"""Logic, shift and byte permutation (PTX ISA 9.7.8, and ``prmt`` of 9.7.9)."""

from __future__ import annotations

from functools import partial, reduce

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
    mode, selector = op.mods.get("mode"), op["c"]
    if isinstance(selector, Imm) and not mode:
        return _arranged(e, a, b, selector.bits)
    k = e.bin("and", "i32", c, e.int(32, 3))
    result = e.int(32, 0)
    for i in range(4):
        nibble = permuted_byte(e, mode, k, i) if mode else e.bin("lshr", "i32", c, e.int(32, 4 * i))
        byte = e.bin("and", "i32", _selected(e, a, b, nibble, signs=not mode), e.int(32, 0xFF))
        result = e.bin("or", "i32", result, e.bin("shl", "i32", byte, e.int(32, 8 * i)))
    return result


def _arranged(e: Emitter, a: str, b: str, selector: int) -> str:
    """With a constant selector: bytes of a word that move the same way do so together."""
    moves: dict[tuple[str, str, int], int] = {}
    for i in range(4):
        nibble = selector >> 4 * i & 15
        word, byte = b if nibble & 4 else a, nibble & 3
        move = (word, "ashr", byte) if nibble & 8 else (word, "shl", i - byte) if i > byte else (word, "lshr", byte - i)
        moves[move] = moves.get(move, 0) | 0xFF << 8 * i
    return reduce(partial(e.bin, "or", "i32"), (_moved(e, *move, mask) for move, mask in moves.items()))


def _moved(e: Emitter, word: str, how: str, bytes: int, mask: int) -> str:
    """What a mask leaves of a word that is shifted by bytes or, if the shift is ``ashr``, of the sign of one of its bytes."""
    if how == "ashr":
        top = e.bin("shl", "i32", word, e.int(32, 24 - 8 * bytes))
        return e.bin("and", "i32", e.bin("ashr", "i32", top, e.int(32, 31)), e.int(32, mask))
    moved = e.bin(how, "i32", word, e.int(32, 8 * bytes)) if bytes else word
    kept = 0xFFFFFFFF << 8 * bytes & 0xFFFFFFFF if how == "shl" else 0xFFFFFFFF >> 8 * bytes
    return moved if mask == kept else e.bin("and", "i32", moved, e.int(32, mask))


def _selected(e: Emitter, a: str, b: str, nibble: str, *, signs: bool) -> str:
    """The byte of b:a with a number, or its sign, below others."""

    def is_set(bit: int) -> str:
        return e.icmp("ne", "i32", e.bin("and", "i32", nibble, e.int(32, bit)), e.int(32, 0))

    word = e.select(is_set(4), "i32", b, a)
    place = e.bin("shl", "i32", e.bin("and", "i32", nibble, e.int(32, 3)), e.int(32, 3))
    byte = e.bin("lshr", "i32", word, place)
    if not signs:
        return byte
    sign = e.bin("ashr", "i32", e.bin("shl", "i32", byte, e.int(32, 24)), e.int(32, 31))
    return e.select(is_set(8), "i32", sign, byte)
