"""What can be seen of a launch that stands still: warps and what they wait for, registers, memory."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ptxemu._runtime import ffi
from ptxemu.device.arena import Arena
from ptxemu.interpreter.lane import EXITED, WAITING, Lane
from ptxemu.interpreter.machine import Block, Grid, Warp
from ptxemu.interpreter.translate import CARRY, Code
from ptxemu.ir.ops import Op, Reg, SReg
from ptxemu.ir.types import PRED, ScalarType
from ptxemu.text.errors import InputError

FLOATS = {16: "e", 32: "f", 64: "d"}
MOST_BYTES = 1 << 20  # of memory that is shown at once
GLOBAL = "global"


@dataclass(frozen=True, slots=True)
class Spot:
    """``size`` bytes at an address of a space, which in all but ``global`` is an offset."""

    space: str
    address: int
    size: int


def position(lane: Lane) -> int:
    """The instruction that a lane is at: one that waits has not left its own."""
    return lane.pc - 1 if lane.state == WAITING else lane.pc


def op_at(lane: Lane) -> Op:
    return lane.code.ops[position(lane)]


def frames_of(lane: Lane) -> Iterator[tuple[Code, Op]]:
    """The functions that a lane is in, the innermost first, and where."""
    yield lane.code, op_at(lane)
    for code, _, after, *_ in reversed(lane.frames):
        yield code, code.ops[after - 1]


@dataclass(frozen=True, slots=True)
class Stand:
    """Lanes of a warp that are at the same place: ``waits`` says for what, if they do."""

    warp: Warp
    lanes: tuple[Lane, ...]
    op: Op | None
    waits: str

    @property
    def mask(self) -> int:
        return sum(lane.bit for lane in self.lanes)


def stands(grid: Grid) -> Iterator[Stand]:
    """Where all warps of all blocks are that have begun and not ended."""
    for block in sorted(grid.resident, key=lambda block: block.number):
        for warp in block.warps:
            yield from stands_of(warp)


def stands_of(warp: Warp) -> Iterator[Stand]:
    found: dict[tuple[Any, ...], list[Lane]] = {}
    for lane in warp.lanes:
        place = (None, 0) if lane.state == EXITED else (lane.code, position(lane))
        found.setdefault((*place, lane.state, waits_for(lane)), []).append(lane)
    for (code, pc, _, waits), lanes in found.items():
        yield Stand(warp, tuple(lanes), None if code is None else code.ops[pc], waits)


def waits_for(lane: Lane) -> str:
    """What a lane waits for, in words; empty if it can go on."""
    if lane.state != WAITING:
        return "an mbarrier, again and again" if lane.warp.polling and lane.state != EXITED else ""
    if lane.meeting is not None:
        missing = lane.meeting.mask & lane.warp.live & ~sum(
            other.bit for other in lane.warp.meetings.waiting
            if other.meeting is not None and (other.meeting.key, other.meeting.mask) == (lane.meeting.key, lane.meeting.mask)
        )  # fmt: skip
        return f"lanes 0x{missing:08x} of its membermask 0x{lane.meeting.mask:08x}"
    barriers = lane.warp.block.barriers
    for number, barrier in barriers.active.items():
        if any(other is lane for other, _ in barrier.waiting):
            threads = sum(1 for warp in lane.warp.block.warps for other in warp.lanes if other.state != EXITED)
            return f"barrier {number}: {barrier.arrived} of {barrier.count or threads} threads have arrived"
    if lane in barriers.cluster.waiting:
        return "barrier.cluster"
    return "the barrier of the grid" if lane in lane.warp.grid.arrived else "others"


def thread_of(lane: Lane) -> str:
    return "({},{},{})".format(*lane.tid)


def block_of(block: Block) -> tuple[int, int, int]:
    x, y, z = block.warps[0].w.ctaid
    return int(x), int(y), int(z)


# ---------------------------------------------------------------- registers


def registers_of(code: Code) -> dict[str, Reg]:
    """Those that the text of a function names, in the order of its mentions."""
    return {reg.name: reg for reg in code.slots if reg is not CARRY and reg.name.partition("%")[2] != "operand"}


def register(lane: Lane, reg: Reg) -> int:
    """Its bits."""
    return lane.r[lane.code.slots[reg]]


def value_of(bits: int, kind: ScalarType) -> int | float:
    """What bits mean as a type: those of ``.b32`` are an unsigned integer."""
    if kind.is_float and kind.bits in FLOATS and not kind.name.startswith("bf"):
        return float(struct.unpack(f"<{FLOATS[kind.bits]}", bits.to_bytes(kind.bits // 8, "little"))[0])
    if kind.name == "bf16":
        return float(struct.unpack("<f", (bits << 16).to_bytes(4, "little"))[0])
    if kind.is_signed and bits >> (kind.bits - 1):
        return bits - (1 << kind.bits)
    return bits


def shown_value(bits: int, kind: ScalarType) -> str:
    """``5 (0x5)``, ``1.5 (0x3fc00000)``."""
    if kind is PRED:
        return "true" if bits else "false"
    value = value_of(bits, kind)
    return f"{value!r} (0x{bits:0{kind.bits // 4 if kind.is_float else 0}x})"


def special_names(lane: Lane) -> dict[str, int]:
    """Special registers by what CUDA C++ and PTX call them."""
    w = lane.warp.w
    extents = {"tid": lane.tid, "ntid": w.ntid, "ctaid": w.ctaid, "nctaid": w.nctaid}
    found = {}
    for ptx, cuda in (("tid", "threadIdx"), ("ntid", "blockDim"), ("ctaid", "blockIdx"), ("nctaid", "gridDim")):
        for axis, name in enumerate("xyz"):
            found[f"%{ptx}.{name}"] = found[f"{cuda}.{name}"] = int(extents[ptx][axis])
    return {**found, "%laneid": lane.index, "%warpid": lane.warp.index}


# ---------------------------------------------------------------- memory


def windows(lane: Lane) -> dict[str, tuple[int, int]]:
    """Where the spaces of a lane begin in the process, and their bytes."""
    w = lane.warp.w
    return {
        "shared": (w.shared_base, w.shared_size), "local": (w.local_base + lane.index * w.local_size, w.local_size),
        "const": (w.const_base, w.const_size), "param": (w.param_base, w.param_size),
    }  # fmt: skip


def read(arena: Arena, lane: Lane | None, space: str, address: int, size: int) -> bytes:
    """Bytes of memory: of a space that an address is an offset in, or of ``global``. InputError if they are not there."""
    if not 0 < size <= MOST_BYTES:
        raise InputError(f"{size} bytes cannot be shown at once: 1 to {MOST_BYTES}")
    if space == GLOBAL:
        return bytes(arena.view(address, size))
    if lane is None:
        raise InputError(f"there is no thread whose {space} memory that is")
    base, extent = windows(lane)[space]
    offset = address - base if space in ("const", "param") and address >= base else address
    if not 0 <= offset <= extent - size:
        raise InputError(f"bytes {offset} to {offset + size - 1} are not in the {extent} bytes of {space} memory")
    return bytes(ffi.buffer(ffi.cast("char *", base + offset), size))


def parameters_of(lane: Lane) -> Iterator[tuple[str, bytes, ScalarType]]:
    """The kernel's parameters by name, with their bytes."""
    kernel, w = lane.warp.grid.code.function, lane.warp.w
    for parameter in kernel.params:
        data = ffi.buffer(ffi.cast("char *", w.param_base + parameter.offset), parameter.variable.size)
        yield parameter.variable.name, bytes(data), parameter.variable.type


def sregs_of(op: Op) -> list[str]:
    """The special registers that an instruction reads."""
    return [f"%{source.name}" for source in op.srcs if isinstance(source, SReg)]
