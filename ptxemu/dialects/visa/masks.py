"""Which channels of an instruction are enabled (vISA "Execution model": execution mask, mask offset, predication)."""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct

from ptxemu.dialects import build
from ptxemu.dialects.build import Builder
from ptxemu.dialects.text import TextError
from ptxemu.dialects.visa.ast import Execution, Guard
from ptxemu.dialects.visa.grammar import whole
from ptxemu.dialects.visa.variables import CHANNELS, Scope
from ptxemu.ir.ops import Reg
from ptxemu.syntax.ast import Name

MASK = re.compile(r"M([1-8])(_NM)?", re.IGNORECASE)
SIZES = (1, 2, 4, 8, 16, 32)
Bit = bool | Reg


class Span(Struct, frozen=True):
    """The execution size, and the mask control: the first channel, and whether the execution mask does not count."""

    size: int
    offset: int
    no_mask: bool


def span(execution: Execution, strict: bool, width: int) -> Span:
    """Check ``(M3, 8)``.

    Strict mode takes offsets that are multiples of the size and stay within the kernel's SIMD ``width``.
    """
    size = whole(execution.size)
    if size not in SIZES:
        numbers = ", ".join(map(str, SIZES))
        raise TextError(f"the execution size is {size}, not one of {numbers}", execution.size.pos, execution.size.end)
    if execution.mask is None:
        return Span(size, 0, False)
    mask = execution.mask
    found = MASK.fullmatch("M1_NM" if mask.text.lower() == "nomask" else mask.text)
    if found is None:
        raise TextError(f"'{mask.text}' is not a mask; there are M1 to M8, M1_NM to M8_NM and NoMask", mask.pos, mask.end)
    offset = 4 * (int(found[1]) - 1)
    if strict and offset % size:
        raise TextError(f"'{mask.text}' starts at channel {offset}, not a multiple of {size}", mask.pos, mask.end)
    limit = width if strict else CHANNELS
    if offset + size > limit:
        raise TextError(f"channels {offset} to {offset + size - 1} exceed the {limit} of the kernel", mask.pos, mask.end)
    return Span(size, offset, found[2] is not None)


class Predication(Struct, frozen=True):
    """The predicate of every channel of an instruction: one bit each, or one for all."""

    bits: tuple[Reg, ...]
    inverted: bool

    def bit(self, channel: int) -> Reg:
        return self.bits[channel if len(self.bits) > 1 else 0]


def predication(body: Builder, scope: Scope, guard: Guard, at: Span) -> Predication:
    """``P``, ``P.any``, ``P.all``: the bits from the mask offset on, combined first and inverted then."""
    base, _, word = guard.name.text.partition(".")
    name = Name(base, guard.name.pos, guard.name.pos + len(base))
    if word.lower() not in ("", "any", "all"):
        raise TextError(f"'.{word}' is neither .any nor .all", name.end, guard.name.end)
    found = scope.predicate(name).bits
    bits = found[at.offset : at.offset + at.size]
    if len(bits) < at.size:
        text = f"channels {at.offset} to {at.offset + at.size - 1} exceed the {len(found)} of '{base}'"
        raise TextError(text, name.pos, name.end)
    if not word or at.size == 1:
        return Predication(bits, guard.inverted)
    total = body.temp("pred")
    body.emit("mov.pred", total, bits[0])
    for bit in bits[1:]:
        body.emit("or.pred" if word.lower() == "any" else "and.pred", total, total, bit)
    return Predication((total,), guard.inverted)


def channels(
    body: Builder, mask: Callable[[int], Bit], at: Span, predicate: Predication | None
) -> list[tuple[int, build.Guard | None]]:
    """The channels that may be enabled, ascending, and the guard of each."""
    found: list[tuple[int, build.Guard | None]] = []
    for channel in range(at.size):
        enabled = True if at.no_mask else mask(at.offset + channel)
        if enabled is False:
            continue
        if predicate is None:
            found.append((channel, None if enabled is True else (enabled, False)))
            continue
        bit = predicate.bit(channel)
        if enabled is True:
            found.append((channel, (bit, predicate.inverted)))
            continue
        both = body.temp("pred")
        if predicate.inverted:
            body.emit("not.pred", both, bit)
            body.emit("and.pred", both, both, enabled)
        else:
            body.emit("and.pred", both, bit, enabled)
        found.append((channel, (both, False)))
    return found
