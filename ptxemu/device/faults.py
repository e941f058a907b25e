"""The runtime's record of a fault in the program's terms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING

from msgspec import Struct

from ptxemu._runtime import ffi, lib
from ptxemu.device.arena import Arena
from ptxemu.text.errors import Dim3, Error, Fault, FaultRecord, InternalError, TexelPlace, UnsupportedError
from ptxemu.text.source import Location
from ptxemu.text.symbols import plain_name

if TYPE_CHECKING:
    from ptxemu._runtime import CData

TEXT_BYTES = 4096  # of a message, beside the names in it


class FaultKind(Struct, frozen=True):
    """What a kind of fault is called, the ``cudaError_t`` that a device would report, and the error that it is if not a Fault."""

    text: str
    code: int = 719  # cudaErrorLaunchFailure
    error: type[InternalError | UnsupportedError] | None = None


# The kinds that are no faults of the program.
ERRORS: Mapping[int, type[InternalError | UnsupportedError]] = {
    lib.PE_ARITHMETIC: InternalError,
    lib.PE_UNSUPPORTED_FORMAT: UnsupportedError,
}


@cache
def _kind(number: int) -> FaultKind:
    """One that all dialects have."""
    return FaultKind(ffi.string(lib.pe_fault_name(number)).decode(), lib.pe_fault_code(number), ERRORS.get(number))


class Origin(Struct, frozen=True):
    """What the program calls its places: ``locate`` says where a source position is, ``surface_name`` by which name the
    program knows a slot of the surface table; ``kinds`` are the faults that its dialect adds."""

    kernel: str
    locate: Callable[[int], Location]
    dialect: str = "ptx"
    surface_name: Callable[[int], str | None] = lambda slot: None
    kinds: Mapping[int, FaultKind] = {}

    def kind(self, number: int) -> FaultKind:
        return self.kinds.get(number) or _kind(number)

    def location(self, raw: CData) -> Location | None:
        return None if raw.pos == lib.PE_NO_POS else self.locate(raw.pos)


def error_of(raw: CData, count: int, origin: Origin, arena: Arena) -> Error:
    """The exception for a ``pe_record``; ``count`` faults were raised in all."""
    kind, record = origin.kind(raw.kind), record_of(raw, count, origin)
    text = _message(raw, record, arena)
    if kind.error is None:
        return Fault(text, record)
    return kind.error(text + (", this is a bug in ptxemu" if kind.error is InternalError else ""))


def last_seen(raw: CData, origin: Origin) -> str:
    """Where a warp of a launch that was stopped was: at its last access of memory or call."""
    where = origin.location(raw)
    return f": block {_dim(raw.ctaid)}, warp {raw.warp} was running" + (f", last seen at {where}" if where else "")


def record_of(raw: CData, count: int, origin: Origin) -> FaultRecord:
    kind, in_memory = origin.kind(raw.kind), lib.pe_fault_in_memory(raw)
    return FaultRecord(
        kind=kind.text,
        code=kind.code,
        dialect=origin.dialect,
        kernel=origin.kernel,
        location=origin.location(raw),
        pos=None if raw.pos == lib.PE_NO_POS else raw.pos,
        pc=raw.pc,
        block=_extent(raw.ctaid),
        thread=None if raw.lane < 0 else _extent(raw.tid),
        lane=raw.lane,
        channel=raw.channel - 1 if raw.channel else None,
        warp=raw.warp,
        space=ffi.string(lib.pe_space_name(raw.space)).decode() if in_memory else None,
        address=raw.address if in_memory else None,
        size=raw.size,
        texel=_texel(raw, origin) if raw.has_coordinates else None,
        note=ffi.string(raw.note).decode(errors="replace"),
        count=count,
    )


def _texel(raw: CData, origin: Origin) -> TexelPlace:
    x, y, z, layer = raw.coordinates
    return TexelPlace(raw.slot, (x, y, z, layer), origin.surface_name(raw.slot))


def _message(raw: CData, record: FaultRecord, arena: Arena) -> str:
    place = None if record.location is None else str(record.location)
    surface = None if record.texel is None else record.texel.surface
    texts = {"kind": record.kind, "kernel": plain_name(record.kernel), "place": place, "surface": surface}
    kept = {name: ffi.new("char[]", text.encode("utf-8", "replace")) for name, text in texts.items() if text is not None}
    room = TEXT_BYTES + sum(map(len, kept.values()))
    names, out = ffi.new("pe_fault_names *", {**kept, "arena": arena.handle}), ffi.new("char[]", room)
    lib.pe_fault_text(raw, names, out, room)
    return str(ffi.string(out).decode("utf-8", "replace"))


def _extent(values: CData) -> Dim3:
    return values[0], values[1], values[2]


def _dim(values: CData | Dim3) -> str:
    return f"({values[0]},{values[1]},{values[2]})"
