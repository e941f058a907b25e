"""LLVM spellings of constants."""

from __future__ import annotations

from collections.abc import Sequence

from ptxemu.ir.types import ScalarType


def literal(bits: int, kind: ScalarType) -> str:
    """The LLVM scalar constant of type ``kind.llvm`` with the bit pattern ``bits``."""
    if kind.llvm == "i1":
        return "true" if bits & 1 else "false"
    if kind.llvm == "float":
        return f"0x{_as_double(bits & 0xFFFFFFFF):016X}"
    if kind.llvm == "double":
        return f"0x{bits & (1 << 64) - 1:016X}"
    if kind.llvm == "half":
        return f"0xH{bits & 0xFFFF:04X}"
    return str(bits & (1 << kind.bits) - 1)


def _as_double(bits: int) -> int:
    """The bits of the double equal to the float ``bits`` (LLVM spells floats so); NaN payloads are kept."""
    sign, exponent, fraction = bits >> 31, bits >> 23 & 0xFF, bits & 0x7FFFFF
    if exponent == 0xFF:
        exponent64 = 0x7FF
    elif exponent:
        exponent64 = exponent - 127 + 1023
    elif fraction:
        shift = 24 - fraction.bit_length()
        fraction = fraction << shift & 0x7FFFFF
        exponent64 = 1 - shift - 127 + 1023
    else:
        exponent64 = 0
    return sign << 63 | exponent64 << 52 | fraction << 29


def vector_literal(t: str, values: Sequence[int]) -> str:
    """A constant vector of integers of LLVM type ``t`` (wrapped to its width)."""
    width = int(t[1:])
    items = (f"{t} {'true' if v & 1 else 'false'}" if width == 1 else f"{t} {v % (1 << width)}" for v in values)
    return "<" + ", ".join(items) + ">"


def offsets_literal(offsets: Sequence[int], t: str) -> str:
    if not any(offsets):
        return "zeroinitializer"
    return vector_literal(t, offsets)


def array(t: str, items: Sequence[object]) -> str:
    """The type, value and alignment of constant data."""
    return f"[{len(items)} x {t}] [{', '.join(f'{t} {item}' for item in items)}], align 8"
