"""The emitter of a kernel's scalars, and that of its lanes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxemu.ir.block_shape import LANES
from ptxemu.lower.core.emit import Emitter

if TYPE_CHECKING:
    from ptxemu.lower.core.context import Context

PACKED = {"i32": 32, "i64": 64, "float": 32, "double": 64}
"""Bits of an element, by LLVM types whose comparisons are packed to bits (masks.py)."""


class LaneEmitter(Emitter):
    """An emitter that shares names, lines and stack slots with the kernel."""

    def __init__(self, kernel: Context, lanes: int) -> None:
        super().__init__(lanes, kernel.lines)
        self.kernel = kernel
        self.daz = kernel.unit.daz
        self.numerics = kernel.unit.numerics
        self.target = kernel.unit.target
        self.declarations = kernel.declarations

    def fresh(self) -> str:
        return self.kernel.fresh()

    def temporary(self, type: str) -> str:
        return self.kernel.temporary(type)

    def icmp(self, cond: str, t: str, a: str, b: str) -> str:
        return self._compared(t, super().icmp(cond, t, a, b))

    def fcmp(self, cond: str, t: str, a: str, b: str) -> str:
        return self._compared(t, super().fcmp(cond, t, a, b))

    def _compared(self, t: str, made: str) -> str:
        if self.lanes == LANES and self.target.packs_masks and t in PACKED:
            self.kernel.compared[made] = PACKED[t]
        return made
