"""Approximate functions (``.approx``, PTX ISA 9.7.3): with the bits of an architecture that is asked for (:mod:`mufu`),
else within the manual's error bounds, as plain vector code.

Polynomials are minimax fits made for these ranges.  They use separate multiplications and additions, so that results
are the same on hosts with and without a fused multiply-add.
"""

from __future__ import annotations

from ptxemu.ir.ops import Op
from ptxemu.lower.core.emit import Emitter, elementwise
from ptxemu.lower.core.float_bits import canonical, finish, flush, flush_inputs, is_nan
from ptxemu.lower.values import mufu

NAN64 = "0x7FFFFFFF00000000"  # the canonical NaN of rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64
INFINITY = "0x7FF0000000000000"

# 2**f for |f| <= 1/2 (relative error 1.9e-9)
EXP2 = (
    1.0000000005541483, 0.6931472057371766, 0.2402264689080672, 0.05550328777161656, 0.00961848893757904,
    0.0013399931163345143, 0.00015345817225638264,
)  # fmt: skip
# sin(2 pi y) / y in y**2 for |y| <= 1/4 (relative error 1.9e-7 with all roundings; at least 1 next to a quarter turn)
SINE = (6.283185005187988, -41.341651916503906, 81.60114288330078, -76.55281829833984, 39.556941986083984)
# log2(1 + f) / f for sqrt(1/2) <= 1 + f <= sqrt(2) (3.8e-8)
LOG2 = (
    1.4426950048878395, -0.7213471993129196, 0.48091027978689266, -0.36071626413510444, 0.2879390947529065,
    -0.23867567336089177, 0.21521224630747962, -0.20893386173063314, 0.1292643618887772,
)  # fmt: skip
# (tanh(x) - x) / x**3 in x**2 for |x| <= 5/8 (1.2e-7)
TANH = (-0.33332390048871197, 0.13308899691225207, -0.05197908310101431, 0.015236227090477342)
INVERSE_TWO_PI = 0.15915494309189535
TWO_LOG2_E = 2.8853900817779268


def polynomial(e: Emitter, coefficients: tuple[float, ...], x: str) -> str:
    result = e.f32(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = e.bin("fadd", "float", e.bin("fmul", "float", result, x), e.f32(coefficient))
    return result


def _power_of_two(e: Emitter, exponent: str) -> str:
    """2**exponent for an ``i32`` exponent in the normal range."""
    biased = e.bin("add", "i32", exponent, e.int(32, 127))
    return e.cast("bitcast", "i32", e.bin("shl", "i32", biased, e.int(32, 23)), "float")


def _clamp(e: Emitter, x: str, low: float, high: float) -> str:
    """x limited to [low, high]; NaN becomes ``low``."""
    x = e.select(e.fcmp("ogt", "float", x, e.f32(low)), "float", x, e.f32(low))
    return e.select(e.fcmp("olt", "float", x, e.f32(high)), "float", x, e.f32(high))


def exp2(e: Emitter, x: str) -> str:
    """2**x; overflows to infinity and underflows through the subnormals to +0.  NaN gives 0."""
    x = _clamp(e, x, -152.0, 129.0)
    whole = e.intrinsic("roundeven", "float", x)
    fraction = polynomial(e, EXP2, e.bin("fsub", "float", x, whole))
    k = e.cast("fptosi", "float", whole, "i32")
    # Two factors, since 2**k itself may be out of range; only the second product rounds.
    half = e.bin("ashr", "i32", k, e.int(32, 1))
    scaled = e.bin("fmul", "float", fraction, _power_of_two(e, half))
    return e.bin("fmul", "float", scaled, _power_of_two(e, e.bin("sub", "i32", k, half)))


def _with_nan(e: Emitter, x: str, result: str) -> str:
    """``result``, or NaN where ``x`` is NaN."""
    return e.select(is_nan(e, "float", x), "float", x, result)


def _turns_sine(e: Emitter, turns: str) -> str:
    """sin(2 pi t) of a ``double``: the fraction of a turn is exact, so big arguments stay bounded."""
    fraction = e.bin("fsub", "double", turns, e.intrinsic("roundeven", "double", turns))
    y = e.cast("fptrunc", "double", fraction, "float")
    magnitude = e.intrinsic("fabs", "float", y)
    mirrored = e.bin("fsub", "float", e.f32(0.5), magnitude)
    folded = e.select(e.fcmp("ogt", "float", magnitude, e.f32(0.25)), "float", mirrored, magnitude)
    square = e.bin("fmul", "float", folded, folded)
    height = e.bin("fmul", "float", folded, polynomial(e, SINE, square))
    bounded = e.select(e.fcmp("ogt", "float", height, e.f32(1.0)), "float", e.f32(1.0), height)
    return e.intrinsic("copysign", "float", bounded, y)


@elementwise("sin.approx", "cos.approx", size=20)
def sine(e: Emitter, op: Op, x: str) -> str:
    """cos(x) = sin(x + a quarter turn).  Next to zero the sine is x, -0 and subnormals too, and the cosine is 1."""
    (x,) = flush_inputs(e, op, "float", (x,))
    if e.numerics.hardware:
        return finish(e, op, "float", mufu.function(e, op, x))
    turns = e.bin("fmul", "double", e.cast("fpext", "float", x, "double"), e.f64(INVERSE_TWO_PI))
    at_zero = x
    if op.opcode == "cos":
        turns, at_zero = e.bin("fadd", "double", turns, e.f64(0.25)), e.f32(1.0)
    tiny = e.fcmp("olt", "float", e.intrinsic("fabs", "float", x), e.f32(2.0**-12))
    return finish(e, op, "float", e.select(tiny, "float", at_zero, _turns_sine(e, turns)))


@elementwise("ex2.approx", size=20)
def exponential(e: Emitter, op: Op, x: str) -> str:
    (x,) = flush_inputs(e, op, "float", (x,))
    if e.numerics.hardware:
        return finish(e, op, "float", mufu.function(e, op, x))
    return finish(e, op, "float", _with_nan(e, x, exp2(e, x)))


@elementwise("lg2.approx", size=20)
def logarithm(e: Emitter, op: Op, x: str) -> str:
    """Exponent plus the logarithm of a mantissa in [sqrt(1/2), sqrt(2))."""
    (x,) = flush_inputs(e, op, "float", (x,))
    if e.numerics.hardware:
        return finish(e, op, "float", mufu.function(e, op, x))
    tiny = e.fcmp("olt", "float", x, e.f32(2.0**-126))
    scaled = e.select(tiny, "float", e.bin("fmul", "float", x, e.f32(2.0**24)), x)
    # The bits of sqrt(1/2) subtracted: what is left of the exponent field counts from sqrt(1/2) on.
    offset = e.bin("sub", "i32", e.cast("bitcast", "float", scaled, "i32"), e.int(32, 0x3F3504F3))
    k = e.bin("ashr", "i32", offset, e.int(32, 23))
    mantissa = e.bin("add", "i32", e.bin("and", "i32", offset, e.int(32, 0x7FFFFF)), e.int(32, 0x3F3504F3))
    f = e.bin("fsub", "float", e.cast("bitcast", "i32", mantissa, "float"), e.f32(1.0))
    k = e.bin("sub", "i32", k, e.select(tiny, "i32", e.int(32, 24), e.int(32, 0)))
    fraction = e.bin("fmul", "float", f, polynomial(e, LOG2, f))
    result = e.bin("fadd", "float", e.cast("sitofp", "i32", k, "float"), fraction)
    result = e.select(e.fcmp("oeq", "float", x, e.f32(0.0)), "float", e.splat("float", "0xFFF0000000000000"), result)
    result = e.select(e.fcmp("oeq", "float", x, e.splat("float", INFINITY)), "float", x, result)
    invalid = e.fcmp("ult", "float", x, e.f32(0.0))  # negative or NaN
    return finish(e, op, "float", e.select(invalid, "float", e.splat("float", "0x7FF8000000000000"), result))


def hyperbolic_tangent(e: Emitter, x: str) -> str:
    """x itself next to zero (-0 and subnormals too), an odd polynomial near it, 1 - 2 / (e**2x + 1) elsewhere."""
    magnitude = e.intrinsic("fabs", "float", x)
    square = e.bin("fmul", "float", x, x)
    cube = e.bin("fmul", "float", e.bin("fmul", "float", x, square), polynomial(e, TANH, square))
    near = e.bin("fadd", "float", x, cube)
    power = exp2(e, e.bin("fmul", "float", magnitude, e.f32(TWO_LOG2_E)))
    ratio = e.bin("fdiv", "float", e.f32(2.0), e.bin("fadd", "float", power, e.f32(1.0)))
    far = e.intrinsic("copysign", "float", e.bin("fsub", "float", e.f32(1.0), ratio), x)
    near = e.select(e.fcmp("olt", "float", magnitude, e.f32(2.0**-12)), "float", x, near)
    return e.select(e.fcmp("ult", "float", magnitude, e.f32(0.625)), "float", near, far)


@elementwise("tanh.approx", size=20)
def tanh(e: Emitter, op: Op, x: str) -> str:
    if e.numerics.hardware:
        return mufu.function(e, op, x)
    return canonical(e, "float", hyperbolic_tangent(e, x))


@elementwise("rcp.approx", "sqrt.approx", "rsqrt.approx", size=20)
def root_or_reciprocal(e: Emitter, op: Op, x: str) -> str:
    """Division and square root are vector instructions on every host, and more precise than required."""
    t = op.type().llvm
    (x,) = flush_inputs(e, op, t, (x,))
    if e.numerics.hardware and t == "float":
        return finish(e, op, t, mufu.function(e, op, x))
    if op.opcode == "rsqrt" and t == "double":
        return reciprocal_root_double(e, x)
    if op.opcode != "rcp":
        x = e.intrinsic("sqrt", t, x)
    return finish(e, op, t, x if op.opcode == "sqrt" else e.bin("fdiv", t, e.splat(t, "1.0"), x))


def reciprocal_root_double(e: Emitter, x: str) -> str:
    """An estimate of 20 bits, and one step of third order from there, as NVIDIA's assembler has it.

    Next to nothing depends on the last bit of the estimate, which is the hardware's where an architecture is asked for.
    """
    t = "double"
    tiny = e.fcmp("olt", t, e.intrinsic("fabs", t, x), e.f64(2.0**-1022))
    scaled = e.select(tiny, t, e.bin("fmul", t, x, e.f64(2.0**54)), x)
    exact = e.bin("fdiv", t, e.f64(1.0), e.intrinsic("sqrt", t, scaled))
    bits = e.bin("and", "i64", e.cast("bitcast", t, exact, "i64"), e.int(64, -1 << 32))
    y = mufu.of_double(e, "rsqrt", scaled) if e.numerics.hardware else e.cast("bitcast", "i64", bits, t)
    error = e.intrinsic("fma", t, scaled, e.fneg(t, e.bin("fmul", t, y, y)), e.f64(1.0))
    factor = e.intrinsic("fma", t, error, e.f64(0.375), e.f64(0.5))
    result = e.intrinsic("fma", t, factor, e.bin("fmul", t, y, error), y)
    result = e.select(tiny, t, e.bin("fmul", t, result, e.f64(2.0**27)), result)
    ordinary = e.fcmp("olt", t, e.intrinsic("fabs", t, exact), e.splat(t, INFINITY))
    positive = e.fcmp("ogt", t, exact, e.f64(0.0))
    return e.select(e.bin("and", "i1", ordinary, positive), t, result, exact)


@elementwise("rcp.approx.f64", "rsqrt.approx.f64", size=20)
def coarse(e: Emitter, op: Op, x: str) -> str:
    """Only the upper word of the source and of the result count; NaN is 0x7fffffff00000000, but one whose payload lies in
    the lower word is an infinity."""
    upper = e.int(64, -1 << 32)
    bits = e.bin("and", "i64", e.cast("bitcast", "double", x, "i64"), upper)
    x = flush(e, "double", e.cast("bitcast", "i64", bits, "double"))
    root = e.intrinsic("sqrt", "double", x) if op.opcode == "rsqrt" else x
    y = flush(e, "double", e.bin("fdiv", "double", e.f64(1.0), root))
    rounded = e.bin("add", "i64", e.cast("bitcast", "double", y, "i64"), e.int(64, 1 << 31))
    result = e.cast("bitcast", "i64", e.bin("and", "i64", rounded, upper), "double")
    if e.numerics.hardware:
        magnitude = e.intrinsic("fabs", "double", y)
        normal = e.bin(
            "and", "i1", e.fcmp("one", "double", y, e.f64(0.0)), e.fcmp("one", "double", magnitude, e.splat("double", INFINITY))
        )
        estimate = e.intrinsic("copysign", "double", mufu.of_double(e, op.opcode, x), y)
        result = e.select(normal, "double", estimate, result)
    return e.select(is_nan(e, "double", y), "double", e.splat("double", NAN64), result)
