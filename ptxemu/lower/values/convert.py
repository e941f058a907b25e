"""``cvt`` and ``cvt.pack`` (PTX ISA 9.7.9)."""

from __future__ import annotations

from ptxemu.ir.ops import Op
from ptxemu.ir.types import ScalarType
from ptxemu.lower.core.emit import Emitter, elementwise
from ptxemu.lower.core.float_bits import (
    canonical,
    clamp_sign,
    constant,
    exponent_mask,
    flush,
    from_bits,
    integer,
    is_nan,
    saturate,
    sign_mask,
    to_bits,
)
from ptxemu.lower.values.float_formats import convert_float, flush_rounded, largest, move_directed, widen

WORD = ScalarType("s32", "s", 32, "i32")
INTEGER_ROUNDING = {"rni": "roundeven", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}


def _range(kind: ScalarType) -> tuple[int, int]:
    if kind.is_signed:
        return -(1 << (kind.bits - 1)), (1 << (kind.bits - 1)) - 1
    return 0, (1 << kind.bits) - 1


# ---------------------------------------------------------------- integers


def clamp_integer(e: Emitter, x: str, source: ScalarType, low: int, high: int) -> str:
    """``x`` limited to [low, high], as far as its own range goes beyond that."""
    least, most = _range(source)
    t, s = source.llvm, "s" if source.is_signed else "u"
    if low > least:
        x = e.intrinsic(s + "max", t, x, constant(e, t, low))
    if high < most:
        x = e.intrinsic(s + "min", t, x, constant(e, t, high))
    return x


@elementwise("cvt.int", size=8)
def integer_to_integer(e: Emitter, op: Op, x: str) -> str:
    source, target = op.type("atype"), op.type("dtype")
    if "sat" in op.mods:
        x = clamp_integer(e, x, source, *_range(target))
    if target.bits < source.bits:
        return e.cast("trunc", source.llvm, x, target.llvm)
    return e.cast("sext" if source.is_signed else "zext", source.llvm, x, target.llvm)


@elementwise("cvt.pack", size=8)
def pack_integers(e: Emitter, op: Op, a: str, b: str, c: str = "") -> str:
    """a above b, both saturated; c shifted up by their size."""
    kind = op.mods["dtype"]
    bits = int(kind[1:])
    least = ScalarType(kind, kind[0], bits, "i32")
    mask = e.int(32, (1 << bits) - 1)
    a, b = (e.bin("and", "i32", clamp_integer(e, x, op.type("atype"), *_range(least)), mask) for x in (a, b))
    pair = e.bin("or", "i32", e.bin("shl", "i32", a, e.int(32, bits)), b)
    return e.bin("or", "i32", pair, e.bin("shl", "i32", c, e.int(32, 2 * bits))) if c else pair


# ---------------------------------------------------------------- integer to float


def _directed_double(e: Emitter, x: str, signed: bool, mode: str) -> str:
    """A 64-bit integer to f64 in rz, rm or rp: both halves are exact, and their sum tells its error."""
    upper = e.bin("ashr" if signed else "lshr", "i64", x, e.int(64, 32))
    lower = e.bin("and", "i64", x, e.int(64, 0xFFFFFFFF))
    high = e.bin("fmul", "double", e.cast("sitofp", "i64", upper, "double"), e.f64(2.0**32))
    low = e.cast("uitofp", "i64", lower, "double")
    total = e.bin("fadd", "double", high, low)
    error = e.bin("fsub", "double", low, e.bin("fsub", "double", total, high))
    zero = e.f64(0.0)
    above, below = e.fcmp("ogt", "double", error, zero), e.fcmp("olt", "double", error, zero)
    return from_bits(e, "double", move_directed(e, "double", to_bits(e, "double", total), above, below, mode))


def _odd_integer(e: Emitter, x: str, signed: bool) -> str:
    """A 64-bit integer with its low 11 bits folded into one sticky bit if it needs more than 53: a double holds the rest."""
    big = e.bin("add", "i64", x, e.int(64, 1 << 53)) if signed else x
    fits = e.icmp("ult", "i64", big, e.int(64, 1 << (54 if signed else 53)))
    low = e.bin("and", "i64", x, e.int(64, 0x7FF))
    sticky = e.select(e.icmp("ne", "i64", low, e.int(64, 0)), "i64", e.int(64, 0x800), e.int(64, 0))
    folded = e.bin("or", "i64", e.bin("and", "i64", x, e.int(64, ~0x7FF)), sticky)
    return e.select(fits, "i64", x, folded)


@elementwise("cvt.int_to_float", size=8)
def integer_to_float(e: Emitter, op: Op, x: str) -> str:
    source, t, mode = op.type("atype"), op.type("dtype").llvm, op.mods["round"]
    to_float = "sitofp" if source.is_signed else "uitofp"
    if t == "double" and source.bits == 64 and mode != "rn":
        y = _directed_double(e, x, source.is_signed, mode)
    elif t == "double" or (t == "float" and mode == "rn"):
        y = e.cast(to_float, source.llvm, x, t)
    else:
        odd = _odd_integer(e, x, source.is_signed) if source.bits == 64 else x
        exact = e.cast(to_float, source.llvm, odd, "double")
        y = convert_float(e, exact, "double", t, mode)
    return _saturated(e, t, y) if "sat" in op.mods else y


def _saturated(e: Emitter, t: str, x: str) -> str:
    if t != "half":
        return saturate(e, t, x)
    return convert_float(e, saturate(e, "float", widen(e, "half", x)), "float", "half", "rn")


# ---------------------------------------------------------------- float to integer


@elementwise("cvt.float_to_int", size=8)
def float_to_integer(e: Emitter, op: Op, x: str) -> str:
    """Saturates.  NaN gives 0 from f16, bf16 and f32 to at most 32 bits, else only the top bit."""
    source, target = op.type("atype"), op.type("dtype")
    t, result = source.llvm, target.llvm
    if "ftz" in op.mods and t == "float":
        x = flush(e, t, x)
    if t in ("half", "bfloat"):
        x, t = widen(e, t, x), "float"
    x = e.intrinsic(INTEGER_ROUNDING[op.mods["round"]], t, x)
    y = to_integer(e, t, x, target)
    if source.name != "f64" and target.bits != 64:
        return y
    return e.select(is_nan(e, t, x), result, constant(e, result, sign_mask(result)), y)


def to_integer(e: Emitter, t: str, x: str, target: ScalarType) -> str:
    """Truncates and saturates. NaN gives 0 from f32 to at most 32 bits, else anything. The saturating intrinsic would be code of
    one lane after the other, but for single words."""
    if target.bits < WORD.bits:
        return e.cast("trunc", "i32", clamp_integer(e, to_integer(e, t, x, WORD), WORD, *_range(target)), target.llvm)
    if target.bits == WORD.bits and not e.lanes:
        return e.intrinsic("fptosi.sat" if target.is_signed else "fptoui.sat", t, x, ret=target.llvm)
    (low, high), result, literal = _range(target), target.llvm, e.f64 if t == "double" else e.f32
    least = literal(float(low))
    bounded = e.select(e.fcmp("ogt", t, x, least), t, x, least)
    y = e.cast("fptosi" if target.is_signed else "fptoui", t, bounded, result)
    y = e.select(e.fcmp("oge", t, x, literal(float(high + 1))), result, e.int(target.bits, high), y)
    if not low or t == "double" or target.bits != WORD.bits:
        return y
    return e.select(is_nan(e, t, x), result, e.int(target.bits, 0), y)


# ---------------------------------------------------------------- float to float


def _limited(e: Emitter, op: Op, t: str, x: str) -> str:
    """``.satfinite``, ``.relu`` and ``.pzo`` on a result."""
    i = integer(t)
    bits = to_bits(e, t, x)
    if "satfinite" in op.mods:
        sign = e.bin("and", i, bits, constant(e, i, sign_mask(t)))
        magnitude = e.bin("xor", i, bits, sign)
        infinite = e.icmp("eq", i, magnitude, constant(e, i, exponent_mask(t)))
        bits = e.select(infinite, i, e.bin("or", i, sign, largest(e, t)), bits)
    if "relu" in op.mods:
        bits = clamp_sign(e, t, bits)
    return from_bits(e, t, without_negative_zero(e, op, i, bits, sign_mask(t)))


def without_negative_zero(e: Emitter, op: Op, i: str, bits: str, negative_zero: int) -> str:
    """``.pzo`` on a pattern, as an integer of type ``i``."""
    if "pzo" not in op.mods:
        return bits
    return e.select(e.icmp("eq", i, bits, constant(e, i, negative_zero)), i, constant(e, i, 0), bits)


def _moves(op: Op) -> bool:
    """To f32, from what f32 holds in its upper bits, and without another modifier that does something."""
    exact = op.mods["dtype"] == "f32" and op.mods["atype"] in ("f32", "bf16")
    return exact and op.mods.get("round") not in INTEGER_ROUNDING and not {"ftz", "sat"} & op.mods.keys()


@elementwise("cvt.float", size=8)
def float_to_float(e: Emitter, op: Op, x: str) -> str:
    """Also the rounding of a float to an integral value in its own format.

    ``.ftz`` does nothing from f32 to f16: ptxas makes the same machine code with and without it.  What changes nothing is a
    move, and bf16 to f32 a shift, which keep NaNs.  A NaN of f64 keeps its sign and the upper bits of its payload.  To f64,
    ``.ftz`` is an addition of f32, which makes NaNs canonical.
    """
    t, target, mode = op.type("atype").llvm, op.type("dtype").llvm, op.mods.get("round", "rn")
    if _moves(op):
        return widen(e, t, x) if t == "bfloat" else x
    of_double = t == "double"
    if "ftz" in op.mods and t == "float" and target != "half":
        x = flush(e, t, x)
        x = canonical(e, t, x) if target == "double" else x
    if t in ("half", "bfloat"):
        x, t = widen(e, t, x), "float"
    if mode in INTEGER_ROUNDING:
        x, mode = e.intrinsic(INTEGER_ROUNDING[mode], t, x), "rn"
    if "sat" in op.mods:
        x = saturate(e, t, x)
    y = convert_float(e, x, t, target, mode, payload=of_double)
    if "ftz" in op.mods and target == "float":
        y = flush_rounded(e, target, y, t, x, mode) if of_double else flush(e, target, y)
    if op.mods.keys() & {"satfinite", "relu", "pzo"}:
        y = _limited(e, op, target, y)
    return y if of_double else canonical(e, target, y)


@elementwise("cvt.pair", size=8)
def float_pair(e: Emitter, op: Op, a: str, b: str) -> str:
    """Two f32 to f16x2 or bf16x2: a in the upper half."""
    t = "half" if op.mods["dtype"] == "f16x2" else "bfloat"
    high, low = (
        e.cast("zext", "i16", to_bits(e, t, _limited(e, op, t, convert_float(e, x, "float", t, op.mods["round"]))), "i32")
        for x in (a, b)
    )
    return e.bin("or", "i32", e.bin("shl", "i32", high, e.int(32, 16)), low)


@elementwise("cvt.tf32", size=8)
def to_tf32(e: Emitter, op: Op, x: str) -> str:
    """f32 with its 13 low bits rounded away; ``rna``: ties away from zero."""
    bits = to_bits(e, "float", x)
    if op.mods["round"] == "rna":
        return _to_tf32_away(e, op, bits)
    if op.mods["round"] == "rn":
        odd = e.bin("and", "i32", e.bin("lshr", "i32", bits, e.int(32, 13)), e.int(32, 1))
        bits = e.bin("add", "i32", bits, e.bin("add", "i32", odd, e.int(32, 0xFFF)))
    bits = e.bin("and", "i32", bits, e.int(32, ~0x1FFF))
    if "satfinite" in op.mods:
        sign = e.bin("and", "i32", bits, e.int(32, 1 << 31))
        infinite = e.icmp("eq", "i32", e.bin("xor", "i32", bits, sign), e.int(32, 0x7F800000))
        bits = e.select(infinite, "i32", e.bin("or", "i32", sign, e.int(32, 0x7F7FE000)), bits)
    if "relu" in op.mods:
        bits = clamp_sign(e, "float", bits)
    bits = without_negative_zero(e, op, "i32", bits, 1 << 31)
    return e.select(is_nan(e, "float", x), "i32", e.int(32, 0x7FFFE000), bits)


def _to_tf32_away(e: Emitter, op: Op, bits: str) -> str:
    """As NVIDIA's assembler composes it: NaNs are cut, too, and may become infinite."""

    def special(x: str) -> str:
        return e.icmp("uge", "i32", e.bin("and", "i32", x, e.int(32, 0x7FFFFFFF)), e.int(32, 0x7F800000))

    half = e.bin("add", "i32", bits, e.int(32, 0x1000))
    cut = e.bin("and", "i32", e.select(special(bits), "i32", bits, half), e.int(32, ~0x1FFF))
    if "satfinite" not in op.mods:
        return cut
    return e.select(special(cut), "i32", e.bin("sub", "i32", cut, e.int(32, 0x2000)), cut)
