"""Approximate functions with the bits of the hardware: the instruction MUFU, and what NVIDIA's assembler puts around it.

MUFU of f32 was compared with an NVIDIA H200 (sm_90) for all operands of all functions, with ``.ftz`` and without.  Those of f16,
bf16 and f64 are parts of its results, which was found there, too.

MUFU takes subnormal operands for zeros and makes no subnormal results, which is all that ``.ftz`` asks for.  Without ``.ftz``
operands and results are scaled by powers of two; read from machine code for sm_75 to sm_120, which agree.
"""

from __future__ import annotations

from ptxemu.ir.ops import Op
from ptxemu.lower.core.emit import Emitter
from ptxemu.lower.core.float_bits import flush_nearest
from ptxemu.lower.values.float_formats import narrow_float, widen
from ptxemu.lower.values.mufu_unit import FUNCTIONS

LEAST_NORMAL = 2.0**-126
HUGE = 2.0**126  # whose reciprocals are subnormal
INFINITY = "0x7FF0000000000000"
INVERSE_TWO_PI = 0.15915493667125702
UP = 2.0**24
DOWN = 0.25


def unit(e: Emitter, function: str, x: str) -> str:
    """MUFU of f32 values."""
    bits = e.outlined(f"mufu.{function}", FUNCTIONS[function], "float", "i32", x)
    return e.cast("bitcast", "i32", bits, "float")


def function(e: Emitter, op: Op, x: str) -> str:
    """``rcp``, ``rsqrt``, ``sqrt``, ``sin``, ``cos``, ``lg2``, ``ex2`` or ``tanh`` of f32."""
    name = op.opcode
    if name in ("sin", "cos"):
        return unit(e, name, _turns(e, x))
    if "ftz" in op.mods or name == "tanh":
        return unit(e, name, x)
    return _WITH_SUBNORMALS[name](e, x)


def of_half(e: Emitter, name: str, t: str, x: str) -> str:
    """``ex2`` or ``tanh`` of f16 or bf16: the result for f32 toward zero, or infinity where f16 has not the exponent."""
    y = unit(e, name, widen(e, t, x))
    if name == "ex2" and t == "half":
        y = e.select(e.fcmp("oge", "float", y, e.f32(2.0**16)), "float", e.splat("float", INFINITY), y)
    return narrow_float(e, y, t, "rz")


def of_double(e: Emitter, name: str, x: str) -> str:
    """``rcp`` of an f64, without its sign, or ``rsqrt`` of a positive one: from the fraction in the upper word as one of f32, cut
    to 20 bits.  Operand and result are normal numbers."""
    word = e.cast("trunc", "i64", e.bin("lshr", "i64", e.cast("bitcast", "double", x, "i64"), e.int(64, 32)), "i32")
    power = e.bin("sub", "i32", e.bin("and", "i32", e.bin("lshr", "i32", word, e.int(32, 20)), e.int(32, 0x7FF)), e.int(32, 1023))
    kept = e.bin("and", "i32", power, e.int(32, 1)) if name == "rsqrt" else e.int(32, 0)
    fraction = e.bin("shl", "i32", e.bin("and", "i32", word, e.int(32, 0xFFFFF)), e.int(32, 3))
    exponent = e.bin("shl", "i32", e.bin("add", "i32", kept, e.int(32, 127)), e.int(32, 23))
    part = e.cast("bitcast", "i32", e.bin("or", "i32", fraction, exponent), "float")
    result = e.bin("lshr", "i32", e.cast("bitcast", "float", unit(e, name, part), "i32"), e.int(32, 3))
    left = e.bin("sub", "i32", power, kept)
    if name == "rsqrt":
        left = e.bin("ashr", "i32", left, e.int(32, 1))
    left = e.bin("shl", "i32", e.bin("sub", "i32", e.int(32, 1023 - 127), left), e.int(32, 20))
    upper = e.cast("zext", "i32", e.bin("add", "i32", result, left), "i64")
    return e.cast("bitcast", "i64", e.bin("shl", "i64", upper, e.int(64, 32)), "double")


def quotient(e: Emitter, op: Op, a: str, b: str) -> str:
    """``div.approx`` and ``div.full``: a times the reciprocal of b, both scaled."""
    scale = e.f32(1.0)
    if op.mods["mode"] == "full":
        scale = e.select(_is_huge(e, b), "float", e.f32(DOWN), scale)
    if "ftz" not in op.mods:
        scale = e.select(_is_tiny(e, b), "float", e.f32(UP), scale)
    a, b = e.bin("fmul", "float", a, scale), e.bin("fmul", "float", b, scale)
    reciprocal = unit(e, "rcp", b)
    if "ftz" in op.mods and not e.daz:
        return flush_nearest(e, lambda *xs: e.bin("fmul", "float", *xs), reciprocal, a)
    return e.bin("fmul", "float", reciprocal, a)


def _is_tiny(e: Emitter, x: str) -> str:
    """Subnormal, or zero."""
    return e.fcmp("olt", "float", e.intrinsic("fabs", "float", x), e.f32(LEAST_NORMAL))


def _is_huge(e: Emitter, x: str) -> str:
    return e.fcmp("ogt", "float", e.intrinsic("fabs", "float", x), e.f32(HUGE))


def _turns(e: Emitter, x: str) -> str:
    """x / 2 pi, toward zero: a double holds the product."""
    product = e.bin("fmul", "double", e.cast("fpext", "float", x, "double"), e.f64(INVERSE_TWO_PI))
    kept = e.bin("and", "i64", e.cast("bitcast", "double", product, "i64"), e.int(64, -1 << 29))
    return e.cast("fptrunc", "double", e.cast("bitcast", "i64", kept, "double"), "float")


def _power(e: Emitter, x: str) -> str:
    """Below -126 the square of half the power."""
    low = e.fcmp("olt", "float", x, e.f32(-126.0))
    power = unit(e, "ex2", e.select(low, "float", e.bin("fmul", "float", x, e.f32(0.5)), x))
    return e.select(low, "float", e.bin("fmul", "float", power, power), power)


def _scaled_up(e: Emitter, x: str) -> tuple[str, str]:
    """Whether x is subnormal, and x, times 2**24 if it is."""
    tiny = _is_tiny(e, x)
    return tiny, e.select(tiny, "float", e.bin("fmul", "float", x, e.f32(UP)), x)


def _logarithm(e: Emitter, x: str) -> str:
    tiny, x = _scaled_up(e, x)
    result = unit(e, "lg2", x)
    return e.select(tiny, "float", e.bin("fsub", "float", result, e.f32(24.0)), result)


def _root(e: Emitter, x: str) -> str:
    tiny, x = _scaled_up(e, x)
    result = unit(e, "sqrt", x)
    return e.select(tiny, "float", e.bin("fmul", "float", result, e.f32(2.0**-12)), result)


def _reciprocal_root(e: Emitter, x: str) -> str:
    tiny, x = _scaled_up(e, x)
    result = unit(e, "rsqrt", x)
    return e.select(tiny, "float", e.bin("fmul", "float", result, e.f32(2.0**12)), result)


def _reciprocal(e: Emitter, x: str) -> str:
    scale = e.select(_is_tiny(e, x), "float", e.f32(UP), e.f32(1.0))
    scale = e.select(_is_huge(e, x), "float", e.f32(DOWN), scale)
    return e.bin("fmul", "float", unit(e, "rcp", e.bin("fmul", "float", x, scale)), scale)


_WITH_SUBNORMALS = {"ex2": _power, "lg2": _logarithm, "sqrt": _root, "rsqrt": _reciprocal_root, "rcp": _reciprocal}
