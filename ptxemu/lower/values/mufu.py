"""Approximate functions with the bits of the hardware: the instruction MUFU, and what NVIDIA's assembler puts around it.

MUFU takes subnormal operands for zeros and makes no subnormal results, which is all that ``.ftz`` asks for.  Without ``.ftz``
operands and results are scaled by powers of two; read from machine code for sm_75 to sm_120, which agree.
"""

from __future__ import annotations

from ptxemu.ir.ops import Op
from ptxemu.lower.core.emit import Emitter
from ptxemu.lower.values.mufu_unit import FUNCTIONS

LEAST_NORMAL = 2.0**-126
HUGE = 2.0**126  # whose reciprocals are subnormal
INVERSE_TWO_PI = 0.15915493667125702
UP = 2.0**24
DOWN = 0.25


def unit(e: Emitter, function: str, x: str) -> str:
    """MUFU of f32 values."""
    bits = e.outlined(f"mufu.{function}", FUNCTIONS[function], "float", "i32", x)
    return e.cast("bitcast", "i32", bits, "float")


def function(e: Emitter, op: Op, x: str) -> str:
    """``rcp``, ``rsqrt``, ``sqrt``, ``sin``, ``cos``, ``lg2`` or ``ex2`` of f32."""
    name = op.opcode
    if name in ("sin", "cos"):
        return unit(e, name, _turns(e, x))
    if "ftz" in op.mods:
        return unit(e, name, x)
    return _WITH_SUBNORMALS[name](e, x)


def quotient(e: Emitter, op: Op, a: str, b: str) -> str:
    """``div.approx`` and ``div.full``: a times the reciprocal of b, both scaled."""
    scale = e.f32(1.0)
    if op.mods["mode"] == "full":
        scale = e.select(_is_huge(e, b), "float", e.f32(DOWN), scale)
    if "ftz" not in op.mods:
        scale = e.select(_is_tiny(e, b), "float", e.f32(UP), scale)
    a, b = e.bin("fmul", "float", a, scale), e.bin("fmul", "float", b, scale)
    return e.bin("fmul", "float", unit(e, "rcp", b), a)


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
