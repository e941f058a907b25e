"""Operands of vISA: raw operands, regions and immediates, channel by channel (vISA "Operands")."""

from __future__ import annotations

import re
import struct

import numpy as np
from msgspec import Struct

from ptxemu.dialects.build import Builder, Guard
from ptxemu.dialects.text import TextError, integer
from ptxemu.dialects.visa.ast import Number, Operand, Region
from ptxemu.dialects.visa.variables import ELEMENT_TYPES, GRF, NULL_NAMES, General, Scope, read, write
from ptxemu.ir.ops import Reg
from ptxemu.ir.types import TYPES
from ptxemu.syntax.ast import Name

NULL = re.compile(rf"(?:{'|'.join(map(re.escape, NULL_NAMES))})(?:\.0)?")
RAW = re.compile(r"(.+)\.([0-9]{1,6})")
LITERAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)", re.ASCII)
PACKED = ("uv", "v", "vf")
SIGNED = ("d", "w", "b", "q")
FLOATS = ("hf", "f", "df")
UNMODIFIED = ("q", "uq", "hf", "df")


class Raw(Struct, frozen=True):
    """A raw operand: element n is the dword at ``byte`` + 4 n of a variable."""

    variable: General
    byte: int

    def byte_of(self, channel: int) -> int:
        return self.byte + 4 * channel


def raw(scope: Scope, operand: Operand, size: int) -> Raw | None:
    """The operand of a message, of ``size`` dwords; None for the null variable."""
    if isinstance(operand, Name) and NULL.fullmatch(operand.text):
        return None
    found = RAW.fullmatch(operand.text) if isinstance(operand, Name) else None
    if found is None or not isinstance(operand, Name):
        raise TextError("expected a raw operand, such as V40.0, or the null variable V0", operand.pos, operand.end)
    variable = scope.general(Name(found[1], operand.pos, operand.end))
    byte = int(found[2])
    if byte + 4 * size > variable.bytes:
        text = f"{size} dwords from byte {byte} on do not fit '{variable.name}', which has {variable.bytes} bytes"
        raise TextError(text, operand.pos, operand.end)
    return Raw(variable, byte)


# ---------------------------------------------------------------- regions


class Elements(Struct, frozen=True):
    """A region: the byte of each channel's element."""

    variable: General
    bytes: tuple[int, ...]
    modifier: str = ""

    @property
    def type(self) -> str:
        return self.variable.type

    def value(self, body: Builder, channel: int) -> Reg | int:
        """The element, extended to 32 bits as its type says, and the source modifier applied."""
        kind, size = self.type, self.variable.size
        value = read(body, self.variable, self.bytes[channel], size)
        if size < 4 and kind in SIGNED:
            wide = body.temp("b32")
            body.emit("bfe.s32", wide, value, 0, 8 * size)
            value = wide
        return _modified(body, value, self.modifier, kind) if self.modifier else value

    def assign(self, body: Builder, channel: int, value: Reg, guard: Guard | None) -> None:
        write(body, self.variable, self.bytes[channel], self.variable.size, value, guard)

    def touches(self, other: Elements) -> bool:
        """Whether the two share registers in other places than the same ones."""
        return self.variable.words == other.variable.words and (self.variable, self.bytes) != (other.variable, other.bytes)


class Constant(Struct, frozen=True):
    """An immediate: the 32 bits of each channel."""

    type: str
    values: tuple[int, ...]

    def value(self, body: Builder, channel: int) -> Reg | int:
        return self.values[channel % len(self.values)]


Source = Elements | Constant


def region(scope: Scope, operand: Operand, size: int, *, target: bool = False) -> Elements:
    """``V40(r,c)<h>`` as a target, ``V40(r,c)<v;w,h>`` as a source; sources without strides are ``<1;1,0>``."""
    if not isinstance(operand, Region) or operand.row is None:
        what = "<1>" if target else "<1;1,0>"
        raise TextError(f"expected an operand with a region, such as V40(0,0){what}", operand.pos, operand.end)
    variable = scope.general(operand.name)
    if target and operand.modifier:
        raise TextError("a target has no modifier", operand.pos, operand.end)
    if target:
        places = [channel * _stride(operand) for channel in range(size)]
    else:
        vertical, width, horizontal = operand.strides or (1, 1, 0)
        places = [channel // width * vertical + channel % width * horizontal for channel in range(size)]
    found = tuple(operand.row * GRF + (operand.column + place) * variable.size for place in places)
    if min(found) < 0 or max(found) + variable.size > variable.bytes:
        text = f"the region leaves '{variable.name}', which has {variable.count} elements of type {variable.type}"
        raise TextError(text, operand.pos, operand.end)
    return Elements(variable, found, operand.modifier)


def _stride(operand: Region) -> int:
    return operand.strides[0] if operand.strides else 1


def check_region(operand: Operand, *, target: bool) -> None:
    """Raise TextError unless the strides are ones that a region may have."""
    if not isinstance(operand, Region) or not operand.strides:
        return
    if len(operand.strides) != (1 if target else 3):
        words = "a target has one stride, <h>" if target else "a source has three strides, <v;w,h>"
        raise TextError(words, operand.name.end, operand.end)
    limits = [(1, 2, 4)] if target else [(0, 1, 2, 4, 8, 16, 32), (1, 2, 4, 8, 16), (0, 1, 2, 4)]
    for stride, values in zip(operand.strides, limits, strict=True):
        if stride not in values:
            raise TextError(f"a stride is {stride}, not one of {', '.join(map(str, values))}", operand.name.end, operand.end)


def source(scope: Scope, operand: Operand, size: int) -> Source:
    """A region or an immediate."""
    if isinstance(operand, Number):
        return immediate(operand)
    check_region(operand, target=False)
    found = region(scope, operand, size)
    if found.modifier and found.type in UNMODIFIED:
        raise TextError(f"an operand of type {found.type} has no modifier", operand.pos, operand.end)
    return found


def target(scope: Scope, operand: Operand, size: int) -> Elements:
    check_region(operand, target=True)
    return region(scope, operand, size, target=True)


# ---------------------------------------------------------------- immediates


def immediate(number: Number) -> Constant:
    """``0x5:ud``, ``1.5:f``, ``0x76543210:uv``."""
    kind = number.type
    if kind not in (*ELEMENT_TYPES, *PACKED):
        words = f"unknown type '{kind}'" if kind else "an immediate has a type"
        raise TextError(f"{words}: one of {', '.join((*ELEMENT_TYPES, *PACKED))}", number.pos, number.end)
    if kind in FLOATS and not number.text.lower().lstrip("+-").startswith("0x"):
        return Constant(kind, (_float_bits(number),))
    value = integer(number.text, number.pos).value
    bits = 32 if kind in PACKED else TYPES[ELEMENT_TYPES[kind]].bits
    if not -(1 << bits - 1) <= value < 1 << bits:
        raise TextError(f"the number does not fit type {kind}", number.pos, number.end)
    return Constant(*_unpacked(kind, value & 0xFFFFFFFF)) if kind in PACKED else Constant(kind, (_extended(kind, value, bits),))


def _extended(kind: str, value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    if kind in SIGNED and value >> bits - 1:
        value -= 1 << bits
    return value & ((1 << max(bits, 32)) - 1)


def _float_bits(number: Number) -> int:
    if not LITERAL.fullmatch(number.text):
        raise TextError(f"invalid number '{number.text[:40]}'", number.pos, number.end)
    value = float(number.text)
    with np.errstate(over="ignore"):
        if number.type == "hf":
            return int(np.float16(value).view(np.uint16))
        return int(np.float32(value).view(np.uint32)) if number.type == "f" else struct.unpack("<Q", struct.pack("<d", value))[0]


def _unpacked(kind: str, value: int) -> tuple[str, tuple[int, ...]]:
    """Packed vectors: eight nibbles, or four restricted floats (sign, three bits of exponent, four of fraction)."""
    if kind == "vf":
        return "f", tuple(_restricted_float(value >> 8 * index & 0xFF) for index in range(4))
    nibbles = [value >> 4 * index & 15 for index in range(8)]
    if kind == "uv":
        return "uw", tuple(nibbles)
    return "w", tuple((nibble - 16 if nibble & 8 else nibble) & 0xFFFFFFFF for nibble in nibbles)


def _restricted_float(byte: int) -> int:
    magnitude = (byte >> 4 & 7) + 124 << 23 | (byte & 15) << 19 if byte & 0x7F else 0
    return byte >> 7 << 31 | magnitude


def _modified(body: Builder, value: Reg, modifier: str, kind: str) -> Reg:
    """``(-)``, ``(abs)``, ``(-abs)`` and ``(~)``; unsigned numbers are their own absolute values."""
    form = "f32" if kind == "f" else "s32"
    for word, text in (("abs", f"abs.{form}"), ("-", f"neg.{form}"), ("~", "not.b32")):
        if word in modifier and (word, kind) != ("abs", "ud"):
            before, value = value, body.temp("b32")
            body.emit(text, value, before)
    return value
