"""``cvt`` to and from the float formats of eight bits and fewer (PTX ISA 9.7.9)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ptxemu.ir.ops import Op
from ptxemu.lower.core.emit import Emitter, elementwise
from ptxemu.lower.core.float_bits import from_bits, is_nan, to_bits
from ptxemu.lower.values.float_formats import CANONICAL_16, convert_float, widen

MAGNITUDE = 0x7FFFFFFF  # of f32
SCALE_NAN = 0xFF


@dataclass(frozen=True)
class Narrow:
    """A format: ``largest`` finite pattern, what NaN becomes; the least that is NaN, and infinity, where there are such."""

    exponent: int
    mantissa: int
    largest: int
    nan: int
    least_nan: int | None = None
    infinity: int | None = None

    @property
    def bits(self) -> int:
        return 1 + self.exponent + self.mantissa

    @property
    def container(self) -> int:
        """Bits of the field that holds one element of a pair: the rest is zero."""
        return 4 if self.bits == 4 else 8

    @property
    def sign(self) -> int:
        return 1 << (self.bits - 1)

    @property
    def bias(self) -> int:
        return (1 << (self.exponent - 1)) - 1


FORMATS = {
    "e4m3": Narrow(4, 3, 0x7E, 0x7F, 0x7F),
    "e5m2": Narrow(5, 2, 0x7B, 0x7F, 0x7D, 0x7C),
    "e2m3": Narrow(2, 3, 0x1F, 0x1F),
    "e3m2": Narrow(3, 2, 0x1F, 0x1F),
    "e2m1": Narrow(2, 1, 0x07, 0x07),
}


def format_of(packed: str) -> Narrow:
    """The format of the elements of a packed type."""
    return FORMATS[packed[: packed.index("x")]]


def _upper_and_lower(e: Emitter, t: str, xs: tuple[str, ...]) -> tuple[str, ...]:
    """The two floats to convert: both sources, or the halves of one that packs two values of LLVM type ``t``."""
    if len(xs) == 2:
        return xs
    halves = (e.bin("lshr", "i32", xs[0], e.int(32, 16)), xs[0])
    return tuple(widen(e, t, from_bits(e, t, e.cast("trunc", "i32", half, "i16"))) for half in halves)


def joined(e: Emitter, op: Op, fields: Iterable[str], size: int) -> str:
    """Fields of ``size`` bits, each in an i32, the uppermost first, as a value of the destination's type."""
    packed, *lower = fields
    for field in lower:
        packed = e.bin("or", "i32", e.bin("shl", "i32", packed, e.int(32, size)), field)
    return e.cast("trunc", "i32", packed, op.dst_types[0].llvm)


def _fields(e: Emitter, op: Op, x: str, size: int) -> tuple[str, str]:
    """The upper and the lower field of a packed source, each in an i32."""
    kind = op.type_of("a")
    assert kind is not None
    wide = e.cast("zext", kind.llvm, x, "i32")
    return e.bin("lshr", "i32", wide, e.int(32, size)), e.bin("and", "i32", wide, e.int(32, (1 << size) - 1))


# ---------------------------------------------------------------- floats of four to eight bits


def _round_normal(e: Emitter, f: Narrow, magnitude: str) -> str:
    """To nearest even by adding just less than half of what is cut off, or half if the last bit kept is set."""
    cut = 23 - f.mantissa
    odd = e.bin("and", "i32", e.bin("lshr", "i32", magnitude, e.int(32, cut)), e.int(32, 1))
    carried = e.bin("add", "i32", e.bin("add", "i32", magnitude, odd), e.int(32, (1 << (cut - 1)) - 1))
    return e.bin("sub", "i32", e.bin("lshr", "i32", carried, e.int(32, cut)), e.int(32, (127 - f.bias) << f.mantissa))


def _round_subnormal(e: Emitter, f: Narrow, magnitude: str) -> str:
    """The processor rounds when a number is added whose unit in the last place is that of the subnormals."""
    exponent = 1 - f.bias - f.mantissa + 23
    total = e.bin("fadd", "float", from_bits(e, "float", magnitude), e.f32(2.0**exponent))
    return e.bin("sub", "i32", to_bits(e, "float", total), e.int(32, (exponent + 127) << 23))


def narrow(e: Emitter, f: Narrow, x: str, relu: bool) -> str:
    """A float as a pattern of ``f`` in an i32: to nearest even, what is too large as the largest number."""
    bits = to_bits(e, "float", x)
    magnitude = e.bin("and", "i32", bits, e.int(32, MAGNITUDE))
    is_normal = e.icmp("uge", "i32", magnitude, e.int(32, (128 - f.bias) << 23))
    rounded = e.select(is_normal, "i32", _round_normal(e, f, magnitude), _round_subnormal(e, f, magnitude))
    result = e.intrinsic("umin", "i32", rounded, e.int(32, f.largest))
    negative = e.icmp("slt", "i32", bits, e.int(32, 0))
    signed = e.int(32, 0) if relu else e.bin("or", "i32", result, e.int(32, f.sign))
    result = e.select(negative, "i32", signed, result)
    return e.select(is_nan(e, "float", x), "i32", e.int(32, f.nan), result)


@elementwise("cvt.to_narrow", size=8)
def to_narrow(e: Emitter, op: Op, *xs: str) -> str:
    """Two f32, or an f16x2 or bf16x2, to a pair: the first (or upper) in the upper field."""
    f = format_of(op.mods["dtype"])
    source = "bfloat" if op.mods["atype"] == "bf16x2" else "half"
    pair = (narrow(e, f, x, "relu" in op.mods) for x in _upper_and_lower(e, source, xs))
    return joined(e, op, pair, f.container)


def _half_of(e: Emitter, value: str) -> str:
    """The pattern of the f16 that equals a float, in an i32."""
    return e.cast("zext", "i16", to_bits(e, "half", convert_float(e, value, "float", "half", "rn")), "i32")


def _brain_of(e: Emitter, value: str) -> str:
    """The pattern of the bf16 that equals a float."""
    return e.bin("lshr", "i32", to_bits(e, "float", value), e.int(32, 16))


WIDER = {"f16x2": _half_of, "bf16x2": _brain_of}
BRAIN_INFINITY = 0x7F80


def _wider(e: Emitter, f: Narrow, target: str, x: str, relu: bool) -> str:
    """A pattern of ``f`` as the f16 or bf16 it equals, in an i32. A power of two makes up for the bias, of subnormals too."""
    magnitude = e.bin("and", "i32", x, e.int(32, f.sign - 1))
    placed = from_bits(e, "float", e.bin("shl", "i32", magnitude, e.int(32, 23 - f.mantissa)))
    value = e.bin("fmul", "float", placed, e.f32(2.0 ** (127 - f.bias)))
    sign = e.bin("shl", "i32", e.bin("and", "i32", x, e.int(32, f.sign)), e.int(32, 16 - f.bits))
    half = WIDER[target](e, value)
    if f.infinity is not None and target == "bf16x2":  # what stands for it is too large for f16 only
        half = e.select(e.icmp("eq", "i32", magnitude, e.int(32, f.infinity)), "i32", e.int(32, BRAIN_INFINITY), half)
    if relu:
        result = e.select(e.icmp("eq", "i32", sign, e.int(32, 0)), "i32", half, e.int(32, 0))
    else:
        result = e.bin("or", "i32", half, sign)
    if f.least_nan is None:
        return result
    invalid = e.icmp("uge", "i32", magnitude, e.int(32, f.least_nan))
    return e.select(invalid, "i32", e.int(32, CANONICAL_16), result)


@elementwise("cvt.from_narrow", size=8)
def from_narrow(e: Emitter, op: Op, x: str) -> str:
    f = format_of(op.mods["atype"])
    target, relu = op.mods["dtype"], "relu" in op.mods
    halves = (_wider(e, f, target, field, relu) for field in _fields(e, op, x, f.container))
    return joined(e, op, halves, 16)


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
    return joined(e, op, (_scale(e, x, mode, finite) for x in _upper_and_lower(e, "bfloat", xs)), 8)


@elementwise("cvt.from_scale", size=8)
def from_scale(e: Emitter, op: Op, x: str) -> str:
    """ue8m0x2 to bf16x2: the exponent field, but 2**-127 is subnormal."""
    halves = []
    for field in _fields(e, op, x, 8):
        bits = e.bin("shl", "i32", field, e.int(32, 7))
        bits = e.select(e.icmp("eq", "i32", field, e.int(32, 0)), "i32", e.int(32, 0x40), bits)
        halves.append(e.select(e.icmp("eq", "i32", field, e.int(32, SCALE_NAN)), "i32", e.int(32, CANONICAL_16), bits))
    return joined(e, op, halves, 16)
