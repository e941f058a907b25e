"""The registry of lowerings that are not elementwise: memory, control, synchronisation, calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ptxemu.ir import Op

if TYPE_CHECKING:
    from ptxemu.lower.context import Context

Effect = Callable[["Context", Op], None]
EFFECTS: dict[str, Effect] = {}


def effect(*names: str) -> Callable[[Effect], Effect]:
    """Register ``fn(ctx, op)`` as the lowering of the rows with these names. It defines all of ``op.dsts``."""

    def add(fn: Effect) -> Effect:
        for name in names:
            assert name not in EFFECTS, name
            EFFECTS[name] = fn
        return fn

    return add
