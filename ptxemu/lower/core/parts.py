"""Vectors of all lanes in parts, as instructions take them that LLVM knows by the size of a register."""

from __future__ import annotations

from collections.abc import Sequence

from ptxemu.lower.core.emit import Emitter


def part(e: Emitter, t: str, x: str, start: int, count: int) -> str:
    """Elements of LLVM scalar type ``t`` side by side."""
    order = ", ".join(f"i32 {start + i}" for i in range(count))
    return e.inst(f"shufflevector {e.ty(t)} {x}, {e.ty(t)} poison, <{count} x i32> <{order}>")


def joined(e: Emitter, t: str, parts: Sequence[str], count: int) -> str:
    """The vector of parts, a power of two, of ``count`` elements each."""
    while len(parts) > 1:
        vector, order = f"<{count} x {t}>", ", ".join(f"i32 {i}" for i in range(2 * count))
        pairs = zip(parts[::2], parts[1::2], strict=True)
        parts = [e.inst(f"shufflevector {vector} {low}, {vector} {high}, <{2 * count} x i32> <{order}>") for low, high in pairs]
        count *= 2
    return parts[0]
