"""The registry of lowerings that are not elementwise: memory, control, synchronisation, calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ptxemu.ir.ops import Op
from ptxemu.lower.core.emit import SIZES

if TYPE_CHECKING:
    from ptxemu.lower.core.context import Context

Effect = Callable[["Context", Op], None]
EFFECTS: dict[str, Effect] = {}


def effect(*names: str, size: int | None = None) -> Callable[[Effect], Effect]:
    """Register ``fn(ctx, op)`` as the lowering of the rows with these names. It defines all of ``op.dsts``.

    ``size``: the machine instructions that it becomes on 32 lanes, if many.
    """

    def add(fn: Effect) -> Effect:
        for name in names:
            assert name not in EFFECTS, name
            EFFECTS[name] = fn
            if size is not None:
                SIZES[name] = size
        return fn

    return add
