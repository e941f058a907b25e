"""Memory for what operations hand over: vectors that functions of the runtime and helpers read or write.

One area of a function's frame serves all operations in turn, so that the frame does not grow with their number.
"""

from __future__ import annotations

import re

from ptxemu.lower.core.float_bits import width

ALIGN = 64
KEPT = 8192  # bytes that may be in use when an operation begins; with more, it begins anew


class Scratch:
    """Hands out the bytes of the area. What was handed out in an earlier ``epoch`` may have been overwritten."""

    name = "%scratch"

    def __init__(self) -> None:
        self.used = 0
        self.needed = 0
        self.epoch = 0

    def take(self, size: int) -> int:
        """The offset of ``size`` bytes, the operation's own to its end."""
        offset = self.used
        self.used += -(-size // ALIGN) * ALIGN
        self.needed = max(self.needed, self.used)
        return offset

    def begin_op(self) -> None:
        """What earlier operations left is kept while there is little of it."""
        if self.used > KEPT:
            self.begin_block()

    def begin_block(self) -> None:
        self.used = 0
        self.epoch += 1


def bytes_of(type: str) -> int:
    """The size of a scalar, a vector or an array of scalars, given as LLVM type."""
    match = re.fullmatch(r"(?:[<\[](\d+) x )?(\w+)[>\]]?", type)
    assert match is not None, type
    return (int(match[1] or 1) * width(match[2]) + 7) // 8


def area(name: str, size: int) -> list[str]:
    """A part of the frame that many ops use. LLVM looks through all uses of an alloca whenever one of them goes, so
    it is not to see that this is one."""
    area = f"  {name}.area = alloca [{size} x i8], align 64"
    return [area, f'  {name} = call ptr asm "", "=r,0"(ptr {name}.area)'] if size else []
