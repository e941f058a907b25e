"""Instructions that change no result: hints to caches, register reallocation, dependent launches."""

from __future__ import annotations

from ptxemu.ir.ops import Op
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.effects import effect


@effect("hint")
def hint(ctx: Context, op: Op) -> None:
    """discard, applypriority: caches are the host's.  setmaxnreg: there is no limit on registers.

    griddepcontrol: launches do not overlap, so what a grid depends on is complete before it starts.  After ``discard`` the
    manual leaves the contents open; they stay.
    """


@effect("createpolicy")
def createpolicy(ctx: Context, op: Op) -> None:
    """createpolicy: an opaque value that no access looks at, so every policy is zero."""
    ctx.define_same(op, 0, "0")
