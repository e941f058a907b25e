"""What can be seen of a launch that stands still: warps and what they wait for, registers, memory."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from ptxemu._runtime import ffi
from ptxemu.device.arena import Arena
from ptxemu.interpreter.lane import Lane
from ptxemu.interpreter.standing import position
from ptxemu.interpreter.translate import CARRY, Code
from ptxemu.ir.ops import Op, Reg, SReg
from ptxemu.ir.types import PRED, ScalarType
from ptxemu.text.errors import InputError

FLOATS = {"f16": "e", "f32": "f", "f64": "d"}
MOST_BYTES = 1 << 20  # of memory that is shown at once
GLOBAL = "global"


class Spot(Struct, frozen=True):
    """``size`` bytes at an address of a space, which in all but ``global`` is an offset."""

    space: str
    address: int
    size: int


class Frame(Struct, frozen=True):
    """A function that a lane is in: at the instruction ``pc``, with ``values`` of registers, and local memory from ``base``."""

    lane: Lane
    code: Code
    pc: int
    values: list[int]
    base: int

    @property
    def op(self) -> Op:
        return self.code.ops[self.pc]

    def register(self, reg: Reg) -> int:
        """Its bits."""
        return self.values[self.code.slots[reg]]


def frame_of(lane: Lane) -> Frame:
    """The innermost one."""
    return Frame(lane, lane.code, position(lane), lane.r, lane.base)


def frames_of(lane: Lane) -> Iterator[Frame]:
    """The functions that a lane is in, the innermost first, and where."""
    yield frame_of(lane)
    for code, values, after, base, *_ in reversed(lane.frames):
        yield Frame(lane, code, after - 1, values, base)


def thread_of(lane: Lane) -> str:
    return "({},{},{})".format(*lane.tid)


# ---------------------------------------------------------------- registers


def registers_of(code: Code) -> dict[str, Reg]:
    """Those that the text of a function names, in the order of its mentions."""
    return {reg.name: reg for reg in code.slots if reg is not CARRY and reg.name.partition("%")[2] != "operand"}


def value_of(bits: int, kind: ScalarType) -> int | float:
    """What bits mean as a type: those of ``.b32`` are an unsigned integer."""
    if kind.name in FLOATS:
        return float(struct.unpack(f"<{FLOATS[kind.name]}", bits.to_bytes(kind.bits // 8, "little"))[0])
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
    cluster = {"%cluster_ctarank": lane.warp.block.rank, "%cluster_nctarank": int(w.cluster_nctarank)}
    return {**found, **cluster, "%laneid": lane.index, "%warpid": lane.warp.index}


def names_of(frame: Frame) -> dict[str, Any]:
    """What expressions may name besides variables: registers of a function, and special registers."""
    registers = registers_of(frame.code).items()
    return {**special_names(frame.lane), **{name: value_of(frame.register(reg), reg.type) for name, reg in registers}}


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
        others = lane is not None and lane.warp.windows.within(address) and lane.warp.windows.within(address + size - 1)
        return bytes(ffi.buffer(ffi.cast("char *", address), size)) if others else bytes(arena.view(address, size))
    if lane is None:
        raise InputError(f"there is no thread whose {space} memory that is")
    base, extent = windows(lane)[space]
    offset = address - base if space in ("const", "param") and address >= base else address
    if not 0 <= offset <= extent - size:
        raise InputError(f"bytes {offset} to {offset + size - 1} are not in the {extent} bytes of {space} memory")
    return bytes(ffi.buffer(ffi.cast("char *", base + offset), size))


def space_of(lane: Lane, address: int) -> tuple[str, int]:
    """The space that a generic address lies in, and the offset in it; ``global`` also stands for other blocks' shared memory."""
    for space, (base, extent) in windows(lane).items():
        if 0 <= address - base < extent:
            return space, address - base
    return GLOBAL, address


def parameters_of(lane: Lane) -> Iterator[tuple[str, bytes, ScalarType]]:
    """The kernel's parameters by name, with their bytes."""
    kernel, w = lane.warp.grid.code.function, lane.warp.w
    for parameter in kernel.params:
        data = ffi.buffer(ffi.cast("char *", w.param_base + parameter.offset), parameter.variable.size)
        yield parameter.variable.name, bytes(data), parameter.variable.type


def sregs_of(op: Op) -> list[str]:
    """The special registers that an instruction reads."""
    return [f"%{source.name}" for source in op.srcs if isinstance(source, SReg)]
