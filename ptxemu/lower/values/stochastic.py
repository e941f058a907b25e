"""``cvt.rs``: f32 rounded by random bits (PTX ISA 9.7.9; docs/semantics.md, "Stochastic rounding")."""

from __future__ import annotations

from ptxemu.ir.ops import Op
from ptxemu.lower.core.emit import Emitter, elementwise
from ptxemu.lower.core.float_bits import from_bits, is_nan, to_bits
from ptxemu.lower.values.float_formats import CANONICAL_16
from ptxemu.lower.values.fp8 import MAGNITUDE, Narrow, format_of, joined

HALF = Narrow(5, 10, 0x7BFF, CANONICAL_16, infinity=0x7C00)
BRAIN = Narrow(8, 7, 0x7F7F, CANONICAL_16, infinity=0x7F80)
HALF_RANDOM = 13  # random bits for each f16, as many as a normal result discards
RANDOM = 16  # for each other element


def _rounded(e: Emitter, f: Narrow, magnitude: str, random: str, width: int) -> str:
    """The carry out of the discarded bits plus the random ones, which are the upper ``width`` of as many, rounds up.

    A subnormal result discards more than a normal one: the random bits are added to the first ``width`` of those.
    """
    discarded = 23 - f.mantissa
    added = e.bin("shl", "i32", random, e.int(32, discarded - width)) if discarded > width else random
    carried = e.bin("lshr", "i32", e.bin("add", "i32", magnitude, added), e.int(32, discarded))
    if f is BRAIN:  # its subnormals are those of f32
        return carried
    normal = e.bin("sub", "i32", carried, e.int(32, (127 - f.bias) << f.mantissa))
    least = (128 - f.bias) << 23  # normal number
    tiny = from_bits(e, "float", e.intrinsic("umin", "i32", magnitude, e.int(32, least)))
    scale = e.f32(2.0 ** (f.bias - 1 + f.mantissa + width))
    steps = e.cast("fptoui", "float", e.bin("fmul", "float", tiny, scale), "i32")
    subnormal = e.bin("lshr", "i32", e.bin("add", "i32", steps, random), e.int(32, width))
    return e.select(e.icmp("ult", "i32", magnitude, e.int(32, least)), "i32", subnormal, normal)


def _element(e: Emitter, op: Op, f: Narrow, x: str, random: str) -> str:
    """A float as a pattern of ``f`` in an i32."""
    bits = to_bits(e, "float", x)
    limit = f.largest if "satfinite" in op.mods or f.infinity is None else f.infinity
    rounded = _rounded(e, f, e.bin("and", "i32", bits, e.int(32, MAGNITUDE)), random, HALF_RANDOM if f is HALF else RANDOM)
    rounded = e.intrinsic("umin", "i32", rounded, e.int(32, limit))
    signed = e.int(32, 0) if "relu" in op.mods else e.bin("or", "i32", rounded, e.int(32, f.sign))
    result = e.select(e.icmp("slt", "i32", bits, e.int(32, 0)), "i32", signed, rounded)
    return e.select(is_nan(e, "float", x), "i32", e.int(32, f.nan), result)


@elementwise("cvt.stochastic", size=8)
def stochastic(e: Emitter, op: Op, a: str, b: str, random: str) -> str:
    """Two f32 to f16x2 or bf16x2; each element takes its half of the random bits."""
    f = HALF if op.mods["dtype"] == "f16x2" else BRAIN
    width = HALF_RANDOM if f is HALF else RANDOM
    halves = (e.bin("lshr", "i32", random, e.int(32, 16)), random)
    lowest = (e.bin("and", "i32", half, e.int(32, (1 << width) - 1)) for half in halves)
    return joined(e, op, (_element(e, op, f, x, field) for x, field in zip((a, b), lowest, strict=True)), 16)


def _quarters(e: Emitter, f: Narrow, random: str) -> tuple[str, ...]:
    """The random bits of four elements: two share sixteen, of which one takes the last first.

    These are halves of the operand, or for elements of four bits the bytes 3 and 1, and 2 and 0.
    """
    if f.bits == 4:
        outer = e.bin("and", "i32", random, e.int(32, 0xFF0000FF))
        upward = e.bin("shl", "i32", e.bin("and", "i32", random, e.int(32, 0x0000FF00)), e.int(32, 8))
        downward = e.bin("and", "i32", e.bin("lshr", "i32", random, e.int(32, 8)), e.int(32, 0x0000FF00))
        random = e.bin("or", "i32", outer, e.bin("or", "i32", upward, downward))
    reverse = e.intrinsic("bitreverse", "i32", random)
    forward, backward = (
        (e.bin("lshr", "i32", word, e.int(32, 16)), e.bin("and", "i32", word, e.int(32, 0xFFFF))) for word in (random, reverse)
    )
    return backward[1], forward[0], backward[0], forward[1]


@elementwise("cvt.stochastic_quad", size=16)
def stochastic_quad(e: Emitter, op: Op, *xs: str) -> str:
    """Four f32 to formats of eight bits and fewer, the first in the uppermost field."""
    f = format_of(op.mods["dtype"])
    *floats, random = xs
    fields = zip(floats, _quarters(e, f, random), strict=True)
    return joined(e, op, (_element(e, op, f, x, field) for x, field in fields), f.container)
