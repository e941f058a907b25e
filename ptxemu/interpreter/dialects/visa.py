"""Surfaces and TYPED_ATOMIC of vISA."""

from __future__ import annotations

from typing import Any

from ptxemu._runtime import ffi
from ptxemu.dialects.visa.lower import FIELDS, atomic_kind, atomic_site, operands_of, result_is_signed
from ptxemu.interpreter.dialects import slots  # noqa: F401  (registers a method)
from ptxemu.interpreter.lane import Lane, Step
from ptxemu.interpreter.memory import each
from ptxemu.interpreter.surfaces import mask_of
from ptxemu.interpreter.transfer import site
from ptxemu.interpreter.translate import Translator, bits_of, method
from ptxemu.ir.ops import Op
from ptxemu.ir.types import U32, U64


@method("visa_surface")
def surface(t: Translator, op: Op) -> Step:
    """The handle of the surface that the host has bound to a variable."""
    return each(t, op, t.reader(op["s"], U64))


@method("visa_typed_atomic")
def typed_atomic(t: Translator, op: Op) -> Step:
    """One channel of each hardware thread."""
    kind, constants = atomic_kind(op), site("surface", op, **atomic_site(op))
    given = {name: (t.reader(operand, type), type.bytes) for name, operand, type in operands_of(op)}
    write = t.writer(op["d"], U32)
    sign = 1 << kind.bits - 1 if result_is_signed(op) else 0
    old = FIELDS.index("old")

    def step(warp: Any, group: list[Lane]) -> None:
        transfer, lanes = warp.grid.transfer, ffi.new("pe_typed_lanes *")
        for number, name in enumerate(FIELDS):
            if name in given:
                read, size = given[name]
                setattr(lanes, name, ffi.cast("void *", transfer.fill(number, size, group, read)))
        results = transfer.area(old)
        if write is not None:
            lanes.old = results.pointer
        warp.grid.call("pe_typed_atomic", warp, constants, mask_of(group), lanes)
        for lane in group if write is not None else ():
            value = results.elements[kind.bytes][lane.index]
            write(lane, (value ^ sign) - sign & bits_of(U32))  # type: ignore[misc]

    return step
