"""Where a warp keeps what it needs when its turn comes again: its record (:mod:`ptxemu.lower.functions.looped`)."""

from __future__ import annotations

from ptxemu.analysis.lifetimes import place
from ptxemu.analysis.survivors import Survivors
from ptxemu.analysis.uniformity import Uniformity
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.ops import Reg
from ptxemu.lower.core.context import MASK, Context
from ptxemu.lower.core.scratch import bytes_of

ALIGN = 64


def size(survivors: Survivors, uniformity: Uniformity) -> int:
    """Bytes of the values of a record."""
    _, registers = places(survivors, uniformity, 0)
    phis = [survivors.of(point).phis for point in survivors.block_of]
    return registers + max((sum(_bytes(phi.dst, uniformity) for phi in waiting) for waiting in phis), default=0)


def places(survivors: Survivors, uniformity: Uniformity, start: int) -> tuple[dict[Reg, int], int]:
    """Offsets of the registers that outlive points, from ``start`` on, and their end."""
    sizes = {reg: _bytes(reg, uniformity) for reg in survivors.lifetimes}
    found: dict[Reg, int] = {}
    end = start
    for size in sorted(set(sizes.values()), reverse=True):  # powers of two, so that all are aligned
        lifetimes = [(reg, life, size) for reg, life in survivors.lifetimes.items() if sizes[reg] == size]
        offsets, end = place(lifetimes, end)
        found.update(offsets)
    return found, end


def _bytes(reg: Reg, uniformity: Uniformity) -> int:
    if uniformity.shape(reg) is not None:
        return reg.type.bytes
    grouped = uniformity.grouped
    return reg.type.bytes * (len(grouped.firsts) if grouped is not None and reg in grouped.shapes else LANES)


def store(ctx: Context, kind: str, value: str, offset: int) -> None:
    """Store a value of an LLVM type in the record of the warp."""
    ctx.stmt(f"store {kind} {value}, ptr {ctx.inst(at(offset))}, align {alignment(kind)}")


def load(ctx: Context, kind: str, offset: int) -> str:
    if kind == MASK:
        return ctx.mask_from_bits(load(ctx, f"i{LANES}", offset))
    return ctx.inst(f"load {kind}, ptr {ctx.inst(at(offset))}, align {alignment(kind)}")


def at(offset: int) -> str:
    """An address in the record."""
    return f"getelementptr i8, ptr %record, i64 {offset}"


def alignment(kind: str) -> int:
    return min(bytes_of(kind), ALIGN)
