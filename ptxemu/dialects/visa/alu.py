"""Moves and arithmetic of vISA, as PTX instructions on each channel (vISA "Arithmetic", "Logic", "Compare", "Move").

Integers of up to 32 bits are computed as 32 bits and cut to the target's type; floats are f32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from ptxemu.dialects import build
from ptxemu.dialects.build import Builder
from ptxemu.dialects.text import TextError
from ptxemu.dialects.visa.masks import Predication
from ptxemu.dialects.visa.operands import Elements, Source
from ptxemu.dialects.visa.variables import ELEMENT_TYPES
from ptxemu.ir.ops import Reg
from ptxemu.ir.types import TYPES

Spans = Sequence[tuple[int, int]]
Values = list[Reg | int]
Emit = Callable[[Builder, Values, int], Reg]
INTEGERS = ("ub", "b", "uw", "w", "ud", "d")
INTEGER_FORMS = {
    "add": "add.u32", "mul": "mul.lo.u32", "mad": "mad.lo.u32", "and": "and.b32", "or": "or.b32", "xor": "xor.b32",
    "not": "not.b32",
}  # fmt: skip
FLOAT_FORMS = {"add": "add.rn.f32", "mul": "mul.rn.f32", "mad": "fma.rn.f32", "min": "min.f32", "max": "max.f32"}
SHIFTS = {"shl": "shl.b32", "shr": "shr.u32", "asr": "shr.s32"}


class Operation(Struct, frozen=True):
    """How the value of a channel is made, and its bits."""

    emit: Emit


def run(
    body: Builder,
    operation: Operation,
    target: Elements,
    sources: Sequence[Source],
    channels: Sequence[tuple[int, build.Guard | None]],
) -> None:
    """All values are made before the first is written: an instruction reads its sources first."""
    results = []
    overlaps = any(isinstance(item, Elements) and item.touches(target) for item in sources)
    for channel, guard in channels:
        value = operation.emit(body, [item.value(body, channel) for item in sources], channel)
        if overlaps:
            results.append((channel, value, guard))
        else:
            target.assign(body, channel, value, guard)
    for channel, value, guard in results:
        target.assign(body, channel, value, guard)


# ---------------------------------------------------------------- kinds


def operation(opcode: str, target: str, sources: Sequence[Source], spans: Spans) -> Operation:
    """The operation on these types; raises TextError if there is none."""
    if opcode == "mov":
        return _move(target, sources[0], spans)
    types = [target, *(item.type for item in sources)]
    if all(kind == "f" for kind in types) and opcode in FLOAT_FORMS:
        return _ptx(FLOAT_FORMS[opcode])
    for kind, place in zip(types, spans, strict=True):
        if kind not in INTEGERS:
            raise TextError(f"'{opcode}' does not take type {kind} here", *place)
    if opcode in ("min", "max"):
        return _ptx(f"{opcode}.{sign(sources, spans)}")
    return Operation(_shift(SHIFTS[opcode])) if opcode in SHIFTS else _ptx(INTEGER_FORMS[opcode])


def comparison(sources: Sequence[Source], spans: Spans) -> str:
    """The PTX type of a comparison; spans begin with the target's."""
    types = [item.type for item in sources]
    if types == ["f", "f"]:
        return "f32"
    for kind, place in zip(types, spans[1:], strict=True):
        if kind not in INTEGERS:
            raise TextError(f"'cmp' does not take type {kind} here", *place)
    return sign(sources, spans)


def sign(sources: Sequence[Source], spans: Spans) -> str:
    """``u32`` or ``s32``: narrow unsigned types fit both."""
    signed = any(item.type in ("d", "w", "b") for item in sources)
    if signed and any(item.type == "ud" for item in sources):
        index = next(index for index, item in enumerate(sources) if item.type == "ud")
        raise TextError("one source is signed, the other of type ud", *spans[1 + index])
    return "s32" if signed else "u32"


def compare_into(cmp: str, kind: str, target: str, place: tuple[int, int]) -> Operation:
    """All ones where the comparison holds."""
    if target not in INTEGERS:
        raise TextError(f"'cmp' does not take type {target} here", *place)

    def emit(body: Builder, values: Values, channel: int) -> Reg:
        truth, value = body.temp("pred"), body.temp("b32")
        body.emit(f"setp.{cmp}.{kind}", truth, *(reg(body, item) for item in values))
        body.emit("selp.b32", value, 0xFFFFFFFF, 0, truth)
        return value

    return Operation(emit)


def selection(target: str, sources: Sequence[Source], spans: Spans, chosen: Predication) -> Operation:
    types = [target, *(item.type for item in sources)]
    for kind, place in zip(types, spans, strict=True):
        if kind not in INTEGERS and not all(other == "f" for other in types):
            raise TextError(f"'sel' does not take type {kind} here", *place)

    def emit(body: Builder, values: Values, channel: int) -> Reg:
        value = body.temp("b32")
        first, second = reversed(values) if chosen.inverted else values
        body.emit("selp.b32", value, first, second, chosen.bit(channel))
        return value

    return Operation(emit)


def check_integer(given: Source, place: tuple[int, int]) -> None:
    if given.type not in INTEGERS:
        raise TextError(f"expected an integer, not type {given.type}", *place)


def is_scalar(given: Source) -> bool:
    """Whether all channels read one element."""
    return len(set(given.bytes)) == 1 if isinstance(given, Elements) else len(given.values) == 1


# ---------------------------------------------------------------- values


def reg(body: Builder, value: Reg | int, type: str = "b32") -> Reg:
    """A value in a register."""
    if isinstance(value, Reg):
        return value
    made = body.temp(type)
    body.emit(f"mov.{type}", made, value)
    return made


def _ptx(text: str) -> Operation:
    def emit(body: Builder, values: Values, channel: int) -> Reg:
        value = body.temp("b32")
        body.emit(text, value, *(reg(body, item) for item in values))
        return value

    return Operation(emit)


def _shift(text: str) -> Emit:
    """The low five bits of the amount count."""

    def emit(body: Builder, values: Values, channel: int) -> Reg:
        amount: Reg | int
        if isinstance(values[1], int):
            amount = values[1] & 31
        else:
            amount = body.temp("b32")
            body.emit("and.b32", amount, values[1], 31)
        value = body.temp("b32")
        body.emit(text, value, reg(body, values[0]), amount)
        return value

    return emit


def _move(target: str, source: Source, spans: Spans) -> Operation:
    """``mov``: integers are extended or cut, floats converted (to nearest; towards zero, saturating, to integers)."""
    if target == source.type:
        return Operation(_same(TYPES[ELEMENT_TYPES[target]].bits))
    wide = {"uq": "u64", "q": "s64"}
    if target in INTEGERS and source.type in INTEGERS:
        return Operation(_same(32))
    sign_ = "s" if source.type in ("d", "w", "b", "q") else "u"
    if target in wide and source.type in INTEGERS:
        return Operation(_convert(f"cvt.{wide[target]}.{sign_}32", "b64"))
    if target in INTEGERS and source.type in wide:
        return Operation(_convert(f"cvt.u32.{wide[source.type]}", "b32"))
    if target in wide and source.type in wide:
        return Operation(_same(64))
    if target == "f" and source.type in INTEGERS:
        return Operation(_convert(f"cvt.rn.f32.{sign_}32", "b32"))
    if target in ("ud", "d") and source.type == "f":
        return Operation(_convert(f"cvt.rzi.{ELEMENT_TYPES[target]}.f32", "b32"))
    raise TextError(f"'mov' does not convert type {source.type} to {target}", *spans[1])


def _same(bits: int) -> Emit:
    def emit(body: Builder, values: Values, channel: int) -> Reg:
        value = body.temp("b64" if bits == 64 else "b32")
        body.emit("mov.b64" if bits == 64 else "mov.b32", value, values[0])
        return value

    return emit


def _convert(text: str, type: str) -> Emit:
    def emit(body: Builder, values: Values, channel: int) -> Reg:
        value = body.temp(type)
        body.emit(text, value, reg(body, values[0], "b64" if text.endswith("64") else "b32"))
        return value

    return emit
