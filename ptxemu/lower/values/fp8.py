"""``cvt`` to and from the float formats of eight bits and fewer (PTX ISA 9.7.9)."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from ptxemu.ir.ops import Op
from ptxemu.lower.core.emit import Emitter, elementwise
from ptxemu.lower.core.float_bits import flush, from_bits, is_nan, to_bits
from ptxemu.lower.values.convert import without_negative_zero
from ptxemu.lower.values.float_formats import CANONICAL_16, convert_float, widen

MAGNITUDE, INFINITY = 0x7FFFFFFF, 0x7F800000  # of f32
SCALE_NAN = 0xFF
ONE_SCALE = "scaled::n1::ue8m0"


class Narrow(Struct, frozen=True):
    """A format: ``largest`` finite pattern, what NaN becomes; the least that is NaN, and infinity, where there are such.

    One that is not ``signed`` has the magnitudes of what is converted to it.
    """

    exponent: int
    mantissa: int
    largest: int
    nan: int
    least_nan: int | None = None
    infinity: int | None = None
    signed: bool = True

    @property
    def bits(self) -> int:
        return self.signed + self.exponent + self.mantissa

    @property
    def container(self) -> int:
        """Bits of the field that holds one element of a pair: the rest is zero."""
        return 4 if self.bits == 4 else 8

    @property
    def sign(self) -> int:
        return 1 << (self.bits - 1) if self.signed else 0

    @property
    def bias(self) -> int:
        return (1 << (self.exponent - 1)) - 1


FORMATS = {
    "e4m3": Narrow(4, 3, 0x7E, 0x7F, 0x7F),
    "e5m2": Narrow(5, 2, 0x7B, 0x7F, 0x7D, 0x7C),
    "e2m3": Narrow(2, 3, 0x1F, 0x1F),
    "e3m2": Narrow(3, 2, 0x1F, 0x1F),
    "e2m1": Narrow(2, 1, 0x07, 0x07),
    "ue5m3": Narrow(5, 3, 0xFE, 0xFF, 0xFF, signed=False),
}


def format_of(packed: str) -> Narrow:
    """The format of the elements of a packed type."""
    return FORMATS[packed[: packed.index("x")]]


def upper_and_lower(e: Emitter, op: Op, xs: tuple[str, ...]) -> tuple[str, ...]:
    """The two floats to convert: both sources, or the halves of one that packs two f16 or bf16.

    ``.scaled::n1::ue8m0`` makes zeros of subnormal ones.
    """
    t = {"f32": "float", "f16x2": "half", "bf16x2": "bfloat"}[op.mods["atype"]]
    if t != "float":
        halves = (e.bin("lshr", "i32", xs[0], e.int(32, 16)), xs[0])
        xs = tuple(from_bits(e, t, e.cast("trunc", "i32", half, "i16")) for half in halves)
    if op.mods.get("scaled") == ONE_SCALE:
        xs = tuple(flush(e, t, x) for x in xs)
    return xs if t == "float" else tuple(widen(e, t, x) for x in xs)


# ---------------------------------------------------------------- scale factors


def scales_of(e: Emitter, op: Op, xs: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The sources without the one that has scale factors, and the factors of the upper and the lower element, each the
    exponent of ue8m0 in an i32; none if there are none."""
    if "scaled" not in op.mods:
        return xs, ()
    *values, packed = xs
    if op.mods["scaled"] == ONE_SCALE:
        return tuple(values), (e.cast("zext", "i8", packed, "i32"),) * 2
    wide = e.cast("zext", "i16", packed, "i32")
    return tuple(values), (e.bin("lshr", "i32", wide, e.int(32, 8)), e.bin("and", "i32", wide, e.int(32, 0xFF)))


def scaled(e: Emitter, x: str, exponent: str, divided: bool = False) -> str:
    """A float times 2**(exponent - 127), or divided by it; NaN if the factor is."""
    power = e.bin("sub", "i32", e.int(32, SCALE_NAN - 1), exponent) if divided else exponent
    subnormal = e.icmp("eq", "i32", power, e.int(32, 0))  # 2**-127
    bits = e.select(subnormal, "i32", e.int(32, 0x400000), e.bin("shl", "i32", power, e.int(32, 23)))
    product = e.bin("fmul", "float", x, from_bits(e, "float", bits))
    nan = from_bits(e, "float", e.int(32, MAGNITUDE))
    return e.select(e.icmp("eq", "i32", exponent, e.int(32, SCALE_NAN)), "float", nan, product)


def joined(e: Emitter, op: Op, fields: Iterable[str], size: int) -> str:
    """Fields of ``size`` bits, each in an i32, the uppermost first, as a value of the destination's type."""
    packed, *lower = fields
    for field in lower:
        packed = e.bin("or", "i32", e.bin("shl", "i32", packed, e.int(32, size)), field)
    return e.cast("trunc", "i32", packed, op.dst_types[0].llvm)


def fields(e: Emitter, op: Op, x: str, size: int) -> tuple[str, str]:
    """The upper and the lower field of a packed source, each in an i32."""
    kind = op.type_of("a")
    assert kind is not None
    wide = e.cast("zext", kind.llvm, x, "i32")
    return e.bin("lshr", "i32", wide, e.int(32, size)), e.bin("and", "i32", wide, e.int(32, (1 << size) - 1))


# ---------------------------------------------------------------- floats of four to eight bits


def _round_normal(e: Emitter, f: Narrow, magnitude: str, mode: str) -> str:
    """By adding to what is cut off: all ones to round up, and to nearest even half or just less, as the last bit kept says."""
    cut = 23 - f.mantissa
    if mode == "rn":
        odd = e.bin("and", "i32", e.bin("lshr", "i32", magnitude, e.int(32, cut)), e.int(32, 1))
        magnitude = e.bin("add", "i32", e.bin("add", "i32", magnitude, odd), e.int(32, (1 << (cut - 1)) - 1))
    elif mode == "rp":
        magnitude = e.bin("add", "i32", magnitude, e.int(32, (1 << cut) - 1))
    return e.bin("sub", "i32", e.bin("lshr", "i32", magnitude, e.int(32, cut)), e.int(32, (127 - f.bias) << f.mantissa))


def _round_subnormal(e: Emitter, f: Narrow, magnitude: str, mode: str) -> str:
    """To nearest the processor rounds when a number is added whose unit in the last place is that of the subnormals."""
    if mode != "rn":
        return _cut_subnormal(e, f, magnitude, mode)
    exponent = 1 - f.bias - f.mantissa + 23
    total = e.bin("fadd", "float", from_bits(e, "float", magnitude), e.f32(2.0**exponent))
    return e.bin("sub", "i32", to_bits(e, "float", total), e.int(32, (exponent + 127) << 23))


def _cut_subnormal(e: Emitter, f: Narrow, magnitude: str, mode: str) -> str:
    """The whole units of the subnormals, of the least normal number at most."""
    least = e.intrinsic("umin", "i32", magnitude, e.int(32, (128 - f.bias) << 23))
    units = e.bin("fmul", "float", from_bits(e, "float", least), e.f32(2.0 ** (f.bias - 1 + f.mantissa)))
    return e.cast("fptoui", "float", e.intrinsic("ceil", "float", units) if mode == "rp" else units, "i32")


def narrow(e: Emitter, op: Op, f: Narrow, x: str, unscaled: str) -> str:
    """A float as a pattern of ``f`` in an i32, rounded as the op says.

    What is rounded to more than the largest number is that with ``.satfinite``, else NaN, as infinity is.  ``unscaled`` is
    the float before it was divided, which tells infinity from a quotient that is too large.
    """
    bits, mode = to_bits(e, "float", x), op.mods["round"]
    magnitude = e.bin("and", "i32", bits, e.int(32, MAGNITUDE))
    is_normal = e.icmp("uge", "i32", magnitude, e.int(32, (128 - f.bias) << 23))
    rounded = e.select(is_normal, "i32", _round_normal(e, f, magnitude, mode), _round_subnormal(e, f, magnitude, mode))
    limited = "satfinite" in op.mods
    limit = f.largest if limited or mode == "rz" else f.nan
    result = e.intrinsic("umin", "i32", rounded, e.int(32, limit))
    if f.signed:
        negative = e.icmp("slt", "i32", bits, e.int(32, 0))
        signed = e.int(32, 0) if "relu" in op.mods else e.bin("or", "i32", result, e.int(32, f.sign))
        result = e.select(negative, "i32", signed, result)
    result = without_negative_zero(e, op, "i32", result, f.sign)
    invalid = is_nan(e, "float", x)
    if not limited:
        source = e.bin("and", "i32", to_bits(e, "float", unscaled), e.int(32, MAGNITUDE))
        invalid = e.bin("or", "i1", invalid, e.icmp("eq", "i32", source, e.int(32, INFINITY)))
    return e.select(invalid, "i32", e.int(32, f.nan), result)


@elementwise("cvt.to_narrow", size=8)
def to_narrow(e: Emitter, op: Op, *xs: str) -> str:
    """Two f32, or an f16x2 or bf16x2, to a pair: the first (or upper) in the upper field."""
    f = format_of(op.mods["dtype"])
    values, scales = scales_of(e, op, xs)
    pair = upper_and_lower(e, op, values)
    divided = [scaled(e, x, scale, divided=True) for x, scale in zip(pair, scales, strict=True)] if scales else pair
    return joined(e, op, (narrow(e, op, f, x, source) for x, source in zip(divided, pair, strict=True)), f.container)


def _half_of(e: Emitter, value: str) -> str:
    """The pattern of the f16 that equals a float, in an i32."""
    return e.cast("zext", "i16", to_bits(e, "half", convert_float(e, value, "float", "half", "rn")), "i32")


def _brain_of(e: Emitter, value: str) -> str:
    """The pattern of the bf16 that equals a float."""
    return e.bin("lshr", "i32", to_bits(e, "float", value), e.int(32, 16))


def rounded_brain(e: Emitter, value: str) -> str:
    """The pattern of the bf16 next to a float, in an i32."""
    return e.cast("zext", "i16", to_bits(e, "bfloat", convert_float(e, value, "float", "bfloat", "rn")), "i32")


WIDER = {"f16x2": _half_of, "bf16x2": _brain_of}
BRAIN_LARGEST = 0x7F7F


def _wider(e: Emitter, op: Op, f: Narrow, x: str, scale: str) -> str:
    """A pattern of ``f`` as the f16 or bf16 it equals, in an i32. A power of two makes up for the bias, of subnormals too."""
    magnitude = e.bin("and", "i32", x, e.int(32, (1 << (f.bits - f.signed)) - 1))
    placed = from_bits(e, "float", e.bin("shl", "i32", magnitude, e.int(32, 23 - f.mantissa)))
    value = e.bin("fmul", "float", placed, e.f32(2.0 ** (127 - f.bias)))
    if f.infinity is not None and op.mods["dtype"] == "bf16x2":  # what stands for it is too large for f16 only
        infinite = e.icmp("eq", "i32", magnitude, e.int(32, f.infinity))
        value = e.select(infinite, "float", from_bits(e, "float", e.int(32, INFINITY)), value)
    half = rounded_brain(e, scaled(e, value, scale)) if scale else WIDER[op.mods["dtype"]](e, value)
    return _signed_half(e, op, f, x, magnitude, half, scale)


def _signed_half(e: Emitter, op: Op, f: Narrow, x: str, magnitude: str, half: str, scale: str) -> str:
    """With the sign of the pattern ``x``, unless it is NaN."""
    result = e.intrinsic("umin", "i32", half, e.int(32, BRAIN_LARGEST)) if "satfinite" in op.mods else half
    if f.signed:
        sign = e.bin("shl", "i32", e.bin("and", "i32", x, e.int(32, f.sign)), e.int(32, 16 - f.bits))
        positive = e.icmp("eq", "i32", sign, e.int(32, 0))
        relu = "relu" in op.mods
        result = e.select(positive, "i32", result, e.int(32, 0)) if relu else e.bin("or", "i32", result, sign)
    invalid = [e.icmp("uge", "i32", magnitude, e.int(32, f.least_nan))] if f.least_nan is not None else []
    invalid += [e.icmp("eq", "i32", scale, e.int(32, SCALE_NAN))] if scale else []
    for condition in invalid:
        result = e.select(condition, "i32", e.int(32, CANONICAL_16), result)
    return result


@elementwise("cvt.from_narrow", size=8)
def from_narrow(e: Emitter, op: Op, *xs: str) -> str:
    """A pair to f16x2, or to bf16x2, whose elements may be scaled."""
    f = format_of(op.mods["atype"])
    (packed,), scales = scales_of(e, op, xs)
    pair = zip(fields(e, op, packed, f.container), scales or ("", ""), strict=True)
    return joined(e, op, (_wider(e, op, f, field, scale) for field, scale in pair), 16)


# ---------------------------------------------------------------- ue8m0: powers of two


def _scale(e: Emitter, x: str, mode: str, finite: bool) -> str:
    """The exponent field of the magnitude, rounded down (``rz``) or up (``rp``): 0 is 2**-127, 255 is NaN."""
    magnitude = e.bin("and", "i32", to_bits(e, "float", x), e.int(32, MAGNITUDE))
    exponent = e.bin("lshr", "i32", magnitude, e.int(32, 23))
    if mode == "rp":
        # 2**-127 is a subnormal float, with one bit less below it.
        is_normal = e.icmp("ne", "i32", exponent, e.int(32, 0))
        below = e.select(is_normal, "i32", e.int(32, 0x7FFFFF), e.int(32, 0x3FFFFF))
        exponent = e.bin("lshr", "i32", e.bin("add", "i32", magnitude, below), e.int(32, 23))
    if finite:
        exponent = e.intrinsic("umin", "i32", exponent, e.int(32, SCALE_NAN - 1))
    return e.select(is_nan(e, "float", x), "i32", e.int(32, SCALE_NAN), exponent)


@elementwise("cvt.to_scale", size=8)
def to_scale(e: Emitter, op: Op, *xs: str) -> str:
    """Two f32, or two bf16 in one register, to ue8m0x2. The sign is dropped."""
    mode, finite = op.mods["round"], "satfinite" in op.mods
    return joined(e, op, (_scale(e, x, mode, finite) for x in upper_and_lower(e, op, xs)), 8)


@elementwise("cvt.from_scale", size=8)
def from_scale(e: Emitter, op: Op, x: str) -> str:
    """ue8m0x2 to bf16x2: the exponent field, but 2**-127 is subnormal."""
    halves = []
    for field in fields(e, op, x, 8):
        bits = e.bin("shl", "i32", field, e.int(32, 7))
        bits = e.select(e.icmp("eq", "i32", field, e.int(32, 0)), "i32", e.int(32, 0x40), bits)
        halves.append(e.select(e.icmp("eq", "i32", field, e.int(32, SCALE_NAN)), "i32", e.int(32, CANONICAL_16), bits))
    return joined(e, op, halves, 16)
