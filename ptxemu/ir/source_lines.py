"""Where instructions come from: the lines of CUDA C++, or of another language, that ``.loc`` and ``.file`` tell."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from ptxemu.text.source import Location

if TYPE_CHECKING:
    from ptxemu.ir.ops import Module, Op


class SourceLines:
    """Those of a module; it has none if the compiler was not asked for them (``nvcc -lineinfo``)."""

    def __init__(self, module: Module) -> None:
        self.module = module
        ops = sorted((op.pos, op.loc) for function in dict.fromkeys(module.functions.values()) for op in function.ops)
        self._positions, self._locs = [pos for pos, _ in ops], [loc for _, loc in ops]

    def of(self, op: Op) -> tuple[Location, ...]:
        """The line of an instruction; behind it, if it is part of an inlined function, that of the call, and so on outwards.

        Empty if the module does not say.
        """
        return self._chain(op.loc)

    def told(self, op: Op) -> str:
        """The line of a person's own code, and behind it that of the inlined function; empty if the module does not say."""
        chain = self._chain(op.loc)
        return "" if not chain else str(chain[-1]) if len(chain) == 1 else f"{chain[-1]} (in {chain[0]})"

    def at(self, pos: int) -> tuple[Location, ...]:
        """The same of the instruction that begins at an offset in the module's text, or that it is in."""
        index = bisect_right(self._positions, pos)
        return self._chain(self._locs[index - 1]) if index else ()

    def _chain(self, number: int) -> tuple[Location, ...]:
        found = []
        while number:
            loc = self.module.locs[number - 1]
            if loc.line and loc.file in self.module.files:  # line 0 is what no line is the cause of
                found.append(Location(self.module.files[loc.file], loc.line))
            number = loc.caller
        return tuple(found)
