"""f32 and f64 arithmetic (PTX ISA 9.7.3), exact in every rounding mode; never contracted, never reassociated."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from ptxemu.ir.ops import Op
from ptxemu.lower.core.emit import Emitter, elementwise
from ptxemu.lower.core.float_bits import (
    arithmetic_inputs,
    canonical,
    constant,
    exponent_mask,
    finish,
    flush_inputs,
    flush_nearest,
    from_bits,
    integer,
    is_nan,
    packed,
    sign_mask,
    to_bits,
)
from ptxemu.lower.core.parts import joined, part
from ptxemu.lower.values import mufu
from ptxemu.lower.values.float_formats import add_odd, flush_rounded, narrow_double, widen

# The codes of pe_round (csrc/include/ptxemu.h).
ROUND_OPS = {"add": 0, "sub": 1, "mul": 2, "fma": 3, "div": 4, "sqrt": 5, "rcp": 6}
ROUND_MODES = {"rn": 0, "rz": 1, "rm": 2, "rp": 3}


REGISTER = 16
"""Floats of a register of AVX-512."""
INSTRUCTIONS = {"fma": "vfmadd"}
"""What LLVM calls them otherwise."""
EMBEDDED = {"rm": 1, "rp": 2, "rz": 3}
SILENT = 8
"""Codes of roundings, and of no exceptions, with which they are given."""

NAN_ORDER = {"fma": (1, 2, 0), "div": (0, 1)}
"""Which operand's NaN is the result for f64: the first of these that is one; of others the last."""


def hardware_nan(e: Emitter, name: str, t: str, xs: tuple[str, ...], result: str) -> str:
    """A NaN of f64 keeps sign and payload and becomes quiet, where an architecture is asked for; else as the processor has it."""
    if t != "double" or not e.numerics.hardware:
        return result
    for i in reversed(NAN_ORDER.get(name, range(len(xs))[::-1])):
        quiet = e.bin("or", "i64", to_bits(e, t, xs[i]), e.int(64, 1 << 51))
        result = e.select(is_nan(e, t, xs[i]), t, from_bits(e, t, quiet), result)
    return result


# ---------------------------------------------------------------- one operation, one rounding


def nearest(e: Emitter, name: str, t: str, xs: tuple[str, ...]) -> str:
    if name == "fma":
        return e.intrinsic("fma", t, *xs)
    if name == "sqrt":
        return e.intrinsic("sqrt", t, *xs)
    if name == "rcp":
        return e.bin("fdiv", t, e.splat(t, "1.0"), *xs)
    return e.bin("f" + name, t, *xs)


def _narrowed(e: Emitter, exact: str, mode: str, ftz: bool) -> str:
    x = narrow_double(e, exact, mode)
    return flush_rounded(e, "float", x, "double", exact, mode) if ftz else x


def _exact_sum(e: Emitter, a: str, b: str, mode: str, ftz: bool) -> str:
    """a + b of doubles to f32.  A sum that is exactly zero is -0 in rm unless both terms are +0."""
    total = add_odd(e, "double", a, b)
    if mode == "rm":
        bits = e.bin("or", "i64", to_bits(e, "double", a), to_bits(e, "double", b))
        zero = from_bits(e, "double", e.bin("and", "i64", bits, constant(e, "i64", sign_mask("i64"))))
        total = e.select(e.fcmp("oeq", "double", total, e.f64(0.0)), "double", zero, total)
    return _narrowed(e, total, mode, ftz)


def directed_float(e: Emitter, name: str, xs: tuple[str, ...], mode: str, ftz: bool) -> str:
    """f32 in rz, rm or rp, through double.

    Products are exact there and sums are rounded to odd.  Quotients and roots are rounded twice, which is harmless: one
    that is not a float is never as close to a float as half an ulp of double.
    """
    ys = tuple(e.cast("fpext", "float", x, "double") for x in xs)
    if name in ("add", "sub"):
        b = e.fneg("double", ys[1]) if name == "sub" else ys[1]
        return _exact_sum(e, ys[0], b, mode, ftz)
    if name == "fma":
        return _exact_sum(e, e.bin("fmul", "double", ys[0], ys[1]), ys[2], mode, ftz)
    return _narrowed(e, nearest(e, name, "double", ys), mode, ftz)


def _by_instructions(e: Emitter, name: str, xs: tuple[str, ...], mode: str) -> str:
    """f32 in rz, rm or rp, by instructions of AVX-512, which name the rounding themselves."""
    if name == "rcp":
        name, xs = "div", (e.f32(1.0), *xs)
    vector, whole = f"<{REGISTER} x float>", f"llvm.x86.avx512.{INSTRUCTIONS.get(name, name)}.ps.512"
    e.declare(whole, f"declare {vector} @{whole}({', '.join([vector] * len(xs))}, i32)")
    parts = []
    for at in range(0, e.lanes, REGISTER):
        operands = ", ".join(f"{vector} {part(e, 'float', x, at, REGISTER)}" for x in xs)
        parts.append(e.inst(f"call {vector} @{whole}({operands}, i32 {SILENT | EMBEDDED[mode]})"))
    return joined(e, "float", parts, REGISTER)


def directed_double(e: Emitter, name: str, xs: tuple[str, ...], mode: str) -> str:
    leading = [f"i32 {ROUND_OPS[name]}", f"i32 {ROUND_MODES[mode]}", "i32 64", f"i32 {max(e.lanes, 1)}"]
    absent = ("ptr null",) * (3 - len(xs))
    return e.lanes_call("pe_round", leading, "double", *(("double", x) for x in xs), trailing=absent)


def rounded(e: Emitter, name: str, t: str, xs: tuple[str, ...], mode: str, ftz: bool = False) -> str:
    """``ftz``: flushed, too, where that must know more than the rounded result, and the processor does not do it."""
    if mode == "rn":
        exceeds = ftz and t == "float" and name in ("mul", "fma") and not e.daz
        return flush_nearest(e, lambda *ys: nearest(e, name, t, ys), *xs) if exceeds else nearest(e, name, t, xs)
    if t == "double":
        return directed_double(e, name, xs, mode)
    # Sums that are subnormal are exact; else what is flushed depends on more than the rounded result.
    fills = e.lanes > 0 and e.lanes % REGISTER == 0
    if e.target.avx512 and fills and (not ftz or name in ("add", "sub")):
        return _by_instructions(e, name, xs, mode)
    return directed_float(e, name, xs, mode, ftz)


@elementwise("add.fp", "sub.fp", "mul.fp", "fma.fp")
@elementwise("div.fp", size=60)
@elementwise("rcp.fp", "sqrt.fp", size=20)
def arithmetic(e: Emitter, op: Op, *xs: str) -> str:
    """``mad`` is ``fma`` since sm_20."""
    t = op.type().llvm
    name = "fma" if op.opcode == "mad" else op.opcode
    xs = arithmetic_inputs(e, op, t, xs)
    result = rounded(e, name, t, xs, op.mods.get("round", "rn"), "ftz" in op.mods)
    return finish(e, op, t, hardware_nan(e, name, t, xs, result))


@elementwise("rcp.double", size=20)
def reciprocal(e: Emitter, op: Op, x: str) -> str:
    """``rcp.ftz.f64`` keeps subnormals, as the machine code of NVIDIA's assembler does."""
    return hardware_nan(e, "rcp", "double", (x,), rounded(e, "rcp", "double", (x,), op.mods["round"]))


@elementwise("add.f32x2", "sub.f32x2", "mul.f32x2", "fma.f32x2")
def arithmetic_packed(e: Emitter, op: Op, *xs: str) -> str:
    mode = op.mods.get("round", "rn")

    def one(*ys: str) -> str:
        ys = flush_inputs(e, op, "float", ys)
        return finish(e, op, "float", rounded(e, op.opcode, "float", ys, mode, "ftz" in op.mods))

    return packed(e, "i64", "float", one, *xs)


@elementwise("add.mixed", "sub.mixed", "fma.mixed")
def arithmetic_mixed(e: Emitter, op: Op, *xs: str) -> str:
    """f32 arithmetic with f16 or bf16 sources, widened first: all of them but the addend."""
    source = op.type("atype").llvm
    narrow = len(xs) - 1
    ys = tuple(widen(e, source, x) for x in xs[:narrow]) + xs[narrow:]
    return finish(e, op, "float", rounded(e, op.opcode, "float", ys, op.mods.get("round", "rn")))


# ---------------------------------------------------------------- sign bits


def absolute(e: Emitter, t: str, x: str) -> str:
    i = integer(t)
    return from_bits(e, t, e.bin("and", i, to_bits(e, t, x), constant(e, i, sign_mask(t) - 1)))


def negated(e: Emitter, t: str, x: str) -> str:
    i = integer(t)
    return from_bits(e, t, e.bin("xor", i, to_bits(e, t, x), constant(e, i, sign_mask(t))))


SIGN_OPS: dict[str, Callable[[Emitter, str, str], str]] = {"abs": absolute, "neg": negated}


@elementwise("abs.fp", "neg.fp")
def sign_operation(e: Emitter, op: Op, a: str) -> str:
    """Hardware adds -0, so that any NaN of f32 becomes the canonical one, and one of f64 keeps its sign."""
    t = op.type().llvm
    if not (e.daz and e.raw_nan):
        (a,) = flush_inputs(e, op, t, (a,))
    result = hardware_nan(e, op.opcode, t, (a,), SIGN_OPS[op.opcode](e, t, a))
    return result if e.raw_nan else canonical(e, t, result)


@elementwise("copysign")
def copy_sign(e: Emitter, op: Op, a: str, b: str) -> str:
    """The sign of a, the magnitude of b."""
    t = op.type().llvm
    return e.intrinsic("copysign", t, b, a)


@elementwise("testp")
def test_property(e: Emitter, op: Op, a: str) -> str:
    """Zeros are normal, and are not subnormal."""
    t = op.type().llvm
    i = integer(t)
    magnitude = e.bin("and", i, to_bits(e, t, a), constant(e, i, sign_mask(t) - 1))
    infinity = constant(e, i, exponent_mask(t))
    condition = {"finite": "ult", "infinite": "eq", "number": "ule", "notanumber": "ugt"}.get(op.mods["op"])
    if condition:
        return e.icmp(condition, i, magnitude, infinity)
    exponent = e.bin("and", i, magnitude, infinity)
    no_exponent = e.icmp("eq", i, exponent, constant(e, i, 0))
    zero = e.icmp("eq", i, magnitude, constant(e, i, 0))
    if op.mods["op"] == "subnormal":
        return e.bin("and", "i1", no_exponent, e.bin("xor", "i1", zero, e.int(1, 1)))
    normal = e.bin("and", "i1", e.icmp("ne", i, exponent, infinity), e.bin("xor", "i1", no_exponent, e.int(1, 1)))
    return e.bin("or", "i1", normal, zero)


# ---------------------------------------------------------------- minimum and maximum


def extreme(e: Emitter, name: str, t: str, a: str, b: str, nan: bool) -> str:
    """-0 is less than +0.  One NaN loses against a number, or wins with ``nan``; the result may be any NaN."""
    i = integer(t)
    # Equal numbers differ at most in the sign of zero: or gives -0 (min), and gives +0 (max).
    equal = from_bits(e, t, e.bin("or" if name == "min" else "and", i, to_bits(e, t, a), to_bits(e, t, b)))
    first = e.select(e.fcmp("olt" if name == "min" else "ogt", t, a, b), t, a, b)
    result = e.select(e.fcmp("oeq", t, a, b), t, equal, first)
    if nan:
        return e.select(is_nan(e, t, a), t, a, result)
    return e.select(is_nan(e, t, b), t, a, result)


def extreme_of(e: Emitter, op: Op, t: str, xs: tuple[str, ...]) -> str:
    """``.xorsign.abs`` compares magnitudes and gives the result the xor of the signs."""
    sign = ""
    if "abs" in op.mods:
        i = integer(t)
        if "xorsign" in op.mods:
            both = e.bin("xor", i, to_bits(e, t, xs[0]), to_bits(e, t, xs[1]))
            sign = from_bits(e, t, e.bin("and", i, both, constant(e, i, sign_mask(t))))
        xs = tuple(absolute(e, t, x) for x in xs)
    result = xs[0]
    for x in xs[1:]:
        result = extreme(e, op.opcode, t, result, x, "NaN" in op.mods)
    return e.intrinsic("copysign", t, result, sign) if sign else result


@elementwise("min.fp")
def float_least(e: Emitter, op: Op, *xs: str) -> str:
    return _float_extreme(e, op, xs, LEAST)


@elementwise("max.fp")
def float_greatest(e: Emitter, op: Op, *xs: str) -> str:
    return _float_extreme(e, op, xs, GREATEST)


def _float_extreme(e: Emitter, op: Op, xs: tuple[str, ...], choice: int) -> str:
    t = op.type().llvm
    sources = flush_inputs(e, op, t, xs)
    if _has_ranges(e, t) and not {"NaN", "abs"} & op.mods.keys():
        result, raw = _range_of(e, sources, choice), e.raw_nan
    else:
        relied_on = op.effects.nan == "quiet" and e.target.avx512  # that NaNs are quiet
        result, raw = extreme_of(e, op, t, sources), e.raw_nan and not relied_on
    if t == "double" and e.numerics.hardware:
        result = e.select(is_nan(e, t, result), t, hardware_nan(e, op.opcode, t, xs, result), result)
    return result if raw else canonical(e, t, result)


RANGE, PRODUCT = "llvm.x86.avx512.mask.range.ps.512", "llvm.x86.avx512.mul.ps.512"
LEAST, GREATEST = 4, 5  # what RANGE chooses, with its sign
NEAREST = 8  # said in the instruction, which LLVM takes for no plain product
REGISTER = 16


def _has_ranges(e: Emitter, t: str) -> bool:
    """Whether the CPU compares numbers as PTX does, with zeros and quiet NaNs, in vectors of f32."""
    return t == "float" and e.target.avx512 and bool(e.lanes) and e.lanes % REGISTER == 0 and not e.daz


def _range_of(e: Emitter, xs: tuple[str, ...], choice: int) -> str:
    """Signaling NaNs would win: a product by 1 makes them quiet."""
    kind = f"<{REGISTER} x float>"
    e.declare(RANGE, f"declare {kind} @{RANGE}({kind}, {kind}, i32, {kind}, i{REGISTER}, i32)")
    e.declare(PRODUCT, f"declare {kind} @{PRODUCT}({kind}, {kind}, i32)")

    def quiet(index: int, x: str) -> str:
        known = e.quiet and e.quiet[index]
        return x if known else e.inst(f"call {kind} @{PRODUCT}({kind} {x}, {kind} splat (float 1.0), i32 {NEAREST})")

    def chosen(a: str, b: str) -> str:
        rest = f"i32 {choice}, {kind} zeroinitializer, i{REGISTER} -1, i32 4"
        return e.inst(f"call {kind} @{RANGE}({kind} {a}, {kind} {b}, {rest})")

    starts = range(0, e.lanes, REGISTER)
    parts = [reduce(chosen, (quiet(i, part(e, "float", x, at, REGISTER)) for i, x in enumerate(xs))) for at in starts]
    return joined(e, "float", parts, REGISTER)


# ---------------------------------------------------------------- approximate division


@elementwise("div.approx", size=60)
def divide_approximately(e: Emitter, op: Op, a: str, b: str) -> str:
    """a * (1/b): for 2**126 < |b| < 2**128 a zero with the sign of a/b, or NaN for an infinite a."""
    a, b = flush_inputs(e, op, "float", (a, b))
    if e.numerics.hardware:
        return finish(e, op, "float", mufu.quotient(e, op, a, b))
    result = e.bin("fdiv", "float", a, b)
    magnitude = e.intrinsic("fabs", "float", b)
    above = e.fcmp("ogt", "float", magnitude, e.f32(2.0**126))
    huge = e.bin("and", "i1", above, e.fcmp("one", "float", magnitude, e.splat("float", "0x7FF0000000000000")))
    # The sign of zero is that of a/b, and 0 times infinity is the NaN wanted.
    zero = e.bin("fmul", "float", a, e.intrinsic("copysign", "float", e.f32(0.0), b))
    return finish(e, op, "float", e.select(huge, "float", zero, result))


@elementwise("div.full", size=60)
def divide_fully(e: Emitter, op: Op, a: str, b: str) -> str:
    a, b = flush_inputs(e, op, "float", (a, b))
    if e.numerics.hardware:
        return finish(e, op, "float", mufu.quotient(e, op, a, b))
    return finish(e, op, "float", e.bin("fdiv", "float", a, b))
