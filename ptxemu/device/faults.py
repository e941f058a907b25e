"""The runtime's record of a fault in the program's terms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ptxemu._runtime import ffi, lib
from ptxemu.device.arena import Arena
from ptxemu.text.errors import Dim3, Error, Fault, FaultRecord, InternalError, TexelPlace, UnsupportedError
from ptxemu.text.source import Location

if TYPE_CHECKING:
    from ptxemu._runtime import CData

SPACES = ("generic", "global", "shared", "local", "constant", "parameter")
LAUNCH_FAILURE = 719  # cudaErrorLaunchFailure


@dataclass(frozen=True, slots=True)
class FaultKind:
    """What a kind of fault is called, the ``cudaError_t`` that a device would report, and the error that it is if not a Fault."""

    text: str
    code: int = LAUNCH_FAILURE
    error: type[InternalError | UnsupportedError] | None = None


KINDS: Mapping[int, FaultKind] = {
    lib.PE_ILLEGAL_ADDRESS: FaultKind("illegal address", 700),
    lib.PE_MISALIGNED: FaultKind("misaligned address", 716),
    lib.PE_NULL: FaultKind("null pointer", 700),
    lib.PE_SURFACE_TRAP: FaultKind("surface access out of bounds"),
    lib.PE_INVALID_SURFACE: FaultKind("invalid surface handle", 400),
    lib.PE_UNBOUND_SURFACE: FaultKind("unbound surface", 400),
    lib.PE_GEOMETRY_MISMATCH: FaultKind("surface geometry mismatch"),
    lib.PE_FORMAT_MISMATCH: FaultKind("surface format mismatch"),
    lib.PE_INVALID_ADDRESS_SPACE: FaultKind("invalid address space", 717),
    lib.PE_TRAP: FaultKind("trap"),
    lib.PE_ASSERT: FaultKind("assertion failed", 710),
    lib.PE_DEADLOCK: FaultKind("deadlock"),
    lib.PE_STACK_OVERFLOW: FaultKind("stack overflow", 714),
    lib.PE_BARRIER_MISUSE: FaultKind("barrier misuse"),
    lib.PE_INVALID_BRANCH: FaultKind("invalid branch target", 718),
    lib.PE_INVALID_CALL: FaultKind("invalid call target", 718),
    lib.PE_ILLEGAL_OP_TYPE: FaultKind("illegal operation for the type", 715),
    lib.PE_INVALID_FREE: FaultKind("invalid free"),
    lib.PE_PARTIAL_WARP: FaultKind("partial warp"),
    lib.PE_INVALID_TEXTURE: FaultKind("invalid texture or sampler handle", 400),
    lib.PE_UNBOUND_TEXTURE: FaultKind("unbound texture or sampler", 400),
    lib.PE_TEXTURE_GEOMETRY: FaultKind("texture geometry mismatch"),
    lib.PE_TEXTURE_FORMAT: FaultKind("texture of integers read as floats"),
    lib.PE_ARITHMETIC: FaultKind("arithmetic trap in compiled code", error=InternalError),
    lib.PE_UNSUPPORTED_FORMAT: FaultKind("unsupported: a formatted store to packed components", error=UnsupportedError),
}

MEMORY_KINDS = {lib.PE_ILLEGAL_ADDRESS, lib.PE_MISALIGNED, lib.PE_NULL, lib.PE_INVALID_ADDRESS_SPACE}


@dataclass(slots=True, frozen=True)
class Origin:
    """What the program calls its places: ``locate`` says where a source position is, ``surface_name`` by which name the
    program knows a slot of the surface table; ``kinds`` are the faults that its dialect adds."""

    kernel: str
    locate: Callable[[int], Location]
    dialect: str = "ptx"
    surface_name: Callable[[int], str | None] = lambda slot: None
    kinds: Mapping[int, FaultKind] = field(default_factory=dict)

    def kind(self, number: int) -> FaultKind:
        return self.kinds.get(number) or KINDS[number]

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
    kind, in_memory = origin.kind(raw.kind), raw.kind in MEMORY_KINDS and not raw.has_coordinates
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
        space=SPACES[raw.space] if in_memory else None,
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
    where = f" at {record.location}" if record.location else ""
    unit = f"warp {record.warp}" if record.thread is None else f"thread {_dim(record.thread)}"
    unit += "" if record.channel is None else f", channel {record.channel}"
    parts = [f"{record.kind} in kernel `{record.kernel}`{where}: block {_dim(record.block)}, {unit}"]
    if record.address is not None:
        parts.append(_access(raw, record, arena))
    if record.texel is not None:
        x, y, z, layer = record.texel.coordinates
        surface = record.texel.slot if record.texel.surface is None else f"`{record.texel.surface}`"
        parts.append(f"{record.size}-byte access of surface {surface} at x={x}, y={y}, z={z}, layer={layer}")
    if record.note:
        parts.append(record.note)
    return ", ".join(parts)


def _access(raw: CData, record: FaultRecord, arena: Arena) -> str:
    size = f"{record.size}-byte access to" if record.size else "access to"
    text = f"{size} {record.space} address 0x{record.address:x}"
    own_space = bool(record.note)  # the note says which: no device address
    if raw.space in (lib.PE_GENERIC, lib.PE_GLOBAL) and raw.kind == lib.PE_ILLEGAL_ADDRESS and not own_space:
        text += f", {arena.describe(raw.address)}"
    return text


def _extent(values: CData) -> Dim3:
    return values[0], values[1], values[2]


def _dim(values: CData | Dim3) -> str:
    return f"({values[0]},{values[1]},{values[2]})"
