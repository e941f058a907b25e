"""What is wrong with the typed IR."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from ptxemu.ir.ops import Op


class Problem(Struct, frozen=True):
    """A rule that is broken: what it says, and where; ``pos`` is 0 if no line is to blame."""

    text: str
    pos: int = 0
    op: Op | None = None
    block: str = ""

    def inside(self, block: str) -> Problem:
        """The same with the name of its block."""
        return replace(self, block=block)
