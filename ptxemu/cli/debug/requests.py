"""Tables of requests of the Debug Adapter Protocol, and the numbers that it calls things by."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ptxemu.debugger.variables import Scope, Value
from ptxemu.interpreter.machine import Warp
from ptxemu.ir.block_shape import LANES

if TYPE_CHECKING:
    from ptxemu.cli.debug.adapter import Adapter

PTX_SOURCE = 1  # number of the first text of the program, which the client asks for by it
Shown = tuple[str, str, tuple[Scope, Value] | None]
"""A variable's name and text; and itself, if it may have parts."""
Handler = Callable[["Adapter", dict[str, Any]], Any]


class Handlers(dict[str, Handler]):
    """By the name of the request."""

    def add(self, name: str) -> Callable[[Handler], Handler]:
        """Register ``fn(adapter, arguments) -> body`` for a request of that name."""

        def add(function: Handler) -> Handler:
            self[name] = function
            return function

        return add


def number_of(warp: Warp) -> int:
    """The number of a warp as a thread of the protocol."""
    return warp.block.number * LANES + warp.index + 1
