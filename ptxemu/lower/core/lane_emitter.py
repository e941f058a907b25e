"""The emitter of a kernel's scalars, and that of its lanes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxemu.lower.core.emit import Emitter

if TYPE_CHECKING:
    from ptxemu.lower.core.context import Context


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
